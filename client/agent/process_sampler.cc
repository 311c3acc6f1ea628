#include "client/agent/process_sampler.h"

#include <algorithm>
#include <iterator>

#include <utility>
#include "absl/strings/str_cat.h"

#include "client/agent/writer_identity.h"

namespace stepwell::agent {
namespace {

// That a process has metrics of.
constexpr const char* kGroups[] = {"cpu", "memory", "disk"};

// A reading takes some 50 us; a busy machine lets it wait.
constexpr absl::Duration kEndPatience = absl::Milliseconds(50);

pb::GapCause CauseOf(AbsenceKind kind) {
  switch (kind) {
    case AbsenceKind::kUnsupported:
      return pb::GAP_CAUSE_UNSUPPORTED;
    case AbsenceKind::kNoPermission:
      return pb::GAP_CAUSE_NO_PERMISSION;
    case AbsenceKind::kFailed:
      return pb::GAP_CAUSE_SENSOR_FAILED;
    case AbsenceKind::kLate:
      return pb::GAP_CAUSE_LATE;
    case AbsenceKind::kNoRoom:
      return pb::GAP_CAUSE_SPOOL_FULL;
  }
  return pb::GAP_CAUSE_SENSOR_FAILED;
}

}  // namespace

SeriesSpec SpecOf(const SensedSeries& series) {
  SeriesSpec spec{series.metric_group, series.name,           {},
                  series.unit,         pb::SERIES_KIND_GAUGE, series.divisor};
  if (series.kind == SensedKind::kCounter) spec.kind = pb::SERIES_KIND_COUNTER;
  for (const auto& [label, value] : series.labels) spec.labels[label] = CleanText(value, 1024);
  return spec;
}

TickGroupKey TickGroupOf(Cadence cadence) {
  return {TickGroupKind::kCadence, static_cast<std::uint32_t>(cadence)};
}

void TellAbsences(const std::vector<ToldAbsence>& absences, ChunkBuilder& builder) {
  for (const ToldAbsence& absence : absences) {
    pb::Loss loss;
    loss.set_metric_group(absence.metric_group);
    loss.set_cause(CauseOf(absence.kind));
    loss.set_sample_count(absence.sample_count);
    loss.set_first_time_us(absence.first_time_us);
    loss.set_last_time_us(absence.last_time_us);
    loss.set_reason(CleanText(absence.reason, 256));
    builder.AddLoss(loss);
  }
}

ProcessSampler::ProcessSampler(SeriesCatalog& catalog, ChunkBuilder& builder, const Clock& clock,
                               ProcessReader* reader, std::string root)
    : catalog_(catalog),
      builder_(builder),
      clock_(clock),
      reader_(reader),
      kernel_(std::move(root)) {}

void ProcessSampler::Visit(const Process& process, const SensorSelection& selection) {
  // A full disk: the recorder's own samples come first.
  if (builder_.full()) return;
  if (process.pid <= 0) return MissUnseen(process, selection);
  const absl::Duration now = clock_.Monotonic();
  if (process.pid != pid_) {
    pid_ = process.pid;
    sensor_ = std::make_shared<ProcessSensor>(pid_, kernel_);
    asked_.reset();
    schedule_.emplace(selection.interval(), now);
  }
  TakeAnswer(absl::ZeroDuration());
  schedule_->SetInterval(selection.interval(), now);
  if (schedule_->due() > now) return;
  // Ticks between two visits are not late: the sampler is not asked more often.
  schedule_->Take(now);
  if (asked_) return MissAnswer(selection, now);
  Ask(process, selection, now);
}

void ProcessSampler::MissUnseen(const Process& process, const SensorSelection& selection) {
  pid_ = 0;
  asked_.reset();
  const auto* const group =
      std::find_if(std::begin(kGroups), std::end(kGroups),
                   [&](const char* each) { return selection.WantsGroup(each); });
  std::vector<Absence> unseen;
  if (group != std::end(kGroups)) {
    // One says it for all: the writer's other groups are what the process recorded.
    unseen.push_back(
        {*group, AbsenceKind::kUnsupported, "process", 0,
         absl::StrCat("process metrics of rank ", process.rank, ": not in this PID namespace")});
  }
  const std::int64_t time_us = absl::ToUnixMicros(clock_.Now());
  absences_.Note(unseen, Cadence::kFast, time_us);
  TellAbsences(absences_.TakeDue(time_us), builder_);
}

void ProcessSampler::Ask(const Process& process, const SensorSelection& selection,
                         absl::Duration now) {
  ReadingContext context{pool_, std::make_shared<SensorSelection>(selection), &clock_};
  const std::int64_t time_us = absl::ToUnixMicros(clock_.Now());
  if (reader_ != nullptr) {
    asked_ = {reader_->Ask(sensor_, std::move(context)), time_us, process.batch, now};
    return;
  }
  Reading reading(std::move(context));
  sensor_->Read(reading);
  AddTick(reading, time_us, process.batch);
}

void ProcessSampler::TakeAnswer(absl::Duration patience) {
  if (!asked_) return;
  const std::optional<Reading> reading = asked_->question->Await(patience);
  if (!reading) return reader_->Tend();
  const Asked asked = *std::exchange(asked_, std::nullopt);
  if (!asked.late) return AddTick(*reading, asked.time_us, asked.batch);
  // Its counters are from the end of that call, its times from the beginning.
  sensor_->Forget();
}

void ProcessSampler::MissAnswer(const SensorSelection& selection, absl::Duration now) {
  asked_->late = true;
  Reading reading({pool_, std::make_shared<SensorSelection>(selection), &clock_});
  const absl::Status why = NoAnswerFor(now - asked_->at);
  reading.Miss("cpu", "process", 2, why);
  reading.Miss("memory", "process", 1, why);
  reading.Miss("disk", "process", 2, why);
  NoteAbsences(reading, absl::ToUnixMicros(clock_.Now()));
}

void ProcessSampler::AddTick(const Reading& reading, std::int64_t time_us, std::int32_t batch) {
  NoteAbsences(reading, time_us);
  std::vector<RefValue> values;
  for (const SensedSample& sample : reading.samples()) {
    const std::uint32_t ref = catalog_.Ref(TickGroupOf(Cadence::kFast), SpecOf(*sample.series));
    if (ref != 0) values.push_back({ref, sample.value});
  }
  if (values.empty()) return;
  builder_.AddTick(catalog_.definition(values.front().ref).tick_group(), time_us, batch, values);
}

void ProcessSampler::NoteAbsences(const Reading& reading, std::int64_t time_us) {
  absences_.Note(reading.absences(), Cadence::kFast, time_us);
  TellAbsences(absences_.TakeDue(time_us), builder_);
}

void ProcessSampler::End() {
  // What was asked of a short run is its only tick.
  if (!builder_.full()) TakeAnswer(asked_ && asked_->late ? absl::ZeroDuration() : kEndPatience);
  asked_.reset();
  TellAbsences(absences_.TakeAll(), builder_);
}

}  // namespace stepwell::agent
