#include "client/agent/process_reader.h"

#include <pthread.h>

#include <algorithm>
#include <iterator>
#include <utility>

namespace stepwell::agent {

std::optional<Reading> ProcessReader::Question::Await(absl::Duration patience) {
  absl::MutexLock lock(&mu_);
  const auto answered = [this]() ABSL_SHARED_LOCKS_REQUIRED(mu_) { return reading_.has_value(); };
  mu_.AwaitWithTimeout(absl::Condition(&answered), patience);
  return std::exchange(reading_, std::nullopt);
}

void ProcessReader::Question::Answer() {
  Reading reading(context_);
  sensor_->Read(reading);
  absl::MutexLock lock(&mu_);
  reading_ = std::move(reading);
}

struct ProcessReader::Desk {
  explicit Desk(const Clock& the_clock) : clock(the_clock) {}

  void Add(std::shared_ptr<Question> question) ABSL_LOCKS_EXCLUDED(mu) {
    absl::MutexLock lock(&mu);
    waiting.push_back(std::move(question));
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
    while (const std::shared_ptr<Question> question = Next()) question->Answer();
  }
  std::shared_ptr<Question> Next() ABSL_LOCKS_EXCLUDED(mu) {
    absl::MutexLock lock(&mu);
    busy = false;
    const auto due = [this]()
                         ABSL_SHARED_LOCKS_REQUIRED(mu) { return stopping || !waiting.empty(); };
    mu.Await(absl::Condition(&due));
    if (stopping) return nullptr;
    busy = true;
    begun_at = clock.Monotonic();
    std::shared_ptr<Question> question = std::move(waiting.front());
    waiting.pop_front();
    return question;
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
                                                            ReadingContext context) {
  auto question = std::make_shared<Question>(std::move(sensor), std::move(context));
  // Of those that nobody awaits any more none is kept.
  std::erase_if(waiting_, [](const auto& waits) { return waits.use_count() == 1; });
  waiting_.push_back(question);
  Tend();
  return question;
}

std::optional<Reading> ProcessReader::AwaitLast(Question& question) {
  const absl::Duration began_at = clock_.Monotonic();
  if (began_at - last_waits_since_ >= kLastWaitsInterval) {
    last_waits_since_ = began_at;
    last_waits_left_ = kLastWaits;
  }
  std::optional<Reading> reading = question.Await(last_waits_left_);
  const absl::Duration waited = clock_.Monotonic() - began_at;
  last_waits_left_ = std::max(last_waits_left_ - waited, absl::ZeroDuration());
  return reading;
}

void ProcessReader::Tend() {
  if (desk_ != nullptr && desk_->Hangs(patience_)) {
    Leave();
    Waiting left = desk_->TakeWaiting();
    waiting_.insert(waiting_.begin(), std::make_move_iterator(left.begin()),
                    std::make_move_iterator(left.end()));
    desk_ = nullptr;
  }
  if (waiting_.empty()) return;
  if (desk_ == nullptr) Start();
  if (desk_ == nullptr) return;
  for (std::shared_ptr<Question>& question : std::exchange(waiting_, {})) {
    desk_->Add(std::move(question));
  }
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
