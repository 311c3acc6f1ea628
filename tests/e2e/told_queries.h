// QueriesOf: the PromQL that a page of docs shows, for tests that evaluate it. Header only.
#pragma once

#include <fstream>
#include <iterator>
#include <string>
#include <vector>

namespace stepwell::testing {

inline std::string TextOf(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

// What stands between `begin` and `end`, each time.
inline std::vector<std::string> Between(const std::string& text, const std::string& begin,
                                        const std::string& end) {
  std::vector<std::string> found;
  for (auto at = text.find(begin); at != text.npos; at = text.find(begin, at)) {
    at += begin.size();
    found.push_back(text.substr(at, text.find(end, at) - at));
  }
  return found;
}

inline std::vector<std::string> QueriesOf(const std::string& page) {
  return Between(TextOf(page), "```promql\n", "```");
}

}  // namespace stepwell::testing
