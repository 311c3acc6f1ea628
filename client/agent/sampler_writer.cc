#include "client/agent/sampler_writer.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "base/status_macros.h"
#include "client/agent/process_sampler.h"

namespace stepwell::agent {
namespace {

constexpr char kClosedFile[] = "sampler.closed";
// A device that is slower than so many ticks hangs: what it answers in the end has no batch.
constexpr std::size_t kBatchCountMax = 1024;
// Ticks wait so long for the master's first answer, then they are told whatever it would have been; and
// so long where nobody is there to answer.
constexpr absl::Duration kAnswerPatience = absl::Seconds(2);
constexpr absl::Duration kStreamPatience = absl::Milliseconds(100);
// And so long for the agent that samples the machine to name its GPUs.
constexpr absl::Duration kNamesPatience = absl::Seconds(1);

// Another agent samples the machine.
bool IsToldOff(const OutboundWriter::Status& status) { return !status.sampling_on.value_or(true); }

// What is this agent's to tell where it is told off.
bool IsOwn(const SensedSeries& series, const SensorSelection& selection) {
  if (series.labels.contains("container")) return true;
  const auto device = series.labels.find("device");
  return device != series.labels.end() && !selection.LeavesGpu(device->second);
}

bool IsOwn(const Absence& absence) {
  return absence.metric_group == "gpu" || absence.subject.rfind("container", 0) == 0;
}

}  // namespace

absl::StatusOr<std::unique_ptr<SamplerWriter>> SamplerWriter::Open(FileDescriptor directory,
                                                                   WriterIdentity identity,
                                                                   Settings settings,
                                                                   const ServeContext& context) {
  STEPWELL_ASSIGN_OR_RETURN(std::unique_ptr<ServedWriter> served,
                            ServedWriter::Open(std::move(directory), std::move(identity), context));
  auto loop = std::make_unique<SamplingLoop>(MakeMachineSensors(settings.machine, context.clock),
                                             settings.selection, context.clock, context.on_ticks);
  return std::unique_ptr<SamplerWriter>(
      new SamplerWriter(std::move(served), std::move(settings), context, std::move(loop)));
}

SamplerWriter::SamplerWriter(std::unique_ptr<ServedWriter> served, Settings settings,
                             const ServeContext& context, std::unique_ptr<SamplingLoop> loop)
    : served_(std::move(served)),
      placement_{"agent", "placement", served_->identity().placement},
      behind_killed_{.last_time_us = served_->LastSampleUs()},
      settings_(std::move(settings)),
      clock_(context.clock),
      clock_offset_(context.sender.clock_offset()),
      began_at_(context.clock.Monotonic()),
      answered_(context.offline),
      loop_(std::move(loop)) {}

absl::StatusOr<std::unique_ptr<SamplerWriter>> SamplerWriter::Succeed(
    FileDescriptor directory, WriterIdentity identity, const Surroundings& surroundings,
    const ServeContext& context) {
  TakeTicks(surroundings, Waiting::kNoMore);
  settings_.after.reset();  // of this attempt
  STEPWELL_RETURN_IF_ERROR(SealLast());
  STEPWELL_ASSIGN_OR_RETURN(std::unique_ptr<ServedWriter> served,
                            ServedWriter::Open(std::move(directory), std::move(identity), context));
  CloseServed();
  std::unique_ptr<SamplerWriter> next(
      new SamplerWriter(std::move(served), settings_, context, std::move(loop_)));
  next->sample_counts_ = sample_counts_;
  return next;
}

bool SamplerWriter::IsClosed(int directory) {
  return faccessat(directory, kClosedFile, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

void SamplerWriter::Visit(const Surroundings& surroundings) {
  if (closing_) {
    TryClose();
  } else {
    FollowDirectives();
    TakeTicks(surroundings);
  }
  served_->Tend();
}

void SamplerWriter::Close(const Surroundings& surroundings) {
  if (closing_) return;
  loop_->Stop();
  TakeTicks(surroundings, Waiting::kNoMore);
  closing_ = true;
  TryClose();
}

// A disk that stays full until the agent ends leaves the writer open: what it held in memory is lost
// then, and no Close says that it was complete.
void SamplerWriter::TryClose() {
  if (served_->close_requested()) return;
  const absl::Status sealed = SealLast();
  if (sealed.ok()) return CloseServed();
  if (clock_.Monotonic() - trouble_logged_ < absl::Minutes(1)) return;
  trouble_logged_ = clock_.Monotonic();
  log::Warning("sampler_trouble", {{"why", std::string(sealed.message())}});
}

absl::Status SamplerWriter::SealLast() {
  // First what may fill the builder, then what tells of what found no room in it.
  STEPWELL_RETURN_IF_ERROR(Seal());
  TellAbsences(absences_.TakeAll(), served_->builder());
  return Seal();
}

void SamplerWriter::CloseServed() {
  const absl::StatusOr<FileDescriptor> file =
      OpenAt(served_->directory(), kClosedFile, O_WRONLY | O_CREAT);
  if (file.ok() && is_left_) {
    WriteAt(file->get(), 0, TextOf(Ended())).IgnoreError();
  }
  served_->Close(/*died=*/false);
}

EndedTicks SamplerWriter::Ended() const {
  const OutboundWriter::Status status = served_->status();
  const bool is_paused = status.profiling && !status.profiling->on();
  const auto count = sample_counts_.find(Cadence::kFast);
  const bool is_wanted = !is_paused && !IsToldOff(status) && count != sample_counts_.end();
  return {last_tick_us_ != 0 ? last_tick_us_ : absl::ToUnixMicros(clock_.Now()),
          absl::ToInt64Microseconds(selection().interval()), is_wanted ? count->second : 0};
}

std::optional<EndedTicks> SamplerWriter::ReadEnded(int directory) {
  const absl::StatusOr<std::string> text = ReadSmallFileAt(directory, kClosedFile, 128);
  return text.ok() ? ParseEndedTicks(*text) : std::nullopt;
}

void SamplerWriter::TellBetweenAgents(const TimedTick& first) {
  const std::optional<EndedTicks> after = std::exchange(settings_.after, std::nullopt);
  if (after) TellNoAgent(*after, first.time_us);
}

void SamplerWriter::TellBehindKilled(const TimedTick& tick) {
  if (behind_killed_.last_time_us <= 0) return;
  const bool is_first = behind_killed_.until_us == 0;
  if (is_first) behind_killed_.until_us = tick.time_us;
  const BehindKilled behind = behind_killed_;
  const OutboundWriter::Status status = served_->status();
  const bool is_paused = status.profiling && !status.profiling->on();
  const std::uint64_t count = sample_counts_[Cadence::kFast];
  if (!is_paused && count > behind.told_count) {
    // The first tick lacks what comes with the second.
    TellNoAgent({std::max(behind.last_time_us, settings_.live_since_us),
                 absl::ToInt64Microseconds(selection().interval()), count - behind.told_count},
                behind.until_us, is_first ? 0 : 1);
  }
  behind_killed_.told_count = std::max(behind.told_count, count);
  if (!is_first || is_paused) behind_killed_ = {};
}

void SamplerWriter::TellNoAgent(const EndedTicks& ended, std::int64_t until_us,
                                std::uint64_t more) {
  if (until_us <= ended.last_time_us || IsToldOff(served_->status())) return;
  // The first tick is taken at once, wherever the grid before was.
  const std::int64_t missed = (until_us - ended.last_time_us) / ended.interval_us - 1;
  if (missed <= 0 || ended.sample_count == 0) return;
  TellAbsences(
      {{"", AbsenceKind::kLate, (static_cast<std::uint64_t>(missed) + more) * ended.sample_count,
        ended.last_time_us, until_us, "ticks while no agent ran"}},
      served_->builder());
}

void SamplerWriter::TakeTicks(const Surroundings& surroundings, Waiting waiting) {
  for (TimedTick& timed : loop_->TakeTicks()) {
    const Surroundings around = AroundOf(timed, surroundings);
    waiting_.push_back({std::move(timed), around});
  }
  if (waiting == Waiting::kForAnswer && !IsAnswered()) return;
  const bool is_told_off = IsToldOff(served_->status());
  for (const WaitingTick& tick : std::exchange(waiting_, {})) {
    const TimedTick& timed = tick.timed;
    if (timed.is_past) {
      AddTick(timed, tick.surroundings);
      continue;
    }
    if (timed.cadence == Cadence::kFast) {
      TellBetweenAgents(timed);
      last_tick_us_ = timed.time_us;
    }
    std::vector<Absence> absences = timed.reading.absences();
    if (is_told_off)
      std::erase_if(absences, [](const Absence& absence) { return !IsOwn(absence); });
    absences_.Note(absences, timed.cadence, timed.time_us);
    absences_.Count("", AbsenceKind::kLate, timed.late_count * sample_counts_[timed.cadence],
                    timed.late_span, "ticks that came too late to be taken");
    AddTick(timed, tick.surroundings);
    if (timed.cadence == Cadence::kFast) TellBehindKilled(timed);
  }
  if (!served_->builder().full()) {
    TellAbsences(absences_.TakeDue(absl::ToUnixMicros(clock_.Now())), served_->builder());
  }
  // What cannot be written waits in the builder; a spool that stays full is told as gaps of ticks.
  Seal().IgnoreError();
}

SamplerWriter::Surroundings SamplerWriter::AroundOf(const TimedTick& timed,
                                                    const Surroundings& now) {
  Surroundings around = now;
  if (timed.is_past) {
    const auto known = batches_.find(timed.time_us);
    around.batch = known == batches_.end() ? -1 : known->second;
    return around;
  }
  batches_[timed.time_us] = now.batch;
  if (batches_.size() > kBatchCountMax) batches_.erase(batches_.begin());
  return around;
}

// Whether the machine is this agent's to sample. Asked until it is known; later answers hold for the
// ticks that follow them.
bool SamplerWriter::IsAnswered() {
  if (answered_) return true;
  const OutboundWriter::Status status = served_->status();
  const absl::Duration now = clock_.Monotonic();
  if (!IsToldOff(status)) {
    answered_ = status.opened || now - began_at_ >= PatienceOf(status);
    return answered_;
  }
  told_off_at_ = std::min(told_off_at_, now);
  answered_ = !status.others_gpus.empty() || now - told_off_at_ >= kNamesPatience;
  return answered_;
}

absl::Duration SamplerWriter::PatienceOf(const OutboundWriter::Status& status) {
  switch (status.state) {
    case SendWindow::State::kDisconnected:
    case SendWindow::State::kRefused:
      return kStreamPatience;
    case SendWindow::State::kMustOpen:
    case SendWindow::State::kOpening:
    case SendWindow::State::kOpen:
    case SendWindow::State::kRetired:
    case SendWindow::State::kClosed:
      return kAnswerPatience;
  }
  return kAnswerPatience;
}

absl::Status SamplerWriter::Seal() {
  if (served_->pending()) STEPWELL_RETURN_IF_ERROR(served_->Retry());
  if (served_->builder().empty()) return absl::OkStatus();
  return served_->Seal(Checkpoint());
}

std::uint32_t SamplerWriter::RefOf(Cadence cadence, const SensedSeries& series) {
  const auto [known, is_new] = ref_by_series_.try_emplace(&series, 0);
  if (is_new) known->second = served_->catalog().Ref(TickGroupOf(cadence), SpecOf(series));
  return known->second;
}

void SamplerWriter::AddTick(const TimedTick& timed, const Surroundings& surroundings) {
  const std::vector<SensedSample>& samples = timed.reading.samples();
  // A disk that stays full for long: the ticks that found no room become a loss.
  if (served_->builder().full()) {
    const std::size_t own_count = timed.cadence == Cadence::kFast && !timed.is_past ? 1 : 0;
    return absences_.Count("", AbsenceKind::kNoRoom, samples.size() + own_count,
                           {timed.time_us, timed.time_us},
                           "ticks that found the spool's disk full");
  }
  const SensorSelection wanted = WantedNow();
  std::vector<RefValue> values;
  values.reserve(samples.size() + 3);
  for (const SensedSample& sample : samples) {
    if (wanted.leaves_machine() && !IsOwn(*sample.series, wanted)) continue;
    const std::uint32_t ref = RefOf(timed.cadence, *sample.series);
    if (ref != 0) values.push_back({ref, sample.value});
  }
  if (!timed.is_past) {
    if (timed.cadence == Cadence::kFast && !wanted.leaves_machine()) AddOwn(surroundings, values);
    if (timed.cadence == Cadence::kFast) AddPlacement(values);
    sample_counts_[timed.cadence] = values.size();
  }
  if (values.empty()) return;
  const std::uint32_t tick_group = served_->catalog().definition(values.front().ref).tick_group();
  served_->builder().AddTick(tick_group, timed.time_us, surroundings.batch, values);
}

// What is no sensor's: how many share the machine, and how far its clock is from the master's.
void SamplerWriter::AddOwn(const Surroundings& surroundings, std::vector<RefValue>& values) {
  static const SensedSeries kSharedWith = {"agent", "shared_with"};
  static const SensedSeries kClockOffset = {"agent", "clock_offset", {}, "seconds"};
  static const SensedSeries kClockOffsetError = {"agent", "clock_offset_error", {}, "seconds"};
  const auto add = [&](const SensedSeries& series, double value) {
    const std::uint32_t ref = RefOf(Cadence::kFast, series);
    if (ref != 0) values.push_back({ref, value});
  };
  // The master knows of trials that other agents of this machine serve.
  const std::int32_t told = served_->status().shared_with;
  add(kSharedWith, told > 0 ? told : surroundings.trial_count);
  if (const auto offset = clock_offset_.Read(clock_.Now(), clock_.Monotonic())) {
    add(kClockOffset, absl::ToDoubleSeconds(offset->ahead));
    add(kClockOffsetError, absl::ToDoubleSeconds(offset->error));
  }
}

// Of this agent, whoever samples the machine.
void SamplerWriter::AddPlacement(std::vector<RefValue>& values) {
  if (placement_.labels.empty()) return;
  const std::uint32_t ref = RefOf(Cadence::kFast, placement_);
  if (ref != 0) values.push_back({ref, 1});
}

void SamplerWriter::FollowDirectives() {
  const OutboundWriter::Status status = served_->status();
  // What is sampled before whether: no tick of an old choice after a pause.
  loop_->Select(WantedNow());
  loop_->Pause(status.profiling && !status.profiling->on());
}

SensorSelection SamplerWriter::WantedNow() const {
  SensorSelection wanted = selection();
  const OutboundWriter::Status status = served_->status();
  if (IsToldOff(status)) wanted.LeaveToAnother(status.others_gpus);
  return wanted;
}

SensorSelection SamplerWriter::selection() const {
  SensorSelection selection = settings_.selection;
  const OutboundWriter::Status status = served_->status();
  if (!status.profiling) return selection;
  const auto& groups = status.profiling->metric_groups();
  if (!groups.empty()) selection.SetGroups({groups.begin(), groups.end()});
  if (status.profiling->interval_us() > 0) {
    selection.SetInterval(absl::Microseconds(status.profiling->interval_us()));
  }
  return selection;
}

}  // namespace stepwell::agent
