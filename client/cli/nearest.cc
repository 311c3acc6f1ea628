#include "client/cli/nearest.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace stepwell::cli {
namespace {

constexpr std::size_t kNearMax = 3;
// Names from the network may be long; slips are found in short ones.
constexpr std::size_t kNameBytesMax = 128;

// Bytes put in, left out, changed, or two beside each other swapped.
std::size_t SlipsBetween(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before(b.size() + 1);
  std::vector<std::size_t> row(b.size() + 1);
  std::vector<std::size_t> next(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    next[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      next[j] =
          std::min({row[j] + 1, next[j - 1] + 1, row[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1)});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        next[j] = std::min(next[j], before[j - 2] + 1);
      }
    }
    before.swap(row);
    row.swap(next);
  }
  return row[b.size()];
}

}  // namespace

std::vector<std::string> NearestNames(std::string_view wanted, const std::set<std::string>& names) {
  if (wanted.empty() || wanted.size() > kNameBytesMax) return {};
  const std::size_t slips_max = std::max<std::size_t>(1, wanted.size() / 3);
  std::vector<std::pair<std::size_t, std::string>> near;
  for (const std::string& name : names) {
    if (name.size() > kNameBytesMax) continue;
    const std::size_t slips = SlipsBetween(wanted, name);
    if (slips <= slips_max) near.emplace_back(slips, name);
  }
  std::sort(near.begin(), near.end());
  if (near.size() > kNearMax) near.resize(kNearMax);
  std::vector<std::string> nearest;
  for (auto& [slips, name] : near) nearest.push_back(std::move(name));
  return nearest;
}

std::string MeantText(std::string_view wanted, const std::set<std::string>& names) {
  const std::vector<std::string> near = NearestNames(wanted, names);
  if (near.empty()) return "";
  return absl::StrCat("did you mean '", absl::StrJoin(near, "' or '"), "'?");
}

}  // namespace stepwell::cli
