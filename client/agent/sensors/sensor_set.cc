#include "client/agent/sensors/sensor_set.h"

#include <algorithm>

namespace stepwell::agent {

SensorSet::SensorSet(Options options, const Clock& clock)
    : options_(options), clock_(clock), round_(options.round_patience, clock) {}

SensorSet::WatchedSensor::WatchedSensor(const std::shared_ptr<Sensor>& sensor)
    : face(sensor->face()), watched("sense-" + sensor->face().name, [sensor](const Order& order) {
        if (order.forget) sensor->Forget();
        Reading reading(order.context);
        sensor->Read(reading);
        return reading;
      }) {}

SensorSet::WatchedFinder::WatchedFinder(const std::shared_ptr<SensorFinder>& finder)
    : metric_group(finder->metric_group()), watched("sense-finder", [finder](const Nothing&) {
        return std::make_shared<Findings>(finder->Find());
      }) {}

void SensorSet::Add(std::unique_ptr<Sensor> sensor) {
  cadences_.insert(sensor->face().cadence);
  round_.Add(std::move(sensor));
}

void SensorSet::AddWatched(std::unique_ptr<Sensor> sensor) {
  if (watched_.size() == kWatchedCountMax) return;
  cadences_.insert(sensor->face().cadence);
  watched_.emplace_back(std::move(sensor));
}

void SensorSet::AddFinder(std::unique_ptr<SensorFinder> finder) {
  finders_.emplace_back(std::move(finder));
}

Reading SensorSet::Read(Cadence cadence, std::shared_ptr<const SensorSelection> selection) {
  const ReadingContext context{pool_, selection, &clock_};
  const absl::Duration patience = std::min(options_.patience_max, selection->interval() / 2);
  if (cadence == Cadence::kFast) Look(*selection);
  // Devices answer while the kernel's files are read.
  std::vector<WatchedSensor*> asked;
  Reading reading(context);
  for (WatchedSensor& sensor : watched_) {
    if (sensor.face.cadence != cadence) continue;
    if (!agent::IsWanted(sensor.face, *selection)) {
      sensor.forget = true;
      continue;
    }
    if (sensor.watched.Ask({context, sensor.forget})) {
      sensor.forget = false;
      asked.push_back(&sensor);
    } else {
      MissSilent(sensor, reading);
    }
  }
  round_.Read(cadence, context, reading);
  const absl::Duration deadline = clock_.Monotonic() + patience;
  for (WatchedSensor* sensor : asked) Take(*sensor, deadline, reading);
  if (cadence == Cadence::kFast) {
    for (const WatchedFinder& finder : finders_) {
      if (!IsWanted(finder, *selection)) continue;
      for (const Absence& absence : finder.absences) reading.Miss(absence);
    }
  }
  return reading;
}

void SensorSet::Take(WatchedSensor& sensor, absl::Duration deadline, Reading& reading) {
  const absl::Duration now = clock_.Monotonic();
  std::optional<Reading> answer =
      sensor.watched.Await(std::max(deadline - now, absl::ZeroDuration()));
  if (answer) {
    sensor.silent_since = absl::InfiniteDuration();
    sensor.sample_count = std::max(1, static_cast<int>(answer->samples().size()));
    return reading.Append(*std::move(answer));
  }
  sensor.silent_since = std::min(sensor.silent_since, now);
  MissSilent(sensor, reading);
}

void SensorSet::MissSilent(const WatchedSensor& sensor, Reading& reading) const {
  reading.Miss(sensor.face.metric_group, sensor.face.name, sensor.sample_count,
               NoAnswerFor(clock_.Monotonic() - sensor.silent_since));
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
