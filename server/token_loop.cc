#include "server/token_loop.h"

#include <utility>

#include "base/log.h"
#include "base/status_macros.h"

namespace stepwell {
namespace {

constexpr absl::Duration kLookEach = absl::Seconds(1);
constexpr absl::Duration kNoteEach = absl::Minutes(1);
// What is remembered of those that ended before this master began.
constexpr int kEndedMax = 10'000;
// A call that began as its token ended is found by the next look, a second later; there are two tells a look.
constexpr int kTells = 5;

}  // namespace

void TokenLoop::Start() {
  worker_ = Worker("tokens", [this] { Run(); });
}

void TokenLoop::Stop() {
  {
    const absl::MutexLock lock(&mu_);
    stopping_ = true;
  }
  worker_.Join();
}

bool TokenLoop::WaitForTime() {
  const auto has_news = [this]() ABSL_SHARED_LOCKS_REQUIRED(mu_) {
    return stopping_ || has_ended_some_;
  };
  const absl::MutexLock lock(&mu_);
  mu_.AwaitWithTimeout(absl::Condition(&has_news), kLookEach);
  has_ended_some_ = false;
  return !stopping_;
}

void TokenLoop::EndNow(const std::string& id) {
  parts_.guard.EndNow(id);
  const absl::MutexLock lock(&mu_);
  has_ended_some_ = true;
}

void TokenLoop::Run() {
  do {
    // What a file and a clock say waits for no database.
    EndDue();
    const absl::Status looked = Look();
    if (!looked.ok() && !is_failing_) {
      log::Warning("tokens_not_read", {{"status", looked.ToString()}});
    }
    is_failing_ = !looked.ok();
    EndDue();
    if (parts_.clock.Monotonic() - used_noted_ >= kNoteEach) NoteUsed();
  } while (WaitForTime());
  NoteUsed();
}

void TokenLoop::EndDue() {
  parts_.guard.LookAround();
  TellEnded();
}

absl::Status TokenLoop::Look() {
  const absl::MutexLock lock(&learning_);
  if (parts_.guard.TakeMissing()) numbers_ = {-1, -1};
  const absl::Duration asked = parts_.clock.Monotonic();
  STEPWELL_ASSIGN_OR_RETURN(const TokenNumbers numbers, parts_.store.ReadNumbers());
  if (numbers.change_no != numbers_.change_no) return Learn();
  if (numbers.fetch_no != numbers_.fetch_no) return LearnFetched();
  parts_.guard.Confirm(asked);
  return absl::OkStatus();
}

absl::Status TokenLoop::LearnNow() {
  const absl::MutexLock lock(&learning_);
  return Learn();
}

absl::Status TokenLoop::Learn() {
  const absl::Duration asked = parts_.clock.Monotonic();
  STEPWELL_ASSIGN_OR_RETURN(const LivingTokens living, parts_.store.ReadLiving());
  parts_.guard.Learn(living.tokens, asked);
  // Once: who ends later is seen to end.
  if (!knows_ended_) LearnEnded();
  numbers_ = living.numbers;
  return absl::OkStatus();
}

void TokenLoop::LearnEnded() {
  const auto ended = parts_.store.ReadEnded(kEndedMax);
  // Nobody who lives waits for it: the next Learn asks again.
  if (!ended.ok())
    return log::Warning("ended_tokens_not_read", {{"why", ended.status().message()}});
  parts_.guard.LearnEnded(*ended);
  knows_ended_ = true;
}

absl::Status TokenLoop::LearnFetchedNow(const std::string& id) {
  const absl::MutexLock lock(&learning_);
  // Of many who fetch at once the first that comes here asks for all.
  if (parts_.guard.Knows(id)) return absl::OkStatus();
  return LearnFetched();
}

absl::Status TokenLoop::LearnFetched() {
  const absl::Duration asked = parts_.clock.Monotonic();
  STEPWELL_ASSIGN_OR_RETURN(const LivingTokens fetched,
                            parts_.store.ReadFetched(numbers_.fetch_no));
  // What was revoked meanwhile is not for this.
  if (fetched.numbers.change_no != numbers_.change_no) return Learn();
  parts_.guard.LearnFetched(fetched.tokens, asked);
  numbers_.fetch_no = fetched.numbers.fetch_no;
  return absl::OkStatus();
}

void TokenLoop::TellEnded() {
  const std::int64_t ended = parts_.guard.ended_count();
  if (ended != std::exchange(ended_told_, ended)) tells_left_ = kTells;
  if (tells_left_ == 0) return;
  --tells_left_;
  parts_.on_ended();
}

void TokenLoop::NoteUsed() {
  used_noted_ = parts_.clock.Monotonic();
  const auto used = parts_.guard.TakeUsed();
  if (used.empty()) return;
  const absl::Status noted = parts_.store.NoteUsed(used);
  if (!noted.ok()) log::Warning("token_use_not_noted", {{"status", noted.ToString()}});
}

}  // namespace stepwell
