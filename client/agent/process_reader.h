// ProcessReader: reads what recording processes use, one after the other on one watched thread, for
// nobody waits: who asks comes back for the answer. A reading that hangs (/proc/PID/io waits while that
// process is held up in execve) keeps the thread, and another goes on with the rest; where too many hang the rest
// waits, unanswered. It stands between the ranks' ProcessSamplers and the kernel. Confined to the agent's loop, but for its thread.
//
//   ProcessReader reader(clock);
//   auto question = reader.Ask(sensor, context);
//   if (std::optional<Reading> reading = question->Await(absl::ZeroDuration())) ...
#pragma once

#include <atomic>
#include <deque>
#include <memory>
#include <optional>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "client/agent/sensors/sensor.h"

namespace stepwell::agent {

class ProcessReader {
 public:
  // Thread-safe.
  class Question {
   public:
    Question(std::shared_ptr<Sensor> sensor, ReadingContext context)
        : sensor_(std::move(sensor)), context_(std::move(context)) {}
    // The answer, once; none within `patience`.
    std::optional<Reading> Await(absl::Duration patience) ABSL_LOCKS_EXCLUDED(mu_);
    void Answer() ABSL_LOCKS_EXCLUDED(mu_);

   private:
    const std::shared_ptr<Sensor> sensor_;  // the asker's, who leaves it alone meanwhile
    const ReadingContext context_;
    absl::Mutex mu_;
    std::optional<Reading> reading_ ABSL_GUARDED_BY(mu_);
  };

  // Longer than a busy machine keeps a thread waiting.
  static constexpr absl::Duration kPatience = absl::Milliseconds(500);
  // Threads that hang; from so many on none is begun beside them.
  static constexpr int kHangingMax = 8;
  // AwaitLast waits so long in each such interval, for all together: a reading takes some 50 us, and
  // a busy machine lets it wait.
  static constexpr absl::Duration kLastWaits = absl::Milliseconds(50);
  static constexpr absl::Duration kLastWaitsInterval = absl::Seconds(1);

  // `clock` outlives the reader, and any thread of it that hangs. Threads begin with the file rights
  // of whoever asks first, or asks when one hangs.
  explicit ProcessReader(const Clock& clock, absl::Duration patience = kPatience)
      : clock_(clock), patience_(patience) {}
  // A thread that reads is left behind, with what it needs.
  ~ProcessReader();
  ProcessReader(const ProcessReader&) = delete;
  ProcessReader& operator=(const ProcessReader&) = delete;

  // Does not wait. Who asked does so again when this was answered: so many questions wait at most as
  // there are who ask.
  std::shared_ptr<Question> Ask(std::shared_ptr<Sensor> sensor, ReadingContext context);
  // The answer for who cannot come back, as long as the loop can wait.
  std::optional<Reading> AwaitLast(Question& question);
  // Gives up on a reading that hangs. Whoever misses an answer calls it.
  void Tend();

 private:
  struct Desk;  // a thread's: what waits, and what is at hand
  using Waiting = std::deque<std::shared_ptr<Question>>;
  // Where none serves and one may.
  void Start();
  void Leave();

  const Clock& clock_;
  const absl::Duration patience_;
  std::shared_ptr<Desk> desk_;  // the reader's and the thread's; null = none serves
  std::thread thread_;
  // While no thread serves.
  Waiting waiting_;
  // The reader's, and counted down by those that come back.
  const std::shared_ptr<std::atomic<int>> hanging_count_ = std::make_shared<std::atomic<int>>(0);
  absl::Duration last_waits_since_ = -absl::InfiniteDuration();
  absl::Duration last_waits_left_;
};

}  // namespace stepwell::agent
