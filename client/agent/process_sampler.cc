#include "client/agent/process_sampler.h"

#include <algorithm>
#include <climits>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/agent/writer_identity.h"

namespace stepwell::agent {
namespace {

// That a process has metrics of.
constexpr const char* kGroups[] = {"cpu", "memory", "disk"};
constexpr const SystemMetric* kMetrics[] = {
    &metrics::kCpuUtilProcess, &metrics::kCpuProcessThreads, &metrics::kMemoryProcessResident,
    &metrics::kDiskProcessRead, &metrics::kDiskProcessWrite};
// Ticks that the reader takes by itself end so many visits after the last one.
constexpr int kVisitsAhead = 3;
constexpr char kNoRoomReason[] = "ticks of the process while there was no room";
constexpr char kLateReason[] = "ticks of the process that came too late to be taken";

// A process as it ends: of one that is gone, or waits for its parent alone, there is nothing to say,
// also where that came while it was read.
class EndingProcess final : public Sensor {
 public:
  EndingProcess(pid_t pid, std::shared_ptr<Sensor> sensor, KernelText kernel)
      : Sensor(sensor->face()),
        sensor_(std::move(sensor)),
        kernel_(std::move(kernel)),
        path_(absl::StrCat("proc/", pid, "/stat")) {}
  void Read(Reading& reading) override {
    Reading last = reading;
    if (!Lives()) return;
    sensor_->Read(last);
    if (Lives()) reading.Append(std::move(last));
  }

 private:
  bool Lives() const {
    const absl::StatusOr<std::string> stat = kernel_.Read(path_);
    if (!stat.ok()) return false;
    // The state stands behind the program's name, which may hold anything.
    const std::size_t name_end = stat->rfind(") ");
    if (name_end == std::string::npos || name_end + 2 >= stat->size()) return false;
    const char state = (*stat)[name_end + 2];
    return state != 'Z' && state != 'X';
  }

