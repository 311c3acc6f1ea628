// TrialTokensTest: a thread that fetches, its masters as they are told to be, and a clock that moves when told.
#pragma once

#include <gtest/gtest.h>
#include <sys/fsuid.h>
#include <unistd.h>

#include <atomic>
#include <deque>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/steady_time.h"
#include "client/agent/file_owner.h"
#include "client/agent/trial_tokens.h"

namespace stepwell::agent {

inline constexpr char kServer[] = "master:7817";
inline constexpr absl::Duration kPatience = absl::Seconds(30);

// Moves when told, and knows how often it was looked at: a thread that looks has done all that was due.
class WatchedClock final : public Clock {
 public:
  absl::Time Now() const override { return clock_.Now(); }
  absl::Duration Monotonic() const override {
    ++looks_;
    return clock_.Monotonic();
  }
  void Advance(absl::Duration by) { clock_.Advance(by); }
  std::uint64_t looks() const { return looks_; }

 private:
  FakeClock clock_;
  mutable std::atomic<std::uint64_t> looks_{0};
};

struct Asked {
  std::string server;
  std::string with;
  v1::TrialRef trial;
  absl::Duration at;
  int with_files_of;  // whose rights the thread has
};

// Masters as they are told to be, all in one.
struct FakeMasters {
  explicit FakeMasters(const Clock& its_clock) : clock(its_clock) {}
  const Clock& clock;
  absl::Mutex mu;
  std::deque<absl::StatusOr<v1::FetchIngestTokenResponse>> answers ABSL_GUARDED_BY(mu);
  // Once those are used up; a token of an hour each where it is OK.
  absl::Status then ABSL_GUARDED_BY(mu);
  std::string silent_server ABSL_GUARDED_BY(mu);
  bool hangs ABSL_GUARDED_BY(mu) = false;
  int lets_through ABSL_GUARDED_BY(mu) = 0;  // calls, though it hangs
  bool renews ABSL_GUARDED_BY(mu) = false;
  bool is_cancelled ABSL_GUARDED_BY(mu) = false;
  std::vector<Asked> asked ABSL_GUARDED_BY(mu);
};

inline v1::FetchIngestTokenResponse TokenOf(const std::string& text, absl::Duration lives) {
  v1::FetchIngestTokenResponse response;
  response.set_text(text);
  response.mutable_token()->set_token_id(absl::StrCat("id of ", text.size()));
  response.mutable_token()->set_created_time_us(1'700'000'000'000'000);
  response.mutable_token()->set_expires_time_us(1'700'000'000'000'000 +
                                                absl::ToInt64Microseconds(lives));
  return response;
}

class FakeCalls : public TokenCalls {
 public:
  explicit FakeCalls(FakeMasters& masters) : masters_(masters) {}
  absl::StatusOr<v1::FetchIngestTokenResponse> Fetch(
      const std::string& server, const std::string& token,
      const v1::FetchIngestTokenRequest& request) override {
    const absl::Duration at = masters_.clock.Monotonic();
    const absl::MutexLock lock(&masters_.mu);
    masters_.asked.push_back(
        {server, token, request.trial(), at, setfsuid(static_cast<uid_t>(-1))});
    const auto goes_on = [this]() ABSL_SHARED_LOCKS_REQUIRED(masters_.mu) {
      return !masters_.hangs || masters_.lets_through > 0 || masters_.is_cancelled;
    };
    masters_.mu.Await(absl::Condition(&goes_on));
    if (masters_.hangs) --masters_.lets_through;
    if (masters_.is_cancelled) return absl::CancelledError("cancelled");
    if (server == masters_.silent_server) return absl::DeadlineExceededError("silent");
    if (!masters_.answers.empty()) {
      auto answer = std::move(masters_.answers.front());
      masters_.answers.pop_front();
      return answer;
    }
    if (!masters_.then.ok()) return masters_.then;
    auto response = TokenOf(absl::StrCat("text-", ++made_), absl::Hours(1));
    response.set_renews(masters_.renews);
    return response;
  }
  void Cancel() override {
    const absl::MutexLock lock(&masters_.mu);
    masters_.is_cancelled = true;
  }

 private:
  FakeMasters& masters_;
  int made_ = 0;
};

class TrialTokensTest : public ::testing::Test {
 protected:
  TrialTokensTest() { Make({.own_token = "own"}); }
  void Make(TrialTokens::Options options) {
    tokens_.reset();
    {
      const absl::MutexLock lock(&masters_.mu);
      masters_.is_cancelled = false;
    }
    options.look_interval = absl::Microseconds(100);
    options.on_change = [this] { ++changes_; };
    tokens_ = std::make_unique<TrialTokens>(std::move(options),
                                            std::make_unique<FakeCalls>(masters_), clock_);
  }
  // What is shown was fetched itself, whatever it is.
  void Renew() {
    const absl::MutexLock lock(&masters_.mu);
    masters_.renews = true;
  }
  std::shared_ptr<TrialToken> For(const std::string& trial) {
    return tokens_->For(kServer, "vision", trial);
  }
  static bool Becomes(const std::function<bool()>& what) {
    const SteadyTime deadline = SteadyTime::Now() + kPatience;
    while (!what()) {
      if (deadline.HasPassed()) return false;
      absl::SleepFor(absl::Milliseconds(1));
    }
    return true;
  }
  std::vector<Asked> asked() {
    const absl::MutexLock lock(&masters_.mu);
    return masters_.asked;
  }
  // The call may be under way still: a clock that moves now makes everything that follows later by as much.
  bool AskedTimes(std::size_t times) {
    return Becomes([&] { return asked().size() >= times; });
  }
  // And what was answered is taken, by the time at which it was asked.
  bool Answered(std::size_t times) {
    if (!AskedTimes(times)) return false;
    Settle();
    return !HasFatalFailure();
  }
  // All that is due by now was done, of up to four trials: it looks twice in each round, and up to six times more where it asks.
  void Settle() {
    const std::uint64_t before = clock_.looks();
    ASSERT_TRUE(Becomes([&] { return clock_.looks() >= before + 40; }));
  }
  void Advance(absl::Duration by) {
    clock_.Advance(by);
    Settle();
  }
  void Answer(absl::StatusOr<v1::FetchIngestTokenResponse> answer) {
    const absl::MutexLock lock(&masters_.mu);
    masters_.answers.push_back(std::move(answer));
  }
  void Then(const absl::Status& status) {
    const absl::MutexLock lock(&masters_.mu);
    masters_.then = status;
  }

  WatchedClock clock_;
  FakeMasters masters_{clock_};
  std::atomic<int> changes_{0};
  std::unique_ptr<TrialTokens> tokens_;
};

}  // namespace stepwell::agent
