// Variables that a process was started with, and where a value stands among them.
#pragma once

#include <cstdlib>
#include <functional>
#include <string>
#include <string_view>

namespace stepwell::recorder {

// Reads a variable, null when it is not set; `getenv` outside tests.
using Environment = std::function<const char*(const char*)>;

// Of `variables`, as `environ` has them, which outlive it; null = of this process.
inline Environment EnvironmentOf(const char* const* variables) {
  if (variables == nullptr) {
    return [](const char* name) -> const char* { return std::getenv(name); };
  }
  return [variables](const char* name) -> const char* {
    const std::string_view wanted(name);
    for (const char* const* one = variables; *one != nullptr; ++one) {
      const std::string_view text(*one);
      if (text.size() > wanted.size() && text[wanted.size()] == '=' && text.starts_with(wanted)) {
        return *one + wanted.size() + 1;
      }
    }
    return nullptr;
  };
}

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
