// Where a FollowStream begins, and what it says when its place is not held any more.
#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/status_macros.h"
#include "base/steady_time.h"
#include "server/follow_stream.h"
#include "server/limits.h"
#include "server/query_wire.h"

namespace stepwell {
namespace {

constexpr std::int64_t kLookbackUsMax = 60'000'000;
constexpr absl::Duration kReplayPoll = absl::Milliseconds(20);
constexpr absl::Duration kReplayPatience = absl::Seconds(20);

absl::Status PlaceGone(std::int64_t read_from_us) {
  absl::Status status = absl::OutOfRangeError(
      absl::StrCat("the master no longer holds this place in memory; ReadSamples goes on with"
                   " time_range.start_time_us = ",
                   read_from_us, " (",
                   absl::FormatTime("%Y-%m-%dT%H:%M:%E6SZ", absl::FromUnixMicros(read_from_us),
                                    absl::UTCTimeZone()),
                   ")"));
  status.SetPayload("stepwell/reason", absl::Cord("PLACE_NOT_HELD"));
  status.SetPayload("stepwell/metadata/read_from_time_us", absl::Cord(absl::StrCat(read_from_us)));
  return status;
}

absl::Status SetBack() {
  return absl::InvalidArgumentError(
      "cursor: the database holds less than this cursor has passed: it was set back; allowed: "
      "empty,"
      " or a cursor of since then");
}

absl::StatusOr<std::vector<SeriesSelection>> CheckRequest(
    const v1::FollowSamplesRequest& request_untrusted) {
  if (request_untrusted.lookback_us() < 0 || request_untrusted.lookback_us() > kLookbackUsMax) {
    return absl::InvalidArgumentError(absl::StrCat(
        "lookback_us is ", request_untrusted.lookback_us(), "; allowed: 0 ... ", kLookbackUsMax));
  }
  return CheckSelectors(request_untrusted.selectors());
}

// Waits for a journal that is being replayed.
absl::StatusOr<std::unique_ptr<HeadFollower>> StartFollower(const QuerySources& sources,
                                                            TrialId trial_id,
                                                            absl::Duration lookback,
                                                            const ReadCall& call) {
  const SteadyTime patience = std::min(SteadyTime::Now() + kReplayPatience, call.deadline);
  for (;;) {
    auto follower = HeadFollower::Start(sources.heads, trial_id, lookback);
    const bool wait = !follower.ok() && sources.heads.Recovering(trial_id);
    if (!wait || call.cancelled() || patience.HasPassed()) return follower;
    absl::SleepFor(kReplayPoll);
  }
}

}  // namespace

absl::StatusOr<std::unique_ptr<FollowStream>> FollowStream::Open(
    const QuerySources& sources, const v1::FollowSamplesRequest& request_untrusted,
    const ReadCall& call) {
  STEPWELL_ASSIGN_OR_RETURN(std::vector<SeriesSelection> selections,
                            CheckRequest(request_untrusted));
  STEPWELL_ASSIGN_OR_RETURN(const TrialSelector trial, CheckTrialRef(request_untrusted.trial()));
  const SteadyTime deadline = std::min(call.deadline, SteadyTime::Now() + absl::Seconds(30));
  STEPWELL_ASSIGN_OR_RETURN(const TrialId trial_id,
                            sources.store.FindTrial(trial, call.readable_projects, deadline));
  std::unique_ptr<FollowStream> stream(
      new FollowStream(sources, call, trial_id, std::move(selections)));
  STEPWELL_RETURN_IF_ERROR(stream->Begin(request_untrusted));
  return stream;
}

absl::Status FollowStream::Begin(const v1::FollowSamplesRequest& request_untrusted) {
  ref_ = request_untrusted.trial();
  const bool has_cursor = !request_untrusted.cursor().empty();
  if (has_cursor) {
    STEPWELL_ASSIGN_OR_RETURN(
        place_, FollowPlace::FromCursor(request_untrusted.cursor(), database_, trial_id_));
  }
  const std::int64_t lookback_us = has_cursor ? 0 : request_untrusted.lookback_us();
  STEPWELL_ASSIGN_OR_RETURN(
      follower_, StartFollower(sources_, trial_id_, absl::Microseconds(lookback_us), call_));
  // In this order: from here on heads keep the trial, so that a writer that they do not know after the
  // snapshot had nothing but what the snapshot knows as folded.
  STEPWELL_ASSIGN_OR_RETURN(const auto view, TrialView::Open(sources_, ref_, Ask()));
  const HeadFollower::Stands stands = follower_->StandsAt(follower_->start_index());
  if (stands.ended) return absl::UnavailableError("the master has just lost the database");
  STEPWELL_RETURN_IF_ERROR(has_cursor ? BeginAtCursor(stands, *view)
                                      : BeginAtStart(stands, *view, lookback_us));
  place_.log_id = follower_->log_id();
  place_.log_index = sent_index_ = next_index_;
  cursor_ = place_.ToCursor(database_, trial_id_);
  STEPWELL_ASSIGN_OR_RETURN(completeness_, view->Completeness(metric_group_));
  return absl::OkStatus();
}

absl::Status FollowStream::BeginAtCursor(const HeadFollower::Stands& stands,
                                         const TrialView& view) {
  if (place_.is_of_another_database) {
    return PlaceGone(std::min({place_.received_time_us, follower_->OldestGone(0),
                               OldestStored(view, place_.received_time_us),
                               follower_->OldestFrom(stands.begin_index)}));
  }
  FollowPlace held = place_;
  std::set<WriterNo> known;
  bool gone = false;
  bool too_many = false;
  const auto look = [&](WriterNo writer_no, std::uint64_t gone_sequence, std::uint64_t newest) {
    known.insert(writer_no);
    const std::uint64_t passed = place_.SequenceOf(writer_no);
    gone = gone || passed < gone_sequence;
    too_many = !held.Pass(writer_no, gone_sequence) || too_many;
    return passed <= newest;
  };
  for (const HeadFollower::Stand& writer : stands.writers) {
    if (!look(writer.writer_no, writer.gone_sequence, writer.newest_sequence)) return SetBack();
  }
  for (const WriterRecord& writer : view.writers()) {
    if (known.contains(writer.writer_no)) continue;
    if (!look(writer.writer_no, writer.folded_sequence, writer.committed_sequence)) {
      return SetBack();
    }
  }
  if (too_many) return TooManyWriters();
  for (std::int32_t no = 1; no <= place_.writer_no_max(); ++no) {
    const auto writer_no = static_cast<WriterNo>(no);
    if (place_.SequenceOf(writer_no) > 0 && !known.contains(writer_no)) return SetBack();
  }
  if (gone) {
    const bool same_log = place_.log_id == follower_->log_id();
    const std::int64_t gone_us =
        same_log ? follower_->OldestGone(place_.log_index)
                 : std::min(follower_->OldestGone(0), OldestStored(view, place_.received_time_us));
    // What left without samples is no loss.
    if (gone_us != INT64_MAX) {
      return PlaceGone(std::min(gone_us, follower_->OldestFrom(stands.begin_index)));
    }
  }
  place_ = std::move(held);
  next_index_ = stands.begin_index;
  return absl::OkStatus();
}

absl::Status FollowStream::BeginAtStart(const HeadFollower::Stands& stands, const TrialView& view,
                                        std::int64_t lookback_us) {
  std::set<WriterNo> known;
  bool has_older = stands.has_older;
  for (const HeadFollower::Stand& writer : stands.writers) {
    known.insert(writer.writer_no);
    if (!place_.Pass(writer.writer_no, writer.index_sequence)) return TooManyWriters();
  }
  for (const WriterRecord& writer : view.writers()) {
    if (known.contains(writer.writer_no)) continue;
    has_older = has_older || writer.folded_sequence > 0;
    if (!place_.Pass(writer.writer_no, writer.folded_sequence)) return TooManyWriters();
  }
  next_index_ = std::max(follower_->start_index(), stands.begin_index);
  place_.received_time_us = follower_->start_time_us() - lookback_us;
  std::int64_t missing_us = follower_->OldestGone(follower_->start_index());
  if (lookback_us > 0) {
    missing_us = std::min(missing_us, follower_->OldestGoneSince(place_.received_time_us));
    if (has_older && place_.received_time_us < stands.whole_since_us) {
      missing_us = std::min(missing_us, OldestStored(view, place_.received_time_us));
    }
  }
  missing_before_time_us_ = missing_us == INT64_MAX ? 0 : missing_us;
  return absl::OkStatus();
}

absl::Status FollowStream::TooManyWriters() {
  return absl::ResourceExhaustedError(absl::StrCat("the trial has over ", kFollowWritersMax,
                                                   " writers, limit ", kFollowWritersMax,
                                                   " for those who follow: use ReadSamples"));
}

std::int64_t FollowStream::OldestStored(const TrialView& view, std::int64_t received_time_us) {
  // The ledger knows days. The one before, too: two masters' clocks may differ around midnight.
  const std::int64_t first_day = received_time_us / kDayUs - 1;
  std::int64_t oldest_us = INT64_MAX;
  for (const UsageRecord& usage : view.usage()) {
    if (usage.received_day < first_day || usage.sample_count == 0) continue;
    oldest_us = std::min(oldest_us, usage.first_time_us);
  }
  return oldest_us;
}

absl::Status FollowStream::PassGone(std::uint64_t begin_index) {
  // What left without samples is no loss. What was taken and not sent yet is, once the stream ends.
  if (follower_->OldestGone(next_index_) != INT64_MAX) {
    return PlaceGone(follower_->OldestFrom(sent_index_));
  }
  next_index_ = begin_index;
  return absl::OkStatus();
}

}  // namespace stepwell
