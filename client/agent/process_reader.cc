#include "client/agent/process_reader.h"

#include <pthread.h>

#include <algorithm>
#include <utility>

namespace stepwell::agent {

std::optional<ProcessReader::Answer> ProcessReader::Question::Await(absl::Duration patience) {
  absl::MutexLock lock(&mu_);
  const auto settled = [this]() ABSL_SHARED_LOCKS_REQUIRED(mu_) {
    return !answers_.empty() || !HasMore();
  };
  mu_.AwaitWithTimeout(absl::Condition(&settled), patience);
  if (answers_.empty()) return std::nullopt;
  Answer answer = std::move(answers_.front());
  answers_.pop_front();
  return answer;
}

bool ProcessReader::Question::HasMore() const {
  return !begun_ || busy_ || (times_ && times_->schedule.due() <= times_->until);
}

bool ProcessReader::Question::is_idle() const {
  absl::MutexLock lock(&mu_);
  return begun_ && !busy_;
}

bool ProcessReader::Question::ended() const {
  absl::MutexLock lock(&mu_);
  return answers_.empty() && !HasMore();
}

void ProcessReader::Question::GoOnUntil(absl::Duration until) {
  absl::MutexLock lock(&mu_);
  // One that has ended waits nowhere any more.
  if (times_ && HasMore()) times_->until = until;
}

void ProcessReader::Question::End() {
  absl::MutexLock lock(&mu_);
  if (times_) times_->until = -absl::InfiniteDuration();
}

std::optional<TickSchedule> ProcessReader::Question::schedule() const {
  absl::MutexLock lock(&mu_);
  return times_ ? std::optional(times_->schedule) : std::nullopt;
}

absl::Duration ProcessReader::Question::Read() {
  Answer answer{absl::ToUnixMicros(context_.clock->Now()), 0, Reading(context_)};
  {
    absl::MutexLock lock(&mu_);
    if (!HasMore()) return absl::InfiniteDuration();
    if (begun_) answer.late_count = times_->schedule.Take(context_.clock->Monotonic());
    begun_ = true;
    busy_ = true;
  }
  sensor_->Read(answer.reading);
  absl::MutexLock lock(&mu_);
  busy_ = false;
  answers_.push_back(std::move(answer));
  return HasMore() ? times_->schedule.due() : absl::InfiniteDuration();
}

struct ProcessReader::Desk {
  explicit Desk(const Clock& the_clock) : clock(the_clock) {}

  void Add(absl::Duration due, std::shared_ptr<Question> question) ABSL_LOCKS_EXCLUDED(mu) {
    absl::MutexLock lock(&mu);
    waiting.emplace(due, std::move(question));
  }
  bool Hangs(absl::Duration patience) ABSL_LOCKS_EXCLUDED(mu) {
    absl::MutexLock lock(&mu);
    return busy && clock.Monotonic() - begun_at > patience;
  }
  // No more is begun. Whether the thread is at one.
  bool Stop() ABSL_LOCKS_EXCLUDED(mu) {
    absl::MutexLock lock(&mu);
    stopping = true;
    left = busy;
    return busy;
  }
  // It was stopped while its thread was at a question.
  bool left_busy() const ABSL_LOCKS_EXCLUDED(mu) {
    absl::MutexLock lock(&mu);
    return left;
  }
  Waiting TakeWaiting() ABSL_LOCKS_EXCLUDED(mu) {
    absl::MutexLock lock(&mu);
    return std::move(waiting);
  }
  void Serve() {
    while (const std::shared_ptr<Question> question = Next()) {
      const absl::Duration due = question->Read();
      if (left_busy()) question->End();  // nobody reads it again
      if (due < absl::InfiniteDuration()) Add(due, question);
    }
  }
  std::shared_ptr<Question> Next() ABSL_LOCKS_EXCLUDED(mu) {
    absl::MutexLock lock(&mu);
    busy = false;
    while (!stopping) {
      const absl::Duration due =
          waiting.empty() ? absl::InfiniteDuration() : waiting.begin()->first;
      const absl::Duration now = clock.Monotonic();
      if (due <= now) {
        std::shared_ptr<Question> question = std::move(waiting.extract(waiting.begin()).mapped());
        // Nobody awaits it any more.
        if (question.use_count() == 1) continue;
        busy = true;
        begun_at = now;
        return question;
      }
      const auto changed = [this, due]() ABSL_SHARED_LOCKS_REQUIRED(mu) {
        return stopping || (!waiting.empty() && waiting.begin()->first < due);
      };
      mu.AwaitWithTimeout(absl::Condition(&changed), due - now);
    }
    return nullptr;
  }

  const Clock& clock;
  mutable absl::Mutex mu;
  Waiting waiting ABSL_GUARDED_BY(mu);
  bool busy ABSL_GUARDED_BY(mu) = false;
  absl::Duration begun_at ABSL_GUARDED_BY(mu);
  bool stopping ABSL_GUARDED_BY(mu) = false;
  bool left ABSL_GUARDED_BY(mu) = false;
};

ProcessReader::~ProcessReader() {
  if (desk_ != nullptr) Leave();
}

void ProcessReader::Leave() {
  // Counted first: the thread counts itself off as soon as it sees that it was left.
  ++*hanging_count_;
  if (desk_->Stop()) {
    thread_.detach();
  } else {
    --*hanging_count_;
    thread_.join();
  }
}

std::shared_ptr<ProcessReader::Question> ProcessReader::Ask(std::shared_ptr<Sensor> sensor,
                                                            ReadingContext context,
                                                            std::optional<Times> times) {
  auto question =
      std::make_shared<Question>(std::move(sensor), std::move(context), std::move(times));
  // Of those that nobody awaits any more none is kept.
  std::erase_if(waiting_, [](const auto& waits) { return waits.second.use_count() == 1; });
  waiting_.emplace(clock_.Monotonic(), question);
  Tend();
  return question;
}

std::optional<ProcessReader::Answer> ProcessReader::AwaitLast(Question& question) {
  const absl::Duration began_at = clock_.Monotonic();
  if (began_at - last_waits_since_ >= kLastWaitsInterval) {
    last_waits_since_ = began_at;
    last_waits_left_ = kLastWaits;
  }
  std::optional<Answer> answer = question.Await(last_waits_left_);
  const absl::Duration waited = clock_.Monotonic() - began_at;
  last_waits_left_ = std::max(last_waits_left_ - waited, absl::ZeroDuration());
  return answer;
}

void ProcessReader::Tend() {
  if (desk_ != nullptr && desk_->Hangs(patience_)) {
    Leave();
    waiting_.merge(desk_->TakeWaiting());
    desk_ = nullptr;
  }
  if (waiting_.empty()) return;
  if (desk_ == nullptr) Start();
  if (desk_ == nullptr) return;
  for (auto& [due, question] : std::exchange(waiting_, {})) desk_->Add(due, question);
}

void ProcessReader::Start() {
  if (*hanging_count_ >= kHangingMax) return;
  desk_ = std::make_shared<Desk>(clock_);
  thread_ = std::thread([desk = desk_, hanging_count = hanging_count_] {
    pthread_setname_np(pthread_self(), "sense-process");
    desk->Serve();
    if (desk->left_busy()) --*hanging_count;
  });
}

}  // namespace stepwell::agent
