#include "client/agent/sensors/sensor_round.h"

#include <pthread.h>

#include <algorithm>
#include <optional>
#include <thread>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace stepwell::agent {

// Its thread owns it together with the round, or with the place that it hangs in.
class SensorRound::Reader {
 public:
  struct Turn {
    std::shared_ptr<Sensor> sensor;
    bool forget = false;
  };
  // How far it came.
  struct Progress {
    std::vector<Reading> readings;  // of the first turns
    // In the turn behind those, since then. None: it did not even come to begin it.
    std::optional<absl::Duration> hangs_since;
  };

  explicit Reader(const Clock& clock) : clock_(clock) {}

  static std::shared_ptr<Reader> Start(const Clock& clock) {
    auto reader = std::make_shared<Reader>(clock);
    reader->thread_ = std::thread([reader] {
      pthread_setname_np(pthread_self(), "sense-kernel");
      reader->Serve();
    });
    return reader;
  }
  // REQUIRES: all turns are done.
  void Stop() {
    Leave();
    thread_.join();
  }
  // It ends by itself when its call returns.
  void Abandon() {
    Leave();
    thread_.detach();
  }
  // Touches no sensor any more.
  bool gone() const ABSL_LOCKS_EXCLUDED(mu_) {
    absl::MutexLock lock(&mu_);
    return gone_;
  }

  // REQUIRES: all turns before are done.
  void Ask(std::vector<Turn> turns, const ReadingContext& context) ABSL_LOCKS_EXCLUDED(mu_) {
    absl::MutexLock lock(&mu_);
    turns_ = std::move(turns);
    context_ = context;
    begun_count_ = 0;
    begun_at_ = clock_.Monotonic();
    readings_.clear();
  }
  // Until all is done, or a turn takes `patience`, or until `end`.
  Progress Await(absl::Duration patience, absl::Duration end) ABSL_LOCKS_EXCLUDED(mu_) {
    absl::MutexLock lock(&mu_);
    const auto done = [this]() ABSL_SHARED_LOCKS_REQUIRED(mu_) { return DoneLocked(); };
    while (!DoneLocked()) {
      const absl::Duration left = std::min(begun_at_ + patience, end) - clock_.Monotonic();
      if (left <= absl::ZeroDuration()) break;
      mu_.AwaitWithTimeout(absl::Condition(&done), left);
    }
    Progress progress;
    if (begun_count_ > readings_.size()) progress.hangs_since = begun_at_;
    progress.readings = std::move(readings_);
    if (progress.readings.size() < turns_.size()) leaving_ = true;
    return progress;
  }

 private:
  bool DoneLocked() const ABSL_SHARED_LOCKS_REQUIRED(mu_) {
    return readings_.size() == turns_.size();
  }
  void Leave() ABSL_LOCKS_EXCLUDED(mu_) {
    absl::MutexLock lock(&mu_);
    leaving_ = true;
  }
  void Serve() {
    while (std::optional<Turn> turn = Next()) {
      Reading reading(Context());
      if (turn->forget) turn->sensor->Forget();
      turn->sensor->Read(reading);
      absl::MutexLock lock(&mu_);
      // Nobody waits any more for what comes that late.
      if (!leaving_) readings_.push_back(std::move(reading));
    }
  }
  std::optional<Turn> Next() ABSL_LOCKS_EXCLUDED(mu_) {
    absl::MutexLock lock(&mu_);
    const auto due = [this]() ABSL_SHARED_LOCKS_REQUIRED(mu_) {
      return leaving_ || begun_count_ < turns_.size();
    };
    mu_.Await(absl::Condition(&due));
    if (leaving_) {
      gone_ = true;
      return std::nullopt;
    }
    begun_at_ = clock_.Monotonic();
    return turns_[begun_count_++];
  }
  ReadingContext Context() const ABSL_LOCKS_EXCLUDED(mu_) {
    absl::MutexLock lock(&mu_);
    return *context_;
  }

  const Clock& clock_;
  std::thread thread_;  // the round's

