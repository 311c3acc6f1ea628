#include "client/agent/sensors/sensor_set.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace stepwell::agent {

SensorSet::SensorSet(Options options, const Clock& clock)
    : options_(options), clock_(clock), round_(options.round_patience, clock) {}

SensorSet::WatchedSensor::WatchedSensor(const std::shared_ptr<Sensor>& sensor)
    : face(sensor->face()), device(SensorCrew::Join(sensor)) {}

SensorSet::WatchedFinder::WatchedFinder(const std::shared_ptr<SensorFinder>& finder)
    : metric_group(finder->metric_group()), watched("sense-finder", [finder](const Nothing&) {
        return std::make_shared<Findings>(finder->Find());
      }) {}

void SensorSet::Add(std::unique_ptr<Sensor> sensor) {
  cadences_.insert(sensor->face().cadence);
  round_.Add(std::move(sensor));
}

void SensorSet::AddWatched(std::unique_ptr<Sensor> sensor) {
  if (watched_.size() == kWatchedCountMax) {
    ++left_out_[sensor->face().metric_group];
    return;
  }
  cadences_.insert(sensor->face().cadence);
  watched_.emplace_back(std::move(sensor));
}

void SensorSet::AddFinder(std::unique_ptr<SensorFinder> finder) {
  finders_.emplace_back(std::move(finder));
}

Reading SensorSet::Read(Cadence cadence, std::shared_ptr<const SensorSelection> selection,
                        Tick tick) {
  // Nobody wanted them.
  past_.clear();
  const ReadingContext context{pool_, selection, &clock_};
  const absl::Duration patience =
      tick.is_last ? options_.hang_min : std::min(options_.patience_max, selection->interval() / 2);
  if (cadence == Cadence::kFast) Look(*selection);
  // Devices answer while the kernel's files are read.
  std::vector<WatchedSensor*> asked;
  Reading reading(context);
  crew_.Begin();
  for (WatchedSensor& sensor : watched_) {
    if (sensor.face.cadence != cadence) continue;
    TakeLate(sensor);
    if (!agent::IsWanted(sensor.face, *selection)) {
      sensor.forget = true;
      continue;
    }
    if (crew_.Ask(sensor.device, {context, sensor.forget})) {
      sensor.forget = false;
      sensor.asked = {tick.time_us, clock_.Monotonic(), /*hung=*/false};
      asked.push_back(&sensor);
    } else {
      // Nobody will take what it answers after the last tick.
      MissBusy(sensor, tick.is_last ? 2 : 1, reading);
    }
  }
  round_.Read(cadence, context, reading);
  if (!asked.empty()) crew_.Await(patience);
  for (WatchedSensor* sensor : asked) Take(*sensor, tick, reading);
  if (cadence == Cadence::kFast) {
    for (const WatchedFinder& finder : finders_) {
      if (!IsWanted(finder, *selection)) continue;
      for (const Absence& absence : finder.absences) reading.Miss(absence);
    }
    for (const auto& [metric_group, count] : left_out_) {
      reading.Miss({metric_group, AbsenceKind::kUnsupported, "devices", 1,
                    absl::StrCat("devices: of more than ", kWatchedCountMax, " ", count,
                                 " are not sampled")});
    }
  }
  return reading;
}

void SensorSet::TakeLate(WatchedSensor& sensor) {
  if (!sensor.asked) return;
  std::optional<Reading> answer = crew_.Take(*sensor.device);
  if (!answer) return;
  const WatchedSensor::Asked asked = *std::exchange(sensor.asked, std::nullopt);
  // Of a call that hung nobody knows when it looked at its counters.
  sensor.forget = sensor.forget || asked.hung;
  Note(sensor, *answer);
  if (!answer->samples().empty()) past_.push_back({asked.time_us, *std::move(answer)});
}

void SensorSet::Take(WatchedSensor& sensor, Tick tick, Reading& reading) {
  std::optional<Reading> answer = crew_.Take(*sensor.device);
  if (answer) {
    sensor.asked.reset();
    Note(sensor, *answer);
    return reading.Append(*std::move(answer));
  }
  // It may still come: then it is a sample of this tick.
  if (tick.is_last) return MissBusy(sensor, 1, reading);
  for (const Absence& absence : sensor.absences) reading.Miss(absence);
}

void SensorSet::Note(WatchedSensor& sensor, const Reading& answer) {
  sensor.absences = answer.absences();
  sensor.sample_count = std::max(1, static_cast<int>(answer.samples().size()));
}

void SensorSet::MissBusy(WatchedSensor& sensor, int tick_count, Reading& reading) const {
  for (const Absence& absence : sensor.absences) reading.Miss(absence);
  const SensorFace& face = sensor.face;
  const int sample_count = tick_count * sensor.sample_count;
  const absl::Duration out = clock_.Monotonic() - sensor.asked->at;
  if (out >= options_.hang_min) {
    sensor.asked->hung = true;
    return reading.Miss(face.metric_group, face.name, sample_count, NoAnswerFor(out));
  }
  // A reason without a number: it is the same each time, and told as one.
  reading.Miss({face.metric_group, AbsenceKind::kLate, face.name, sample_count,
                absl::StrCat(face.name, ": takes longer than the interval")});
}

// Of the devices there are GPUs that no other agent of the machine sees.
bool SensorSet::IsWanted(const WatchedFinder& finder, const SensorSelection& selection) {
  const SeenBy seen_by = finder.metric_group == "gpu" ? SeenBy::kDevice : SeenBy::kMachine;
  return agent::IsWanted({"", finder.metric_group, Cadence::kFast, seen_by}, selection);
}

void SensorSet::Look(const SensorSelection& selection) {
  const absl::Duration now = clock_.Monotonic();
  bool is_first = false;
  for (WatchedFinder& finder : finders_) {
    if (!IsWanted(finder, selection)) continue;
    if (finder.waiting) TakeFindings(finder, absl::ZeroDuration());
    if (finder.waiting) MissHanging(finder, now);
    if (finder.waiting || now - finder.asked_at < options_.find_interval) continue;
    is_first = is_first || finder.asked_at == -absl::InfiniteDuration();
    finder.asked_at = now;
    finder.waiting = finder.watched.Ask(Nothing());
  }
  if (!is_first) return;
  const absl::Duration deadline = now + options_.first_look_patience;
  for (WatchedFinder& finder : finders_) {
    if (!finder.waiting) continue;
    TakeFindings(finder, std::max(deadline - clock_.Monotonic(), absl::ZeroDuration()));
  }
}

// It stands as long as the call does: what is there of the group is not known.
void SensorSet::MissHanging(WatchedFinder& finder, absl::Duration now) const {
  const absl::Duration out = now - finder.asked_at;
  if (out < options_.hang_min) return;
  finder.absences = {{finder.metric_group, AbsenceKind::kFailed, "devices", 1,
                      absl::StrCat("looking for devices: ", NoAnswerFor(out).message())}};
}

void SensorSet::TakeFindings(WatchedFinder& finder, absl::Duration patience) {
  std::optional<std::shared_ptr<Findings>> found = finder.watched.Await(patience);
  if (!found) return;
  finder.waiting = false;
  finder.absences = std::move((*found)->absences);
  for (std::unique_ptr<Sensor>& sensor : (*found)->sensors) AddWatched(std::move(sensor));
}

void SensorSet::Forget() {
  round_.Forget();
  for (WatchedSensor& sensor : watched_) sensor.forget = true;
}

}  // namespace stepwell::agent
