// RateLimits: how much one token, and one address, may ask of a master in a second: bytes and samples to write, series to
// make, writers to open, calls, bytes to read; how many wrong tokens it may show, and how often it may connect. Both allowances of a call
// are asked, its token's and its address'; addresses that many share (a proxy's) have none. Unary calls are refused, streams
// slowed (IngestStream, GrpcAnswers). Ten seconds' worth may come at once. Thread-safe; locks for each message, none for a sample.
//
//   STEPWELL_RETURN_IF_ERROR(limits.Take(RateKind::kCalls, {address, caller.get()}, 1));
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "base/sparing_log.h"
#include "server/caller.h"
#include "server/rate_table.h"
#include "server/wrong_tokens.h"

namespace stepwell {

enum class RateKind { kIngestBytes, kIngestSamples, kSeries, kOpens, kCalls, kReadBytes };
inline constexpr std::size_t kRateKinds = 6;

// Whom a call is counted for. Borrowed.
struct RatePayer {
  std::string_view address;            // as AddressKey; empty = not known, nothing is counted
  const TokenHolder* token = nullptr;  // null: nobody is asked for one
};

// What became of it, since the start.
struct RateCounts {
  std::array<std::uint64_t, kRateKinds> refused = {};
  std::array<double, kRateKinds> slowed_seconds = {};
  std::uint64_t wrong_tokens = 0;  // refused
  std::uint64_t connections = 0;   // refused
  std::uint64_t strangers = 0;     // whose connections were not taken, or ended
};

class RateLimits {
 public:
  struct Options {
    // In the order of RateKind.
    std::array<double, kRateKinds> per_second = {268'435'456, 50'000'000, 10'000,
                                                 1'000,       2'000,      268'435'456};
    double wrong_tokens_per_minute = 60;
    // That one address may hold: four times as many may begin at once, and a tenth in each second.
    double connections_per_address_max = 256;
    // As AddressKey.
    std::set<std::string> shared_addresses = {};
  };
  // `clock` outlives it.
  RateLimits(const Options& options, const Clock& clock);

  // kResourceExhausted (RateRefusal): nothing was taken.
  absl::Status Take(RateKind kind, const RatePayer& payer, double amount);
  struct Missing {
    absl::Duration wait = absl::ZeroDuration();  // zero: nothing is, and it was taken
    bool is_of_token = false;                    // else its address'
  };
  // Likewise, without words, for who waits by himself, and leaves what comes in `kept` to those that do not, unless the
  // amount is as large as all that comes at once. REQUIRES: 0 <= kept < 5 s.
  Missing TryTake(RateKind kind, const RatePayer& payer, double amount,
                  absl::Duration kept = absl::ZeroDuration());
  // Of what was done already.
  void Spend(RateKind kind, const RatePayer& payer, double amount);
  // Of a stream that was not read for so long.
  void NoteSlowed(RateKind kind, absl::Duration by);

  // As WrongTokens::Judge; `address` as AddressKey. What is refused stands in the log, where it came from and why, one line a second.
  absl::StatusOr<Caller> JudgeToken(std::string_view address, absl::StatusOr<Caller> found);
  // Whether one more connection of gRPC may begin: of an address that makes more than any client does, each to show wrong
  // tokens on, none.
  bool MayConnect(std::string_view address);
  // A connection on which nobody is known was not taken, or ended.
  void NoteStranger() { strangers_.fetch_add(1, std::memory_order_relaxed); }

  // Whether many share it, so that it has no allowance of its own.
  bool IsShared(std::string_view address) const { return shared_.find(address) != shared_.end(); }

  RateCounts counts() const;

 private:
  struct Kind {
    RateTable tokens;
    RateTable addresses;
    std::atomic<std::uint64_t> refused{0};
    std::atomic<std::int64_t> slowed_us{0};
  };
  static Kind MakeKind(double per_second);
  // Empty where it has no allowance of its own.
  std::string_view Counted(std::string_view address) const;
  void LogRefusal(std::string_view address, const absl::Status& why, SteadyTime now);
  Kind& Of(RateKind kind) { return kinds_[static_cast<std::size_t>(kind)]; }

  const std::set<std::string, std::less<>> shared_;
  const Clock& clock_;
  std::array<Kind, kRateKinds> kinds_;
  WrongTokens wrong_tokens_;
  RateTable connections_;
  SparingLog refused_log_;
  std::atomic<std::uint64_t> connections_refused_{0};
  std::atomic<std::uint64_t> strangers_{0};
};

}  // namespace stepwell
