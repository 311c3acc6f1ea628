#include "server/query_service.h"

#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <functional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/log.h"
#include "base/steady_time.h"
#include "server/deadline_watch.h"
#include "server/grpc_access.h"
#include "server/grpc_deadline.h"
#include "server/grpc_error.h"
#include "server/query_reads.h"
#include "server/read_admission.h"
#include "server/stall_watch.h"
#include "stepwell/v1/query.grpc.pb.h"

namespace stepwell {
namespace {

// How long a read waits for its turn before it is refused.
constexpr absl::Duration kTurnPatience = absl::Seconds(2);
// Heads hold a minute for who follows.
constexpr absl::Duration kStallMax = absl::Minutes(2);

grpc::Status NoTurn(const absl::Status& status) {
  return GrpcError(
      status, {.reason = "READS_UNDER_WAY", .retry_delay = absl::Seconds(1), .violations = {}});
}

grpc::Status NoPlaceToFollow(int follows_max, bool has_token) {
  return GrpcError(
      absl::ResourceExhaustedError(absl::StrCat(
          "too many calls of FollowSamples are under way, limit ", follows_max,
          has_token ? absl::StrCat(", of one token ", std::max(1, follows_max / 2)) : "")),
      {.reason = "FOLLOWS_UNDER_WAY", .retry_delay = absl::Seconds(10), .violations = {}});
}

// Ours to look into; everything else is the caller's or passes by itself.
void LogFailure(const char* method, const absl::Status& status) {
  if (status.code() == absl::StatusCode::kInternal ||
      status.code() == absl::StatusCode::kDataLoss || status.code() == absl::StatusCode::kUnknown) {
    log::Warning("read_failed", {{"method", method}, {"status", status.ToString()}});
  }
}

}  // namespace

class QueryGrpcService::Impl final : public v1::QueryService::Service {
 public:
  Impl(QuerySources sources, Options options)
      : reads_(sources),
        options_(options),
        admission_(options.reads_max, options.writers_wait),
        follows_(options.follows_max) {}

  grpc::Status ListTrials(grpc::ServerContext* context, const v1::ListTrialsRequest* request,
                          v1::ListTrialsResponse* response) override {
    return Answer("ListTrials", context, &QueryReads::ListTrials, *request, response);
  }
  grpc::Status GetTrial(grpc::ServerContext* context, const v1::GetTrialRequest* request,
                        v1::GetTrialResponse* response) override {
    return Answer("GetTrial", context, &QueryReads::GetTrial, *request, response);
  }
  grpc::Status ListSeries(grpc::ServerContext* context, const v1::ListSeriesRequest* request,
                          v1::ListSeriesResponse* response) override {
    return Answer("ListSeries", context, &QueryReads::ListSeries, *request, response);
  }
  grpc::Status LatestValues(grpc::ServerContext* context, const v1::LatestValuesRequest* request,
                            v1::LatestValuesResponse* response) override {
    const GrpcEntry entry = EnterCall(options_.access, *context, *request);
    if (!entry.ok()) return entry.status;
    auto ticket = admission_.Enter(kTurnPatience, PayerOf(entry.caller));
    if (!ticket.ok()) return NoTurn(ticket.status());
    auto answer = reads_.AnswerLatest(*request, CallOf(context, entry.caller, *ticket));
    if (!answer.ok()) {
      LogFailure("LatestValues", answer.status());
      return EndOfCall(entry.caller, GrpcError(answer.status()));
    }
    if (HasEnded(entry.caller)) return GrpcError(TokenEnded());
    (*std::move(answer)).MoveTo(*response);
    return grpc::Status::OK;
  }
  grpc::Status QueryBuckets(grpc::ServerContext* context, const v1::QueryBucketsRequest* request,
                            v1::QueryBucketsResponse* response) override {
    return Answer("QueryBuckets", context, &QueryReads::QueryBuckets, *request, response);
  }
  grpc::Status SummarizeTimings(grpc::ServerContext* context,
                                const v1::SummarizeTimingsRequest* request,
                                v1::SummarizeTimingsResponse* response) override {
    return Answer("SummarizeTimings", context, &QueryReads::SummarizeTimings, *request, response);
  }
  grpc::Status CompareTrials(grpc::ServerContext* context, const v1::CompareTrialsRequest* request,
                             v1::CompareTrialsResponse* response) override {
    return Answer("CompareTrials", context, &QueryReads::CompareTrials, *request, response);
  }

