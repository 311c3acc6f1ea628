#include "client/agent/sampler_writer.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>

#include "base/log.h"
#include "base/status_macros.h"

namespace stepwell::agent {
namespace {

constexpr TickGroupKey kSystemCadence = {TickGroupKind::kCadence, 1};
constexpr char kClosedFile[] = "sampler.closed";
// A sensor that stays away is told of once a minute, not at each tick.
constexpr std::int64_t kMissesToldIntervalUs = 60'000'000;

pb::GapCause CauseOf(const absl::Status& why) {
  if (absl::IsNotFound(why)) return pb::GAP_CAUSE_UNSUPPORTED;
  if (absl::IsPermissionDenied(why)) return pb::GAP_CAUSE_NO_PERMISSION;
  return pb::GAP_CAUSE_SENSOR_FAILED;
}

}  // namespace

absl::StatusOr<std::unique_ptr<SamplerWriter>> SamplerWriter::Open(FileDescriptor directory,
                                                                   WriterIdentity identity,
                                                                   Settings settings,
                                                                   const ServeContext& context) {
  STEPWELL_ASSIGN_OR_RETURN(std::unique_ptr<ServedWriter> served,
                            ServedWriter::Open(std::move(directory), std::move(identity), context));
  auto loop = std::make_unique<SamplingLoop>(SystemSampler(ProcReader(settings.root)),
                                             settings.interval, context.clock);
  return std::unique_ptr<SamplerWriter>(
      new SamplerWriter(std::move(served), std::move(settings), context, std::move(loop)));
}

SamplerWriter::SamplerWriter(std::unique_ptr<ServedWriter> served, Settings settings,
                             const ServeContext& context, std::unique_ptr<SamplingLoop> loop)
    : served_(std::move(served)),
      settings_(std::move(settings)),
      clock_(context.clock),
      clock_offset_(context.sender.clock_offset()),
      loop_(std::move(loop)) {}

absl::StatusOr<std::unique_ptr<SamplerWriter>> SamplerWriter::Succeed(
    FileDescriptor directory, WriterIdentity identity, const Surroundings& surroundings,
    const ServeContext& context) {
  STEPWELL_ASSIGN_OR_RETURN(std::unique_ptr<ServedWriter> served,
                            ServedWriter::Open(std::move(directory), std::move(identity), context));
  End(surroundings);
  std::unique_ptr<SamplerWriter> next(
      new SamplerWriter(std::move(served), settings_, context, std::move(loop_)));
  next->samples_per_tick_ = samples_per_tick_;
  return next;
}

bool SamplerWriter::IsClosed(int directory) {
  return faccessat(directory, kClosedFile, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

void SamplerWriter::Visit(const Surroundings& surroundings) {
  if (!served_->close_requested()) {
    FollowDirectives();
    TakeTicks(surroundings);
  }
  served_->Tend();
}

void SamplerWriter::Close(const Surroundings& surroundings) {
  if (served_->close_requested()) return;
  loop_->Stop();
  End(surroundings);
}

void SamplerWriter::End(const Surroundings& surroundings) {
  TakeTicks(surroundings);
  TellMisses(absl::ToUnixMicros(clock_.Now()), When::kNow);
  const absl::Status sealed = Seal();
  if (!sealed.ok()) log::Warning("sampler_trouble", {{"why", std::string(sealed.message())}});
  OpenAt(served_->directory(), kClosedFile, O_WRONLY | O_CREAT).IgnoreError();
  served_->Close(/*died=*/false);
}

void SamplerWriter::TakeTicks(const Surroundings& surroundings) {
  for (const TimedTick& timed : loop_->TakeTicks()) {
    NoteMisses(timed);
    AddTick(timed, surroundings);
  }
  TellMisses(absl::ToUnixMicros(clock_.Now()), When::kDue);
  // What cannot be written waits in the builder; a spool that stays full is told as gaps of ticks.
  Seal().IgnoreError();
}

absl::Status SamplerWriter::Seal() {
  if (served_->pending()) STEPWELL_RETURN_IF_ERROR(served_->Retry());
  if (served_->builder().empty()) return absl::OkStatus();
  return served_->Seal(Checkpoint());
}

bool SamplerWriter::Wanted(const std::string& metric_group) const {
  return metric_groups_.empty() || std::find(metric_groups_.begin(), metric_groups_.end(),
                                             metric_group) != metric_groups_.end();
}

void SamplerWriter::AddTick(const TimedTick& timed, const Surroundings& surroundings) {
  // A disk that stays full for long: the ticks that found no room become a loss.
  if (served_->builder().full()) {
    Missing& missing = missing_[{"", pb::GAP_CAUSE_SPOOL_FULL}];
    if (missing.sample_count == 0) missing.first_time_us = timed.time_us;
    missing.sample_count += timed.tick.samples.size() + 1;
    missing.last_time_us = timed.time_us;
    missing.reason = "ticks that found the spool's disk full";
    return;
  }
  std::vector<RefValue> values;
  const auto add = [&](const SeriesSpec& series, double value) {
    if (!Wanted(series.metric_group)) return;
    const std::uint32_t ref = served_->catalog().Ref(kSystemCadence, series);
    // Two disks mounted over one another show the same mount twice.
    const bool is_new = std::none_of(values.begin(), values.end(),
                                     [ref](const RefValue& known) { return known.ref == ref; });
    if (ref != 0 && is_new) values.push_back({ref, value});
  };
  for (const SystemSample& sample : timed.tick.samples) add(sample.series, sample.value);
  add({"agent", "shared_with", {}, "1", pb::SERIES_KIND_GAUGE, 1}, surroundings.trial_count);
  if (const auto offset = clock_offset_.Read(clock_.Now(), clock_.Monotonic())) {
    add({"agent", "clock_offset", {}, "seconds", pb::SERIES_KIND_GAUGE, 1},
        absl::ToDoubleSeconds(offset->ahead));
    add({"agent", "clock_offset_error", {}, "seconds", pb::SERIES_KIND_GAUGE, 1},
        absl::ToDoubleSeconds(offset->error));
  }
  samples_per_tick_ = values.size();
  if (values.empty()) return;
  const std::uint32_t tick_group = served_->catalog().definition(values.front().ref).tick_group();
  served_->builder().AddTick(tick_group, timed.time_us, surroundings.batch, values);
}

void SamplerWriter::NoteMisses(const TimedTick& timed) {
  const auto note = [&](MissingKey key, std::uint64_t count, const std::string& reason) {
    Missing& missing = missing_[std::move(key)];
    if (missing.sample_count == 0) missing.first_time_us = timed.time_us;
    missing.sample_count += count;
    missing.last_time_us = timed.time_us;
    missing.reason = CleanText(reason, 256);
  };
  for (const SensorMiss& miss : timed.tick.misses) {
    if (!Wanted(miss.metric_group)) continue;
    note({miss.metric_group, CauseOf(miss.why)}, static_cast<std::uint64_t>(miss.sample_count),
         std::string(miss.why.message()));
  }
  if (timed.late_count > 0) {
    note({"", pb::GAP_CAUSE_LATE}, timed.late_count * samples_per_tick_,
         "ticks that came too late to be taken");
  }
}

// The first miss at once, then once a minute, and what is left at the end.
void SamplerWriter::TellMisses(std::int64_t now_us, When when) {
  if (served_->builder().full()) return;
  for (auto& [key, missing] : missing_) {
    if (missing.sample_count == 0) continue;
    if (when == When::kDue && now_us - missing.told_time_us < kMissesToldIntervalUs) continue;
    pb::Loss loss;
    loss.set_metric_group(key.first);
    loss.set_cause(key.second);
    // What can never be measured here is no hole in what was measured: told once, without a count.
    const bool never =
        key.second == pb::GAP_CAUSE_UNSUPPORTED || key.second == pb::GAP_CAUSE_NO_PERMISSION;
    if (never && missing.told_time_us != 0) continue;
    loss.set_sample_count(never ? 0 : missing.sample_count);
    loss.set_first_time_us(missing.first_time_us);
    loss.set_last_time_us(missing.last_time_us);
    loss.set_reason(missing.reason);
    served_->builder().AddLoss(loss);
    missing.sample_count = 0;
    missing.told_time_us = now_us;
  }
}

void SamplerWriter::FollowDirectives() {
  const OutboundWriter::Status status = served_->status();
  const bool profiling = !status.profiling || status.profiling->on();
  loop_->Pause(!profiling || !status.sampling_on.value_or(true));
  if (!status.profiling) return;
  metric_groups_.assign(status.profiling->metric_groups().begin(),
                        status.profiling->metric_groups().end());
  if (status.profiling->interval_us() > 0) {
    loop_->SetInterval(std::clamp(absl::Microseconds(status.profiling->interval_us()),
                                  absl::Milliseconds(100), absl::Hours(1)));
  }
}

}  // namespace stepwell::agent
