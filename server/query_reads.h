// QueryReads: the answers of QueryService, without gRPC: any skin may call it. Each method pins the
// heads, takes one snapshot and combines them. Blocks on the database. Thread-safe.
//
//   QueryReads reads({.store = store, .heads = heads, .clock = clock, .liveness = registry});
//   STEPWELL_ASSIGN_OR_RETURN(auto response, reads.GetTrial(request, {.deadline = deadline}));
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/latest_answer.h"
#include "server/series_names.h"
#include "server/trial_view.h"
#include "stepwell/v1/query.pb.h"

namespace stepwell {

class QueryReads {
 public:
  // Takes one message of a stream; false = nobody takes more. May block.
  using SampleSink = std::function<bool(const v1::ReadSamplesResponse&)>;

  using FollowSink = std::function<bool(const v1::FollowSamplesResponse&)>;

  explicit QueryReads(QuerySources sources) : sources_(std::move(sources)) {}

  [[nodiscard]] absl::StatusOr<v1::ListTrialsResponse> ListTrials(
      const v1::ListTrialsRequest& request_untrusted, const ReadCall& call) const;
  [[nodiscard]] absl::StatusOr<v1::GetTrialResponse> GetTrial(
      const v1::GetTrialRequest& request_untrusted, const ReadCall& call) const;
  [[nodiscard]] absl::StatusOr<v1::ListSeriesResponse> ListSeries(
      const v1::ListSeriesRequest& request_untrusted, const ReadCall& call) const;
  [[nodiscard]] absl::StatusOr<v1::LatestValuesResponse> LatestValues(
      const v1::LatestValuesRequest& request_untrusted, const ReadCall& call) const;
  // The same, its values as they travel.
  [[nodiscard]] absl::StatusOr<LatestAnswer> AnswerLatest(
      const v1::LatestValuesRequest& request_untrusted, const ReadCall& call) const;
  // Messages of at most page_samples samples, as fast as `sink` takes them.
  [[nodiscard]] absl::Status ReadSamples(const v1::ReadSamplesRequest& request_untrusted,
                                         const ReadCall& call, const SampleSink& sink) const;
  // Until the trial ends, `call` is cancelled or `sink` takes no more: may last for days.
  [[nodiscard]] absl::Status FollowSamples(const v1::FollowSamplesRequest& request_untrusted,
                                           const ReadCall& call, const FollowSink& sink) const;
  [[nodiscard]] absl::StatusOr<v1::QueryBucketsResponse> QueryBuckets(
      const v1::QueryBucketsRequest& request_untrusted, const ReadCall& call) const;
  [[nodiscard]] absl::StatusOr<v1::SummarizeTimingsResponse> SummarizeTimings(
      const v1::SummarizeTimingsRequest& request_untrusted, const ReadCall& call) const;
  // All trials at one moment, one after the other.
  [[nodiscard]] absl::StatusOr<v1::CompareTrialsResponse> CompareTrials(
      const v1::CompareTrialsRequest& request_untrusted, const ReadCall& call) const;

 private:
  // Of what is in memory; no value where rows must be asked, or the trial is not to be found so.
  absl::StatusOr<std::optional<LatestAnswer>> AnswerLatestFromMemory(
      TrialId trial_id, const SeriesSelection& selection, const ReadCall& call) const;
  // What newest values in heads are worth: those of a master that owns the database are the newest.
  enum class HeadsHold { kAllThatIsNewest, kPerhaps };
  absl::StatusOr<HeadsHold> WhetherHeadsHold(const ReadCall& call) const;
  absl::StatusOr<LatestAnswer> AnswerLatestFromRows(TrialView& view,
                                                    const SeriesSelection& selection,
                                                    HeadsHold heads_hold) const;
  // From memory, and from rows where those were not asked yet.
  absl::StatusOr<Heads::Latest> ReadLatest(TrialView& view, const std::vector<Series>& series,
                                           HeadsHold heads_hold) const;

  const QuerySources sources_;
  const std::unique_ptr<SeriesNames> names_ = std::make_unique<SeriesNames>();
};

}  // namespace stepwell