  const std::shared_ptr<Sensor> sensor_;
  const KernelText kernel_;
  const std::string path_;
};

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
                               ProcessReader* reader, absl::Duration lead, std::string root)
    : catalog_(catalog),
      builder_(builder),
      clock_(clock),
      reader_(reader),
      lead_(lead),
      kernel_(std::move(root)) {}

void ProcessSampler::Visit(const Process& process, const SensorSelection& selection) {
  // A full disk: the recorder's own samples come first.
  if (builder_.full()) return OnNoRoom();
  if (process.pid <= 0) return MissUnseen(process, selection);
  const absl::Duration now = clock_.Monotonic();
  TakeAnswers(Await::kNow);
  if (process.pid != pid_) {
    LeaveProcess();
    pid_ = process.pid;
    sensor_ = std::make_shared<ProcessSensor>(pid_, kernel_);
    schedule_.emplace(selection.interval(), now, lead_);
  }
  batch_ = process.batch;
  const bool rested = std::exchange(rests_, false);
  const bool was_full = std::exchange(was_full_, false);
  std::uint64_t lost = 0;
  if (asked_ && !asked_->late) {
    if (GoOn(selection, now)) return;
    asked_->question->End();
    asked_->late = true;
    lost = asked_->question->is_idle() ? 0 : 1;
  }
  schedule_->SetInterval(selection.interval(), now);
  if (schedule_->due() > now) return;
  const std::uint64_t missed = schedule_->Take(now);
  selection_ = std::make_shared<SensorSelection>(selection);
  if (asked_) return MissAnswer(now, lost + missed + 1);
  const std::int64_t now_us = absl::ToUnixMicros(clock_.Now());
  if (was_full) {
    CountMissed(AbsenceKind::kNoRoom, missed, now_us, kNoRoomReason);
  } else if (!rested) {
    CountMissed(AbsenceKind::kLate, missed, now_us, kLateReason);
  }
  Ask(sensor_, now);
}

void ProcessSampler::OnNoRoom() {
  was_full_ = true;
  if (asked_) asked_->question->End();
}

bool ProcessSampler::GoOn(const SensorSelection& selection, absl::Duration now) {
  if (asked_->once) {
    // The next is due before it was answered.
    schedule_->SetInterval(selection.interval(), now);
    return schedule_->due() > now;
  }
  // Another's may have hung, and the reader's thread be replaced at this visit or the next.
  if (now - asked_->heard_at > reader_->patience() + 2 * lead_) {
    schedule_ = asked_->question->schedule();
    return false;
  }
  if (selection == *selection_) {
    asked_->question->GoOnUntil(now + kVisitsAhead * lead_);
    asked_->batch = batch_;
  } else {
    asked_->question->End();
  }
  return true;
}

void ProcessSampler::Rest() {
  rests_ = true;
  if (asked_) asked_->question->End();
}

void ProcessSampler::MissUnseen(const Process& process, const SensorSelection& selection) {
  LeaveProcess();
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

void ProcessSampler::Ask(std::shared_ptr<Sensor> sensor, absl::Duration now) {
  asked_at_ = now;
  ReadingContext context{pool_, selection_, &clock_};
  if (reader_ != nullptr) {
    std::optional<ProcessReader::Times> times;
    if (sensor == sensor_ && IsDense(*selection_)) {
      times = {*schedule_, now + kVisitsAhead * lead_};
    }
    const bool once = !times;
    asked_ = {reader_->Ask(std::move(sensor), std::move(context), std::move(times)), once, batch_,
              now};
    return;
  }
  const std::int64_t time_us = absl::ToUnixMicros(clock_.Now());
  Reading reading(std::move(context));
  sensor->Read(reading);
  AddTick(reading, time_us, batch_);
}

void ProcessSampler::TakeAnswers(Await await) {
  while (const std::optional<ProcessReader::Answer> answer = NextAnswer(await)) {
    asked_->heard_at = clock_.Monotonic();
    if (asked_->late) continue;
    if (!asked_->once) asked_at_ = asked_->heard_at;
    CountMissed(AbsenceKind::kLate, answer->late_count, answer->time_us, kLateReason);
    if (builder_.full()) {
      CountLost(AbsenceKind::kNoRoom, 1, {answer->time_us, answer->time_us}, kNoRoomReason);
    } else {
      AddTick(answer->reading, answer->time_us, asked_->batch);
    }
  }
  if (!asked_) return;
  if (!asked_->question->ended()) return reader_->Tend();
  const Asked asked = *std::exchange(asked_, std::nullopt);
  if (!asked.once && !asked.late) schedule_ = asked.question->schedule();
  // Its counters are from the end of that call, its times from the beginning.
  if (asked.late) sensor_->Forget();
}

std::optional<ProcessReader::Answer> ProcessSampler::NextAnswer(Await await) {
  if (!asked_) return std::nullopt;
  if (await == Await::kLast && !asked_->late) return reader_->AwaitLast(*asked_->question);
  return asked_->question->Await(absl::ZeroDuration());
}

void ProcessSampler::MissAnswer(absl::Duration now, std::uint64_t tick_count) {
  Reading reading({pool_, selection_, &clock_});
  const absl::Status why = NoAnswerFor(now - asked_->heard_at);
  const int ticks = static_cast<int>(std::min<std::uint64_t>(tick_count, INT_MAX / 2));
  reading.Miss("cpu", "process", 2 * ticks, why);
  reading.Miss("memory", "process", ticks, why);
  reading.Miss("disk", "process", 2 * ticks, why);
  NoteAbsences(reading, absl::ToUnixMicros(clock_.Now()));
}

void ProcessSampler::CountMissed(AbsenceKind kind, std::uint64_t tick_count, std::int64_t before_us,
                                 const std::string& reason) {
  if (tick_count == 0) return;
  CountLost(kind, tick_count, MissedBefore(before_us, tick_count, selection_->interval()), reason);
}

void ProcessSampler::CountLost(AbsenceKind kind, std::uint64_t tick_count, AbsenceSpan span,
                               const std::string& reason) {
  for (const SystemMetric* metric : kMetrics) {
    if (!selection_->Wants(*metric)) continue;
    absences_.Count(metric->metric_group, kind, tick_count, span, reason);
  }
}

void ProcessSampler::LeaveProcess() {
  if (asked_) {
    asked_->question->End();
    TakeAnswers(Await::kNow);
  }
  if (asked_ && !asked_->late) MissAnswer(clock_.Monotonic(), 1);
  asked_.reset();
  sensor_ = nullptr;
  pid_ = 0;
}

// Not where it was asked a moment ago: rates need their time, and what lies between is short.
void ProcessSampler::AskLast(absl::Duration now) {
  if (rests_ || asked_ || selection_ == nullptr) return;
  if (now - asked_at_ < TickSchedule::kFirstRatesAfter) return;
  Ask(std::make_shared<EndingProcess>(pid_, sensor_, kernel_), now);
}

void ProcessSampler::AddTick(const Reading& reading, std::int64_t time_us, std::int32_t batch) {
  NoteAbsences(reading, time_us);
  std::vector<RefValue> values;
  for (const SensedSample& sample : reading.samples()) {
    const std::uint32_t ref = catalog_.Ref(TickGroupOf(Cadence::kFast), SpecOf(*sample.series));
    if (ref != 0) values.push_back({ref, sample.value});
    if (tap_) tap_(*sample.series, time_us, sample.value);
  }
  if (values.empty()) return;
  builder_.AddTick(catalog_.definition(values.front().ref).tick_group(), time_us, batch, values);
}

void ProcessSampler::NoteAbsences(const Reading& reading, std::int64_t time_us) {
  absences_.Note(reading.absences(), Cadence::kFast, time_us);
  TellAbsences(absences_.TakeDue(time_us), builder_);
}

void ProcessSampler::End() {
  if (sensor_ != nullptr && !builder_.full()) {
    // What was asked of a short run is its only tick.
    if (asked_) asked_->question->End();
    TakeAnswers(Await::kLast);
    AskLast(clock_.Monotonic());
    TakeAnswers(Await::kLast);
  }
  LeaveProcess();
  TellAbsences(absences_.TakeAll(), builder_);
}

}  // namespace stepwell::agent
