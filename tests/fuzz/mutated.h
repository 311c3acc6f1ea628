// What fuzzers began with or found, and changes of it, for tests that run each time. Header only.
#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

namespace stepwell::testing {

inline std::vector<std::string> Corpus(const std::string& folder) {
  std::vector<std::string> inputs;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    std::ifstream file(entry.path(), std::ios::binary);
    inputs.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
  }
  return inputs;
}

// Changed in one to four places.
inline std::string Mutated(std::mt19937_64& random, std::string input) {
  for (std::uint64_t times = 1 + random() % 4; times > 0; --times) {
    const std::size_t at = input.empty() ? 0 : random() % input.size();
    switch (random() % 4) {
      case 0:
        input.resize(at);
        break;
      case 1:
        input.insert(at, 1 + random() % 9, static_cast<char>(random()));
        break;
      case 2:
        input.erase(at, 1 + random() % 9);
        break;
      default:
        if (!input.empty()) input[at] = static_cast<char>(random());
    }
  }
  return input;
}

}  // namespace stepwell::testing
