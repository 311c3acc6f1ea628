#include "server/rate_limits.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/log.h"
#include "server/rate_refusal.h"

namespace stepwell {
namespace {

constexpr double kBurstSeconds = 10;
// Of the connections that an address may hold. All of them may break and come again, more than once.
constexpr double kConnectionsAtOnce = 4;
constexpr double kConnectionsInASecond = 0.1;

struct Words {
  const char* setting;
  const char* what;
};
// In the order of RateKind.
constexpr std::array<Words, kRateKinds> kWords = {{
    {"ingest-bytes-per-second", "bytes of samples or traces"},
    {"ingest-samples-per-second", "samples"},
    {"series-per-second", "new series"},
    {"opens-per-second", "writers to open"},
    {"calls-per-second", "calls"},
    {"read-bytes-per-second", "bytes of answers"},
}};

Rate TenSecondsOf(double per_second) {
  return {.per_second = per_second, .burst = per_second * kBurstSeconds};
}

}  // namespace

RateLimits::RateLimits(const Options& options, const Clock& clock)
    : shared_(options.shared_addresses.begin(), options.shared_addresses.end()),
      clock_(clock),
      kinds_{MakeKind(options.per_second[0]), MakeKind(options.per_second[1]),
             MakeKind(options.per_second[2]), MakeKind(options.per_second[3]),
             MakeKind(options.per_second[4]), MakeKind(options.per_second[5])},
      wrong_tokens_(options.wrong_tokens_per_minute),
      connections_({.per_second = kConnectionsInASecond * options.connections_per_address_max,
                    .burst = kConnectionsAtOnce * options.connections_per_address_max}) {}

RateLimits::Kind RateLimits::MakeKind(double per_second) {
  return {RateTable(TenSecondsOf(per_second)), RateTable(TenSecondsOf(per_second)), {0}, {0}};
}

std::string_view RateLimits::Counted(std::string_view address) const {
  return IsShared(address) ? std::string_view() : address;
}

RateLimits::Missing RateLimits::TryTake(RateKind kind, const RatePayer& payer, double amount,
                                        absl::Duration kept) {
  Kind& limits = Of(kind);
  const SteadyTime now = SteadyTime::Now(clock_);
  // Behind this use, unless that is more than may ever be there.
  const Rate& rate = limits.tokens.rate();
  const double left_then = absl::ToDoubleSeconds(kept) * rate.per_second;
  const double left = left_then > 0 ? std::min(left_then + amount, rate.burst - left_then) : 0;
  if (payer.token != nullptr) {
    const absl::Duration wait = limits.tokens.TryTake(PayerOf(*payer.token), amount, now, left);
    if (wait > absl::ZeroDuration()) return {wait, true};
  }
  const std::string_view address = Counted(payer.address);
  if (address.empty()) return {};
  const absl::Duration wait = limits.addresses.TryTake(address, amount, now, left);
  if (wait > absl::ZeroDuration() && payer.token != nullptr) {
    limits.tokens.GiveBack(PayerOf(*payer.token), amount, now);
  }
  return {wait, false};
}

absl::Status RateLimits::Take(RateKind kind, const RatePayer& payer, double amount) {
  const Missing missing = TryTake(kind, payer, amount);
  if (missing.wait == absl::ZeroDuration()) return absl::OkStatus();
  Of(kind).refused.fetch_add(1, std::memory_order_relaxed);
  const Words& words = kWords[static_cast<std::size_t>(kind)];
  const Rate& rate = Of(kind).tokens.rate();
  const std::string who =
      missing.is_of_token
          ? absl::StrCat("the token ", payer.token->id, " (", payer.token->name, ")")
          : absl::StrCat("the address ",
                         absl::string_view(payer.address.data(), payer.address.size()));
  return RateRefusal(
      words.setting, rate.per_second,
      absl::StrFormat("%s has used up its %s: allowed are %.0f a second, %.0f at once", who,
                      words.what, rate.per_second, rate.burst),
      missing.wait);
}

void RateLimits::Spend(RateKind kind, const RatePayer& payer, double amount) {
  Kind& limits = Of(kind);
  const SteadyTime now = SteadyTime::Now(clock_);
  if (payer.token != nullptr) limits.tokens.Spend(PayerOf(*payer.token), amount, now);
  const std::string_view address = Counted(payer.address);
  if (!address.empty()) limits.addresses.Spend(address, amount, now);
}

void RateLimits::NoteSlowed(RateKind kind, absl::Duration by) {
  Of(kind).slowed_us.fetch_add(absl::ToInt64Microseconds(by), std::memory_order_relaxed);
}

absl::StatusOr<Caller> RateLimits::JudgeToken(std::string_view address,
                                              absl::StatusOr<Caller> found) {
  const SteadyTime now = SteadyTime::Now(clock_);
  absl::StatusOr<Caller> judged = wrong_tokens_.Judge(Counted(address), std::move(found), now);
  if (absl::IsUnauthenticated(judged.status()) || absl::IsResourceExhausted(judged.status())) {
    LogRefusal(address, judged.status(), now);
  }
  return judged;
}

void RateLimits::LogRefusal(std::string_view address, const absl::Status& why, SteadyTime now) {
  const auto left_out = refused_log_.MaySay(now);
  if (!left_out) return;
  log::Warning("token_refused", {{"address", absl::string_view(address.data(), address.size())},
                                 {"why", why.message()},
                                 {"others_since", *left_out}});
}

bool RateLimits::MayConnect(std::string_view address) {
  const std::string_view counted = Counted(address);
  if (counted.empty()) return true;
  const bool may =
      connections_.TryTake(counted, 1, SteadyTime::Now(clock_)) == absl::ZeroDuration();
  if (!may) connections_refused_.fetch_add(1, std::memory_order_relaxed);
  return may;
}

RateCounts RateLimits::counts() const {
  RateCounts counts;
  for (std::size_t at = 0; at < kRateKinds; ++at) {
    counts.refused[at] = kinds_[at].refused.load(std::memory_order_relaxed);
    counts.slowed_seconds[at] =
        static_cast<double>(kinds_[at].slowed_us.load(std::memory_order_relaxed)) / 1e6;
  }
  counts.wrong_tokens = wrong_tokens_.refused_count();
  counts.connections = connections_refused_.load(std::memory_order_relaxed);
  counts.strangers = strangers_.load(std::memory_order_relaxed);
  return counts;
}

}  // namespace stepwell