  grpc::Status ReadSamples(grpc::ServerContext* context, const v1::ReadSamplesRequest* request,
                           grpc::ServerWriter<v1::ReadSamplesResponse>* writer) override {
    const GrpcEntry entry = EnterCall(options_.access, *context, *request);
    if (!entry.ok()) return entry.status;
    auto ticket = admission_.Enter(kTurnPatience, PayerOf(entry.caller));
    if (!ticket.ok()) return NoTurn(ticket.status());
    const ReadCall call = CallOf(context, entry.caller, *ticket);
    // Write blocks while the client is slow: that is the bound on memory. A client that stops reading
    // would hold its turn and its pin for ever; the second is for the answer of a slow one.
    const DeadlineWatch watch(call.deadline + absl::Seconds(1),
                              [context] { context->TryCancel(); });
    StallWatch::Call watched(
        stalls_, [context] { context->TryCancel(); }, entry.caller);
    const absl::Status status =
        reads_.ReadSamples(*request, call, [&](const v1::ReadSamplesResponse& response) {
          if (call.deadline.HasPassed() || HasEnded(entry.caller)) return false;
          const StallWatch::Write write(watched);
          return writer->Write(response);
        });
    const bool is_ended = absl::IsCancelled(status) || absl::IsDeadlineExceeded(status);
    if (is_ended && call.deadline.HasPassed()) {
      return GrpcError(absl::DeadlineExceededError(
          "the read took too long: go on with the cursor of the last message"));
    }
    LogFailure("ReadSamples", status);
    return EndOfCall(entry.caller, GrpcError(status));
  }

  grpc::Status FollowSamples(grpc::ServerContext* context, const v1::FollowSamplesRequest* request,
                             grpc::ServerWriter<v1::FollowSamplesResponse>* writer) override {
    const GrpcEntry entry = EnterCall(options_.access, *context, *request);
    if (!entry.ok()) return entry.status;
    auto ticket = follows_.Enter(absl::ZeroDuration(), PayerOf(entry.caller));
    if (!ticket.ok()) return NoPlaceToFollow(options_.follows_max, entry.caller != nullptr);
    const ReadCall call{.deadline = CallDeadline(*context),
                        .cancelled = WhetherCancelled(context, entry.caller),
                        .readable_projects = ReadableProjects(entry.caller)};
    // Write blocks while the client is slow, and nothing is taken from heads meanwhile. One that takes
    // nothing at all gives its place to others: what it would go on with is long gone.
    StallWatch::Call watched(
        stalls_, [context] { context->TryCancel(); }, entry.caller);
    const absl::Status status =
        reads_.FollowSamples(*request, call, [&](const v1::FollowSamplesResponse& response) {
          const StallWatch::Write write(watched);
          return writer->Write(response);
        });
    LogFailure("FollowSamples", status);
    return EndOfCall(entry.caller, GrpcError(status));
  }

 private:
  // Gone, or not allowed any more.
  static std::function<bool()> WhetherCancelled(grpc::ServerContext* context, Caller caller) {
    return [context, caller = std::move(caller)] {
      return context->IsCancelled() || HasEnded(caller);
    };
  }
  template <typename Request, typename Response>
  grpc::Status Answer(const char* method, grpc::ServerContext* context,
                      absl::StatusOr<Response> (QueryReads::*read)(const Request&, const ReadCall&)
                          const,
                      const Request& request, Response* response) {
    const GrpcEntry entry = EnterCall(options_.access, *context, request);
    if (!entry.ok()) return entry.status;
    auto ticket = admission_.Enter(kTurnPatience, PayerOf(entry.caller));
    if (!ticket.ok()) return NoTurn(ticket.status());
    absl::StatusOr<Response> answer =
        (reads_.*read)(request, CallOf(context, entry.caller, *ticket));
    if (!answer.ok()) {
      LogFailure(method, answer.status());
      return EndOfCall(entry.caller, GrpcError(answer.status()));
    }
    if (HasEnded(entry.caller)) return GrpcError(TokenEnded());
    *response = *std::move(answer);
    return grpc::Status::OK;
  }

  // `ticket` outlives the call.
  ReadCall CallOf(grpc::ServerContext* context, const Caller& caller,
                  ReadAdmission::Ticket& ticket) const {
    const SteadyTime asked = CallDeadline(*context);
    return {.deadline = std::min(asked, SteadyTime::Now() + options_.read_time_max),
            .cancelled = WhetherCancelled(context, caller),
            .readable_projects = ReadableProjects(caller),
            .rest = [&ticket](const std::function<void()>& wait) { ticket.RestFor(wait); }};
  }

  const QueryReads reads_;
  const Options options_;
  ReadAdmission admission_;
  ReadAdmission follows_;
  StallWatch stalls_{kStallMax};
};

QueryGrpcService::QueryGrpcService(QuerySources sources, Options options)
    : impl_(std::make_unique<Impl>(sources, options)) {}
QueryGrpcService::~QueryGrpcService() = default;
grpc::Service* QueryGrpcService::service() { return impl_.get(); }

}  // namespace stepwell