  mutable absl::Mutex mu_;
  std::vector<Turn> turns_ ABSL_GUARDED_BY(mu_);
  std::optional<ReadingContext> context_ ABSL_GUARDED_BY(mu_);
  std::size_t begun_count_ ABSL_GUARDED_BY(mu_) = 0;
  absl::Duration begun_at_ ABSL_GUARDED_BY(mu_);
  std::vector<Reading> readings_ ABSL_GUARDED_BY(mu_);
  bool leaving_ ABSL_GUARDED_BY(mu_) = false;
  bool gone_ ABSL_GUARDED_BY(mu_) = false;
};

SensorRound::SensorRound(absl::Duration patience, const Clock& clock)
    : patience_(patience), clock_(clock) {}

SensorRound::~SensorRound() {
  if (reader_ != nullptr) reader_->Stop();
}

void SensorRound::Add(std::unique_ptr<Sensor> sensor) {
  Place& place = places_.emplace_back();
  place.sensor = std::move(sensor);
}

void SensorRound::Forget() {
  for (Place& place : places_) place.forget = true;
}

void SensorRound::Read(Cadence cadence, const ReadingContext& context, Reading& reading) {
  std::vector<Place*> due = Due(cadence, context, reading);
  const absl::Duration end = clock_.Monotonic() + 2 * patience_;
  while (!due.empty()) {
    const std::size_t read_count = ReadSome(due, context, end, reading);
    due.erase(due.begin(), due.begin() + static_cast<std::ptrdiff_t>(read_count));
    if (clock_.Monotonic() < end) continue;
    for (const Place* place : due) {
      Miss(*place, absl::DeadlineExceededError("not asked: others took too long"), reading);
    }
    return;
  }
}

std::vector<SensorRound::Place*> SensorRound::Due(Cadence cadence, const ReadingContext& context,
                                                  Reading& reading) {
  std::vector<Place*> due;
  for (Place& place : places_) {
    const SensorFace& face = place.sensor->face();
    if (face.cadence != cadence) continue;
    if (!IsWanted(face, *context.selection)) {
      // Once it is wanted again, rates do not run over the time between.
      place.forget = true;
      continue;
    }
    if (place.held_by != nullptr && !place.held_by->gone()) {
      Miss(place, NoAnswerFor(clock_.Monotonic() - place.held_since), reading);
      continue;
    }
    // Its counters are from the end of that call, its time from the beginning.
    place.forget = place.forget || place.held_by != nullptr;
    place.held_by = nullptr;
    due.push_back(&place);
  }
  return due;
}

std::size_t SensorRound::ReadSome(std::vector<Place*> due, const ReadingContext& context,
                                  absl::Duration end, Reading& reading) {
  if (reader_ == nullptr) reader_ = Reader::Start(clock_);
  std::vector<Reader::Turn> turns;
  for (const Place* place : due) turns.push_back({place->sensor, place->forget});
  reader_->Ask(std::move(turns), context);
  Reader::Progress progress = reader_->Await(patience_, end);
  const std::size_t done_count = progress.readings.size();
  for (std::size_t i = 0; i < done_count; ++i) {
    due[i]->forget = false;
    due[i]->sample_count = std::max(1, static_cast<int>(progress.readings[i].samples().size()));
    reading.Append(std::move(progress.readings[i]));
  }
  if (done_count == due.size()) return done_count;
  const std::shared_ptr<Reader> left = std::exchange(reader_, nullptr);
  left->Abandon();
  if (!progress.hangs_since) return done_count;
  Place& hung = *due[done_count];
  hung.held_by = left;
  hung.held_since = *progress.hangs_since;
  Miss(hung, NoAnswerFor(clock_.Monotonic() - hung.held_since), reading);
  return done_count + 1;
}

void SensorRound::Miss(const Place& place, const absl::Status& why, Reading& reading) const {
  const SensorFace& face = place.sensor->face();
  reading.Miss(face.metric_group, face.name, place.sample_count, why);
}

}  // namespace stepwell::agent
