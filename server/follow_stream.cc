#include "server/follow_stream.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/status_macros.h"
#include "server/completeness.h"
#include "server/limits.h"
#include "server/query_wire.h"
#include "server/told_error.h"

namespace stepwell {
namespace {

// A message follows the one before after this long at the earliest, unless it is full: half of what a
// push may take, so that many small commits are one message.
constexpr absl::Duration kPace = absl::Milliseconds(20);
// One a second is promised.
constexpr absl::Duration kBeat = absl::Milliseconds(900);
// How soon a call that was cancelled is noticed, and the end of a trial.
constexpr absl::Duration kCancelLook = absl::Milliseconds(250);
constexpr absl::Duration kTrialLook = absl::Seconds(1);
constexpr absl::Duration kAskTime = absl::Seconds(30);
// A message ends beyond so many samples, and takes so many more at a time: with the cursor of the most
// writers it stays below the 4 MiB that clients take by default.
constexpr std::int64_t kMessageSamples = 8192;
constexpr std::int64_t kTakeSamples = 16'384;
// Of new series in one message; those beyond go ahead in messages of their own.
constexpr std::size_t kSeriesBytes = 256 << 10;
constexpr std::size_t kSeriesPerLook = 10'000;

// What else goes wrong with the database passes by itself; the cursor keeps the place meanwhile.
absl::Status AsPassing(const absl::Status& status) {
  if (status.ok() || absl::IsNotFound(status) || absl::IsCancelled(status)) return status;
  return absl::UnavailableError(absl::StrCat("the database was asked in vain (",
                                             TellClient(status).message,
                                             "); go on with the last cursor"));
}

std::string GroupOf(const std::vector<SeriesSelection>& selections) {
  if (selections.empty()) return {};
  const std::string& group = selections.front().metric_group;
  for (const SeriesSelection& one : selections) {
    if (one.metric_group != group) return {};
  }
  return group;
}

}  // namespace

FollowStream::FollowStream(const QuerySources& sources, const ReadCall& call, TrialId trial_id,
                           std::vector<SeriesSelection> selections)
    : sources_(sources),
      call_(call),
      trial_id_(trial_id),
      database_(sources.database()),
      metric_group_(GroupOf(selections)),
      choice_(std::move(selections)) {}

ReadCall FollowStream::Ask() const {
  return {.deadline = std::min(call_.deadline, SteadyTime::Now() + kAskTime),
          .cancelled = call_.cancelled,
          .readable_projects = call_.readable_projects};
}

absl::StatusOr<std::optional<v1::FollowSamplesResponse>> FollowStream::Next() {
  while (ready_.empty()) {
    if (trial_ended_) return std::nullopt;
    if (call_.cancelled()) return absl::CancelledError("the client takes no more samples");
    STEPWELL_RETURN_IF_ERROR(Step());
  }
  std::optional<v1::FollowSamplesResponse> message(std::move(ready_.front()));
  ready_.pop_front();
  return message;
}

absl::Status FollowStream::Step() {
  const SteadyTime now = SteadyTime::Now();
  if (!more_ && now < next_send_) absl::SleepFor(next_send_ - now);
  const std::uint64_t seen = follower_->version();
  STEPWELL_RETURN_IF_ERROR(Gather());
  if (heads_ended_ && samples_.sample_count() == 0) {
    return absl::UnavailableError(
        "this master stops, or has lost the database; go on with the last cursor");
  }
  if (!more_ && next_look_.HasPassed()) STEPWELL_RETURN_IF_ERROR(LookAtTrial());
  if (trial_ended_) return absl::OkStatus();
  if (first_ || samples_.sample_count() > 0 || next_beat_.HasPassed()) {
    MakeMessages();
    return absl::OkStatus();
  }
  follower_->WaitPast(seen, std::min(next_beat_, SteadyTime::Now() + kCancelLook));
  return absl::OkStatus();
}

absl::Status FollowStream::Gather() {
  more_ = true;
  while (more_ && samples_.sample_count() < kMessageSamples) {
    HeadFollower::Taken taken = follower_->Take(next_index_, kTakeSamples);
    switch (taken.outcome) {
      case HeadFollower::Outcome::kGone:
        STEPWELL_RETURN_IF_ERROR(PassGone(taken.begin_index));
        continue;
      case HeadFollower::Outcome::kEnded:
        heads_ended_ = true;
        more_ = false;
        break;
      case HeadFollower::Outcome::kTaken:
        STEPWELL_RETURN_IF_ERROR(Take(std::move(taken.chunks)));
        next_index_ = taken.next_index;
        more_ = taken.more;
        break;
    }
  }
  place_.log_index = next_index_;
  return absl::OkStatus();
}

absl::Status FollowStream::Take(std::vector<HeadChunkPtr> chunks) {
  // What the place has passed: a cursor's log begins before it.
  std::erase_if(chunks, [this](const HeadChunkPtr& chunk) {
    return chunk->sequence <= place_.SequenceOf(chunk->writer_no);
  });
  STEPWELL_RETURN_IF_ERROR(Learn(chunks));
  for (const HeadChunkPtr& chunk : chunks) {
    samples_.Add(*chunk, choice_);
    if (!place_.Pass(chunk->writer_no, chunk->sequence)) return TooManyWriters();
    place_.received_time_us = std::max(place_.received_time_us, chunk->received_time_us);
  }
  return absl::OkStatus();
}

absl::Status FollowStream::Learn(const std::vector<HeadChunkPtr>& chunks) {
  const std::vector<SeriesNo> unknown = choice_.Unknown(chunks);
  if (unknown.empty()) return absl::OkStatus();
  // They were numbered before their chunks were committed: a snapshot of now has them.
  auto snapshot = sources_.store.OpenSnapshot(Ask().deadline);
  if (!snapshot.ok()) return AsPassing(snapshot.status());
  (*snapshot)->Heed(call_.cancelled);
  for (std::size_t i = 0; i < unknown.size(); i += kSeriesPerLook) {
    const std::size_t end = std::min(unknown.size(), i + kSeriesPerLook);
    SeriesSelection wanted;
    for (std::size_t at = i; at < end; ++at) wanted.series_nos.push_back(Value(unknown[at]));
    const auto series =
        (*snapshot)->ListSeries(trial_id_, wanted, SeriesNo{0}, static_cast<std::int32_t>(end - i));
    if (!series.ok()) return AsPassing(series.status());
    if (series->size() != end - i) {
      return AsPassing(absl::DataLossError("it does not know all series of the newest samples"));
    }
    for (const Series& one : *series) {
      if (choice_.Learn(one)) new_series_.push_back(ToWire(one));
    }
  }
  return absl::OkStatus();
}

bool FollowStream::LooksAlive() const {
  const SteadyTime now = SteadyTime::Now(sources_.clock);
  for (const auto& [writer_no, seen] : sources_.liveness.Seen(trial_id_)) {
    if (seen.open && now - seen.heard < kHeardOf) return true;
  }
  return false;
}

absl::Status FollowStream::LookAtTrial() {
  next_look_ = SteadyTime::Now() + kTrialLook;
  if (LooksAlive()) return absl::OkStatus();
  {
    auto snapshot = sources_.store.OpenSnapshot(Ask().deadline);
    if (!snapshot.ok()) return absl::OkStatus();  // the next look is soon enough
    const auto record = (*snapshot)->ReadTrial(trial_id_);
    if (absl::IsNotFound(record.status())) return record.status();
    if (!record.ok() || record->state == TrialState::kRunning) return absl::OkStatus();
  }
  auto view = TrialView::Open(sources_, ref_, Ask());
  if (!view.ok()) return AsPassing(view.status());
  if ((*view)->record().state == TrialState::kRunning) return absl::OkStatus();
  // All that was acked before that view goes out first.
  STEPWELL_RETURN_IF_ERROR(Gather());
  if (more_ || heads_ended_) return absl::OkStatus();
  auto completeness = (*view)->Completeness(metric_group_);
  if (!completeness.ok()) return AsPassing(completeness.status());
  completeness_ = *std::move(completeness);
  state_ = static_cast<v1::TrialState>((*view)->record().state);
  trial_ended_ = true;
  MakeMessages();
  return absl::OkStatus();
}

void FollowStream::MakeMessages() {
  v1::FollowSamplesResponse message;
  const auto push = [&] {
    message.set_cursor(cursor_);
    message.set_state(v1::TRIAL_STATE_RUNNING);
    if (first_) {
      message.set_missing_before_time_us(missing_before_time_us_);
      if (completeness_) *message.mutable_completeness() = *completeness_;
    }
    first_ = false;
    ready_.push_back(std::exchange(message, {}));
  };
  std::size_t series_bytes = 0;
  for (v1::Series& series : new_series_) {
    if (series_bytes > kSeriesBytes) push();
    if (series_bytes > kSeriesBytes) series_bytes = 0;
    series_bytes += series.ByteSizeLong();
    *message.add_series() = std::move(series);
  }
  new_series_.clear();
  samples_.MoveTo(message);
  cursor_ = place_.ToCursor(database_, trial_id_);
  sent_index_ = place_.log_index;
  push();
  v1::FollowSamplesResponse& last = ready_.back();
  last.set_state(state_);
  if (trial_ended_) *last.mutable_completeness() = *completeness_;
  next_send_ = SteadyTime::Now() + kPace;
  next_beat_ = SteadyTime::Now() + kBeat;
}

}  // namespace stepwell
