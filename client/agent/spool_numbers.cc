#include "client/agent/spool_numbers.h"

#include <algorithm>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace stepwell::agent {

std::vector<std::uint32_t> SpoolNumbers(const std::vector<std::string>& names) {
  std::vector<std::uint32_t> numbers;
  for (const std::string& name : names) {
    std::uint32_t number = 0;
    if (!absl::SimpleAtoi(name, &number) || number == UINT32_MAX) continue;
    if (absl::StrCat(number) == name) numbers.push_back(number);
  }
  std::sort(numbers.begin(), numbers.end());
  return numbers;
}

}  // namespace stepwell::agent
