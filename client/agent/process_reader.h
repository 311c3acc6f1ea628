// ProcessReader: reads what recording processes use, one after the other on one watched thread, for
// nobody waits: who asks comes back for the answers. One may ask for many, at the times of a schedule:
// the agent's loop comes too seldom for them. A reading that hangs (/proc/PID/io waits while that
// process is held up in execve) keeps the thread, and another goes on with the rest; where too many hang the rest
// waits, unanswered. It stands between the ranks' ProcessSamplers and the kernel. Confined to the agent's loop, but for its thread.
//
//   ProcessReader reader(clock);
//   auto question = reader.Ask(sensor, context);
//   if (auto answer = question->Await(absl::ZeroDuration())) Use(answer->reading);
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "client/agent/sensors/sensor.h"
#include "client/agent/sensors/tick_schedule.h"

namespace stepwell::agent {

class ProcessReader {
 public:
  struct Answer {
    // When the reading began.
    std::int64_t time_us = 0;
    // Times of the schedule before this one that had passed when the thread came to them.
    std::uint64_t late_count = 0;
    Reading reading;
  };
  // When the readings after the first are due, and up to which time.
  struct Times {
    TickSchedule schedule;
    absl::Duration until;
  };

  // Thread-safe.
  class Question {
   public:
    // The first reading is due at once; without `times` it is the only one.
    Question(std::shared_ptr<Sensor> sensor, ReadingContext context, std::optional<Times> times)
        : sensor_(std::move(sensor)), context_(std::move(context)), times_(std::move(times)) {}
    // The oldest answer that was not taken; none within `patience`, or when none will come.
    std::optional<Answer> Await(absl::Duration patience) ABSL_LOCKS_EXCLUDED(mu_);
    // It waits for its time, or has ended; nobody reads, and the first reading is over.
    bool is_idle() const ABSL_LOCKS_EXCLUDED(mu_);
    // All answers were given: whoever asked may ask again with the same sensor.
    bool ended() const ABSL_LOCKS_EXCLUDED(mu_);
    // Of one with times.
    void GoOnUntil(absl::Duration until) ABSL_LOCKS_EXCLUDED(mu_);
    // No reading begins after the first.
    void End() ABSL_LOCKS_EXCLUDED(mu_);
    // What is due next.
    std::optional<TickSchedule> schedule() const ABSL_LOCKS_EXCLUDED(mu_);

    // The thread's: reads once. When to read again; never = no more.
    absl::Duration Read() ABSL_LOCKS_EXCLUDED(mu_);

   private:
    bool HasMore() const ABSL_SHARED_LOCKS_REQUIRED(mu_);

    const std::shared_ptr<Sensor> sensor_;  // the asker's, who leaves it alone meanwhile
    const ReadingContext context_;
    mutable absl::Mutex mu_;
    std::optional<Times> times_ ABSL_GUARDED_BY(mu_);
    bool begun_ ABSL_GUARDED_BY(mu_) = false;
    bool busy_ ABSL_GUARDED_BY(mu_) = false;
    // The asker's times end soon after it last came.
    std::deque<Answer> answers_ ABSL_GUARDED_BY(mu_);
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

  // Does not wait. Who asked does so again when this has ended: so many questions wait at most as
  // there are who ask.
  std::shared_ptr<Question> Ask(std::shared_ptr<Sensor> sensor, ReadingContext context,
                                std::optional<Times> times = std::nullopt);
  // An answer for who cannot come back, as long as the loop can wait.
  std::optional<Answer> AwaitLast(Question& question);
  // Gives up on a reading that hangs. Whoever misses an answer calls it.
  void Tend();
  absl::Duration patience() const { return patience_; }

 private:
  struct Desk;  // a thread's: what waits, and what is at hand
  // By the times at which they are due.
  using Waiting = std::multimap<absl::Duration, std::shared_ptr<Question>>;
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
