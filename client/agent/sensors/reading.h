// Reading: what sensors found at one tick: samples, and typed absences of those that could not be
// had. A value; confined to the thread that fills it.
//
//   Reading reading(context);
//   sensor.Read(reading);
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "client/agent/sensors/sensed_series.h"
#include "client/agent/sensors/sensor_selection.h"

namespace stepwell::agent {

// Why a sample is absent. That it is back is told by its absence from the next reading's list.
enum class AbsenceKind {
  kUnsupported,   // this machine has no such value
  kNoPermission,  // it may not be read
  kFailed,        // anything else, for now
  kLate,          // its tick came too late to be taken
  kNoRoom,        // taken, but it found no place in memory or on disk
};

struct Absence {
  std::string metric_group;
  AbsenceKind kind = AbsenceKind::kFailed;
  // Tells absences of one group and kind apart: a metric, a device, a file.
  std::string subject;
  // Samples that the tick lacks because of it.
  int sample_count = 1;
  // For people.
  std::string reason;
};

struct SensedSample {
  const SensedSeries* series = nullptr;
  double value = 0;
};

// kNotFound and kUnimplemented are unsupported, kPermissionDenied is no permission.
AbsenceKind KindOf(const absl::Status& why);
// Of a sensor that hangs.
absl::Status NoAnswerFor(absl::Duration silent);

// What a tick is read with. `clock` outlives all readings; pool and selection are shared by the
// readings of one set, some of which may outlive it on a thread that hangs.
struct ReadingContext {
  std::shared_ptr<SeriesPool> pool;
  std::shared_ptr<const SensorSelection> selection;
  const Clock* clock = nullptr;
};

class Reading {
 public:
  explicit Reading(ReadingContext context) : context_(std::move(context)) {}

  // Monotonic, at this moment: rates run over the time between two readings of their counters, not
  // over the time between two ticks.
  absl::Duration Now() const { return context_.clock->Monotonic(); }
  // Between two ticks.
  absl::Duration Interval() const { return context_.selection->interval(); }
  bool Wants(const SystemMetric& metric) const { return context_.selection->Wants(metric); }

  // Rounds to the metric's divisor. A value that is no number, one that is not wanted and one
  // beyond the pool's bound are left out.
  void Add(const SystemMetric& metric, double value) { Add(metric, {}, value); }
  void Add(const SystemMetric& metric, const std::map<std::string, std::string>& labels,
           double value);
  // For what the caller had the last reading find: the cheap way for many series per tick.
  const SensedSeries* Find(const SystemMetric& metric,
                           const std::map<std::string, std::string>& labels);
  void AddFound(const SensedSeries* series, double value);

  // `subject` is a device or a file; the reason begins with it.
  void Miss(const std::string& metric_group, const std::string& subject, int sample_count,
            const absl::Status& why);
  // One metric of a device, say, by which it is told apart; left out where it is not wanted.
  void Miss(const SystemMetric& metric, const std::string& of, const absl::Status& why);
  void Miss(Absence absence);

  const std::vector<SensedSample>& samples() const { return samples_; }
  const std::vector<Absence>& absences() const { return absences_; }
  // Takes over all that `other` holds.
  void Append(Reading other);

 private:
  ReadingContext context_;
  std::vector<SensedSample> samples_;
  std::vector<Absence> absences_;
};

}  // namespace stepwell::agent
