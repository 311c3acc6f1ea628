// MasterClient: the RPCs of one master as the subcommands need them, over gRPC. Every call ends
// within its deadline, and says by a status what a person should do. Confined to one thread, but
// for Cancel.
//
//   MasterClient master(options.master());
//   STEPWELL_ASSIGN_OR_RETURN(auto trial, master.GetTrial(request));
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/cli/command.h"
#include "client/cli/master_place.h"
#include "stepwell/v1/admin.pb.h"
#include "stepwell/v1/query.pb.h"
#include "stepwell/v1/token.pb.h"
#include "stepwell/v1/trace.pb.h"

namespace stepwell::cli {

class MasterClient {
 public:
  // Connects at the first call.
  explicit MasterClient(MasterPlace place);
  ~MasterClient();

  [[nodiscard]] absl::StatusOr<v1::ListTrialsResponse> ListTrials(const v1::ListTrialsRequest&);
  [[nodiscard]] absl::StatusOr<v1::GetTrialResponse> GetTrial(const v1::GetTrialRequest&);
  [[nodiscard]] absl::StatusOr<v1::ListSeriesResponse> ListSeries(const v1::ListSeriesRequest&);
  [[nodiscard]] absl::StatusOr<v1::LatestValuesResponse> LatestValues(
      const v1::LatestValuesRequest&);
  [[nodiscard]] absl::StatusOr<v1::QueryBucketsResponse> QueryBuckets(
      const v1::QueryBucketsRequest&);
  [[nodiscard]] absl::StatusOr<v1::SummarizeTimingsResponse> SummarizeTimings(
      const v1::SummarizeTimingsRequest&);
  [[nodiscard]] absl::StatusOr<v1::CompareTrialsResponse> CompareTrials(
      const v1::CompareTrialsRequest&);
  // Calls `take` for each message; stops early when it returns false.
  [[nodiscard]] absl::Status ReadSamples(
      const v1::ReadSamplesRequest&,
      const std::function<bool(const v1::ReadSamplesResponse&)>& take);
  // As ReadSamples, until the trial ends: without a deadline. Where a place is not held any more the
  // status has the payload "stepwell/read_from_time_us".
  [[nodiscard]] absl::Status FollowSamples(
      const v1::FollowSamplesRequest&,
      const std::function<bool(const v1::FollowSamplesResponse&)>& take);
  [[nodiscard]] absl::StatusOr<v1::FlushResponse> Flush(const v1::FlushRequest&);
  [[nodiscard]] absl::StatusOr<v1::GetStatusResponse> GetStatus(const v1::GetStatusRequest&);
  [[nodiscard]] absl::StatusOr<v1::SetProfilingResponse> SetProfiling(
      const v1::SetProfilingRequest&);
  [[nodiscard]] absl::StatusOr<v1::GetCapsResponse> GetCaps(const v1::GetCapsRequest&);
  [[nodiscard]] absl::StatusOr<v1::SetCapsResponse> SetCaps(const v1::SetCapsRequest&);
  [[nodiscard]] absl::StatusOr<v1::PreviewCapsResponse> PreviewCaps(const v1::PreviewCapsRequest&);
  [[nodiscard]] absl::StatusOr<v1::SweepCapsResponse> SweepCaps(const v1::SweepCapsRequest&);
  [[nodiscard]] absl::StatusOr<v1::ArchiveTrialResponse> ArchiveTrial(
      const v1::ArchiveTrialRequest&);
  [[nodiscard]] absl::StatusOr<v1::DeleteTrialResponse> DeleteTrial(const v1::DeleteTrialRequest&);
  [[nodiscard]] absl::StatusOr<v1::CreateTokenResponse> CreateToken(const v1::CreateTokenRequest&);
  [[nodiscard]] absl::StatusOr<v1::ListTokensResponse> ListTokens(const v1::ListTokensRequest&);
  [[nodiscard]] absl::StatusOr<v1::RevokeTokenResponse> RevokeToken(const v1::RevokeTokenRequest&);
  // A refusal's reason is its payload "stepwell/reason", as of all calls.
  [[nodiscard]] absl::StatusOr<v1::FetchIngestTokenResponse> FetchIngestToken(
      const v1::FetchIngestTokenRequest&);

  // Sends the header, then what `next` gives until it says no. Without a deadline: the master ends a call
  // that stands still.
  [[nodiscard]] absl::StatusOr<v1::UploadTraceResponse> UploadTrace(
      const v1::TraceUpload&, const std::function<bool(v1::TracePart&)>& next);
  [[nodiscard]] absl::StatusOr<v1::ListTracesResponse> ListTraces(const v1::ListTracesRequest&);
  [[nodiscard]] absl::StatusOr<v1::SummarizeTraceResponse> SummarizeTrace(
      const v1::SummarizeTraceRequest&);
  [[nodiscard]] absl::StatusOr<v1::DeleteTraceResponse> DeleteTrace(const v1::DeleteTraceRequest&);
  // Calls `take` for each message; stops early when it returns false. Without a deadline, as above.
  [[nodiscard]] absl::Status GetTrace(const v1::GetTraceRequest&,
                                      const std::function<bool(const v1::GetTraceResponse&)>& take);
  [[nodiscard]] absl::Status MergeTraces(
      const v1::MergeTracesRequest&,
      const std::function<bool(const v1::MergeTracesResponse&)>& take);
  // The same; the master ends it.
  [[nodiscard]] absl::Status CaptureTrace(
      const v1::CaptureTraceRequest&,
      const std::function<bool(const v1::CaptureTraceResponse&)>& take);

  // From any thread: the call under way and all later ones end at once with kCancelled.
  void Cancel();

 private:
  struct Stubs;  // defined in master_client.cc, wraps gRPC
  const MasterPlace place_;
  const std::unique_ptr<Stubs> stubs_;
};

// Prints one line that says what failed and what to do; returns the exit code.
int ReportFailure(const absl::Status& status, const std::string& address, Streams streams);

// NAME is an external id of `project`, id:7 a number. kInvalidArgument for anything else.
[[nodiscard]] absl::StatusOr<v1::TrialRef> ParseTrialRef(const std::string& text,
                                                         const std::string& project);

}  // namespace stepwell::cli
