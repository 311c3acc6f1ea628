// Variables that a process was started with, and where a value stands among them.
#pragma once

#include <functional>
#include <string>

namespace stepwell::recorder {

// Reads a variable, null when it is not set; `getenv` outside tests.
using Environment = std::function<const char*(const char*)>;

// Empty where it is not set.
inline std::string ReadVariable(const Environment& environment, const char* name) {
  const char* value = environment(name);
  return value == nullptr ? std::string() : std::string(value);
}

// Whether it is set to anything but 0.
inline bool IsSwitchedOn(const Environment& environment, const char* name) {
  const std::string value = ReadVariable(environment, name);
  return !value.empty() && value != "0";
}

}  // namespace stepwell::recorder
