#include "storage/merge_aside.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>
#include "absl/strings/string_view.h"

#include "absl/strings/match.h"
#include "storage/pg_error.h"

namespace stepwell {
namespace {

// Classes of SQLSTATE that are about what was written or where: data, constraints, limits, damaged or
// unreadable files, a statement that took too long. The rest is about the server, the connection, the
// schema or somebody else's locks.
constexpr std::array<absl::string_view, 7> kOfTheStretch = {"22", "23", "54",   "XX",
                                                            "58", "P0", "57014"};

bool IsOfTheStretch(const absl::Status& status) {
  const std::string state = SqlState(status);
  return std::any_of(kOfTheStretch.begin(), kOfTheStretch.end(),
                     [&](absl::string_view prefix) { return absl::StartsWith(state, prefix); });
}

}  // namespace

MergeAside::Ruling MergeAside::Failed(const StretchKey& key, const absl::Status& status,
                                      SteadyTime now) {
  const bool is_again = failed_last_ == key;
  failed_last_ = key;
  // Another master's work now.
  if (absl::IsAborted(status)) return Ruling::kTryAgain;
  if (!is_again && !IsOfTheStretch(status)) return Ruling::kTryAgain;
  Put(key, now + kRefused);
  if (++in_a_row_ < kInARowMax) return Ruling::kPutAside;
  in_a_row_ = 0;
  return Ruling::kTryAgain;
}

void MergeAside::Succeeded() {
  failed_last_.reset();
  in_a_row_ = 0;
}

std::vector<StretchKey> MergeAside::Held(SteadyTime now) {
  std::erase_if(until_, [&](const auto& each) { return each.second <= now; });
  std::vector<StretchKey> held;
  held.reserve(until_.size());
  for (const auto& [key, until] : until_) held.push_back(key);
  return held;
}

void MergeAside::Put(const StretchKey& key, SteadyTime until) {
  until_[key] = until;
  if (until_.size() <= kCountMax) return;
  until_.erase(std::min_element(until_.begin(), until_.end(),
                                [](const auto& a, const auto& b) { return a.second < b.second; }));
}

}  // namespace stepwell
