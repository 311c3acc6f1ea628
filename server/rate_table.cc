#include "server/rate_table.h"

#include "absl/strings/string_view.h"

namespace stepwell {
namespace {

constexpr absl::Duration kSweepEach = absl::Seconds(1);
// Of those who find no place. No token and no address is named so.
constexpr char kRest[] = "*";

absl::string_view View(std::string_view text) { return {text.data(), text.size()}; }

}  // namespace

RateAllowance& RateTable::Of(std::string_view key, SteadyTime now) {
  const auto found = allowances_.find(View(key));
  if (found != allowances_.end()) return found->second;
  if (allowances_.size() >= keys_max_ && now - swept_ >= kSweepEach) {
    swept_ = now;
    absl::erase_if(allowances_, [now](auto& entry) { return entry.second.IsFull(now); });
  }
  const std::string_view place = allowances_.size() < keys_max_ ? key : kRest;
  return allowances_.try_emplace(std::string(place), rate_, now).first->second;
}

absl::Duration RateTable::TryTake(std::string_view key, double amount, SteadyTime now,
                                  double kept) {
  const absl::MutexLock lock(&mu_);
  return Of(key, now).TryTake(amount, now, kept);
}

void RateTable::Spend(std::string_view key, double amount, SteadyTime now) {
  const absl::MutexLock lock(&mu_);
  Of(key, now).Spend(amount, now);
}

void RateTable::GiveBack(std::string_view key, double amount, SteadyTime now) {
  const absl::MutexLock lock(&mu_);
  Of(key, now).GiveBack(amount, now);
}

absl::Duration RateTable::Wait(std::string_view key, SteadyTime now) {
  const absl::MutexLock lock(&mu_);
  const auto found = allowances_.find(View(key));
  if (found != allowances_.end()) return found->second.TryTake(0, now);
  if (allowances_.size() < keys_max_) return absl::ZeroDuration();
  const auto rest = allowances_.find(kRest);
  return rest == allowances_.end() ? absl::ZeroDuration() : rest->second.TryTake(0, now);
}

std::size_t RateTable::key_count() const {
  const absl::MutexLock lock(&mu_);
  return allowances_.size();
}

}  // namespace stepwell
