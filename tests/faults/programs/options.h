// The command line of a producer: pairs "--name value", all known to the program. Ends the program
// with exit code 64 on anything else.
#pragma once

#include <cstdlib>
#include <iostream>
#include <map>
#include <string>
#include <utility>

namespace stepwell::faults {

class ProgramOptions {
 public:
  // `values` holds every name that may be given, with what it is when it is not.
  ProgramOptions(int argc, char** argv, std::map<std::string, std::string> values)
      : values_(std::move(values)) {
    for (int i = 1; i < argc; i += 2) {
      const std::string name = argv[i];
      const auto found = values_.find(name);
      if (found == values_.end() || i + 1 == argc) {
        std::cerr << argv[0] << ": " << name << ": unknown, or its value is missing\n";
        std::exit(64);
      }
      found->second = argv[i + 1];
    }
  }

  const std::string& Text(const char* name) const { return values_.at(name); }
  std::int64_t Number(const char* name) const { return std::stoll(values_.at(name)); }

 private:
  std::map<std::string, std::string> values_;
};

}  // namespace stepwell::faults
