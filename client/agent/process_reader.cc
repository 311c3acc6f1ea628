#include "client/agent/process_reader.h"

#include <pthread.h>

#include <deque>
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
  using Waiting = std::deque<std::shared_ptr<Question>>;
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
    return busy;
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
  absl::Mutex mu;
  Waiting waiting ABSL_GUARDED_BY(mu);
  bool busy ABSL_GUARDED_BY(mu) = false;
  absl::Duration begun_at ABSL_GUARDED_BY(mu);
  bool stopping ABSL_GUARDED_BY(mu) = false;
};

ProcessReader::~ProcessReader() {
  if (desk_ != nullptr) Leave();
}

void ProcessReader::Leave() {
  if (desk_->Stop()) {
    thread_.detach();
  } else {
    thread_.join();
  }
}

std::shared_ptr<ProcessReader::Question> ProcessReader::Ask(std::shared_ptr<Sensor> sensor,
                                                            ReadingContext context) {
  Tend();
  if (desk_ == nullptr) Start();
  auto question = std::make_shared<Question>(std::move(sensor), std::move(context));
  desk_->Add(question);
  return question;
}

void ProcessReader::Tend() {
  if (desk_ == nullptr || !desk_->Hangs(patience_)) return;
  Leave();
  Desk::Waiting waiting = desk_->TakeWaiting();
  desk_ = nullptr;
  if (waiting.empty()) return;
  Start();
  for (std::shared_ptr<Question>& question : waiting) desk_->Add(std::move(question));
}

void ProcessReader::Start() {
  desk_ = std::make_shared<Desk>(clock_);
  thread_ = std::thread([desk = desk_] {
    pthread_setname_np(pthread_self(), "sense-process");
    desk->Serve();
  });
}

}  // namespace stepwell::agent
