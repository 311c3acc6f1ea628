#include "server/wrong_tokens.h"

#include "absl/strings/str_cat.h"
#include "server/ended_tokens.h"
#include "server/rate_refusal.h"

namespace stepwell {
namespace {

constexpr absl::Duration kMemory = absl::Hours(1);
constexpr absl::Duration kSweepEach = absl::Seconds(1);
constexpr std::size_t kRightMax = 20'000;

}  // namespace

bool WrongTokens::WasRight(std::string_view place, const std::string& payer, SteadyTime now,
                           bool is_late) {
  const std::string key = absl::StrCat(absl::string_view(place.data(), place.size()), " ", payer);
  const absl::MutexLock lock(&mu_);
  const auto found = right_.find(key);
  if (found != right_.end()) {
    if (is_late && now - found->second > kMemory) return false;
    found->second = now;
    return true;
  }
  if (is_late) return false;
  if (right_.size() >= kRightMax && now - swept_ >= kSweepEach) {
    swept_ = now;
    absl::erase_if(right_, [now](const auto& entry) { return now - entry.second > kMemory; });
  }
  if (right_.size() < kRightMax) right_.emplace(key, now);
  return true;
}

absl::StatusOr<Caller> WrongTokens::Judge(std::string_view place, absl::StatusOr<Caller> found,
                                          SteadyTime now) {
  // Where the database does not say whether it lives nothing is learned of it.
  if (place.empty() || (!found.ok() && !absl::IsUnauthenticated(found.status()))) return found;
  const absl::Duration wait = addresses_.Wait(place, now);
  if (found.ok()) {
    if (*found == nullptr || WasRight(place, PayerOf(**found), now, wait > absl::ZeroDuration())) {
      return found;
    }
  } else if (wait == absl::ZeroDuration()) {
    if (!IsEndedTokenRefusal(found.status())) addresses_.Spend(place, 1, now);
    return found;
  }
  refused_.fetch_add(1, std::memory_order_relaxed);
  return RateRefusal("wrong-tokens-per-minute", per_minute_,
                     absl::StrCat("too many wrong tokens were shown from here: allowed are ",
                                  per_minute_, " a minute"),
                     wait);
}

}  // namespace stepwell
