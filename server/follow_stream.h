// FollowStream: one call of FollowSamples, message by message. It stands between a follower of heads and
// whoever sends what Next gives: it takes chunks only when the next message is asked for, so that a slow
// client costs one message of memory and nothing else. It asks the database for the names of new series,
// and once a second whether the trial has ended where no living writer says otherwise. Confined to one
// thread.
//
//   STEPWELL_ASSIGN_OR_RETURN(auto stream, FollowStream::Open(sources, request, call));
//   for (;;) { STEPWELL_ASSIGN_OR_RETURN(auto message, stream->Next()); if (!message) break; ... }
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/steady_time.h"
#include "server/follow_place.h"
#include "server/followed_samples.h"
#include "server/head_follower.h"
#include "server/series_choice.h"
#include "server/trial_view.h"
#include "stepwell/v1/follow.pb.h"

namespace stepwell {

class FollowStream {
 public:
  // kInvalidArgument, kNotFound; kOutOfRange where the cursor's place is not held any more; kUnavailable:
  // come again, with the cursor. Blocks while the trial's journal is replayed.
  static absl::StatusOr<std::unique_ptr<FollowStream>> Open(
      const QuerySources& sources, const v1::FollowSamplesRequest& request_untrusted,
      const ReadCall& call);

  // The next message, at the latest when one is due; nothing after the last one. kCancelled; kOutOfRange
  // when whoever takes the messages was too slow; kUnavailable: go on with the cursor.
  absl::StatusOr<std::optional<v1::FollowSamplesResponse>> Next();

 private:
  FollowStream(const QuerySources& sources, const ReadCall& call, TrialId trial_id,
               std::vector<SeriesSelection> selections);

  absl::Status Begin(const v1::FollowSamplesRequest& request_untrusted);
  absl::Status BeginAtCursor(const HeadFollower::Stands& stands, const TrialView& view);
  absl::Status BeginAtStart(const HeadFollower::Stands& stands, const TrialView& view,
                            std::int64_t lookback_us);
  static absl::Status TooManyWriters();
  // Oldest sample that may be stored of what was received at or after that time.
  static std::int64_t OldestStored(const TrialView& view, std::int64_t received_time_us);

  // Makes a message, or waits a little for something to make one of.
  absl::Status Step();
  // Takes chunks until a message is full or nothing more is there.
  absl::Status Gather();
  absl::Status Take(std::vector<HeadChunkPtr> chunks);
  absl::Status Learn(const std::vector<HeadChunkPtr>& chunks);
  absl::Status PassGone(std::uint64_t begin_index);
  // Makes the last message if the trial has ended and all of it was taken.
  absl::Status LookAtTrial();
  bool LooksAlive() const;
  void MakeMessages();
  ReadCall Ask() const;

  const QuerySources sources_;
  const ReadCall call_;
  const TrialId trial_id_;
  const Uuid database_;             // its incarnation as this began
  const std::string metric_group_;  // of all selections; empty = several
  v1::TrialRef ref_;
  SeriesChoice choice_;
  std::unique_ptr<HeadFollower> follower_;

  FollowPlace place_;  // after all that is in samples_
  std::uint64_t next_index_ = 0;
  bool more_ = true;          // chunks may wait that fit no more into the message
  bool heads_ended_ = false;  // the stream cannot go on here
  bool trial_ended_ = false;  // the last message is made

  FollowedSamples samples_;
  std::vector<v1::Series> new_series_;
  std::deque<v1::FollowSamplesResponse> ready_;
  std::string cursor_;            // of the last message made
  std::uint64_t sent_index_ = 0;  // of the same place
  bool first_ = true;
  std::int64_t missing_before_time_us_ = 0;
  std::optional<v1::Completeness> completeness_;  // for the next message
  v1::TrialState state_ = v1::TRIAL_STATE_RUNNING;
  SteadyTime next_send_ = SteadyTime::InfinitePast();
  SteadyTime next_beat_ = SteadyTime::InfinitePast();
  SteadyTime next_look_ = SteadyTime::InfinitePast();
};

}  // namespace stepwell
