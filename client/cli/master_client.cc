#include "client/cli/master_client.h"

#include <grpc/support/log.h>
#include <grpc/support/time.h>
#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <ostream>

#include "absl/base/thread_annotations.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "base/steady_time.h"
#include "base/tls/tls_trouble.h"
#include "client/cli/connect_trouble.h"
#include "client/cli/terminal.h"
#include "client/traces/trace_upload.h"
#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"
#include "proto/retry_delay.h"
#include "stepwell/v1/admin.grpc.pb.h"
#include "stepwell/v1/query.grpc.pb.h"
#include "stepwell/v1/token.grpc.pb.h"
#include "stepwell/v1/trace.grpc.pb.h"

namespace stepwell::cli {
namespace {

// The master ends a read after 60 s; a little more, so that its own answer arrives.
constexpr absl::Duration kCallTime = absl::Seconds(65);
// Longer than a local connection ever takes, short enough to wait for.
constexpr absl::Duration kConnectTime = absl::Seconds(5);
// Nobody notices it between a key and the end.
constexpr absl::Duration kCancelTime = absl::Milliseconds(50);
constexpr std::int64_t kTrialIdMax = 9'223'372'036'854'775'807;

// A deadline for gRPC, by the clock that nobody sets.
gpr_timespec FromNow(absl::Duration wait) {
  return gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC),
                      gpr_time_from_nanos(absl::ToInt64Nanoseconds(wait), GPR_TIMESPAN));
}

// A failed handshake is told in our words. Who wants gRPC's sets its variable; why it ends a process is told anyway.
void QuietenGrpc() {
  if (std::getenv("GRPC_VERBOSITY") != nullptr) return;
  gpr_set_log_function([](gpr_log_func_args* line) {
    if (!absl::StartsWith(line->message, "assertion failed")) return;
    std::fprintf(stderr, "%s:%d: %s\n", line->file, line->line, line->message);
  });
}

std::shared_ptr<grpc::ChannelCredentials> CredentialsOf(const MasterPlace& place) {
  if (place.own.ca_pem.empty()) return grpc::InsecureChannelCredentials();
  auto tls = grpc::SslCredentials({place.own.ca_pem, place.own.key_pem, place.own.cert_pem});
  // No option: every user of a machine sees command lines. And never in plain.
  const char* token = std::getenv("STEPWELL_TOKEN");
  if (token == nullptr || *token == '\0') return tls;
  return grpc::CompositeChannelCredentials(tls, grpc::AccessTokenCredentials(token));
}

absl::Status FromGrpc(const grpc::Status& status) {
  if (status.ok()) return absl::OkStatus();
  // Each command shows it sooner or later.
  absl::Status told(static_cast<absl::StatusCode>(status.error_code()),
                    PrintableLines(status.error_message()));
  google::rpc::Status wire;
  google::rpc::ErrorInfo info;
  if (!wire.ParseFromString(status.error_details())) return told;
  for (const auto& detail : wire.details()) {
    if (!detail.UnpackTo(&info)) continue;
    told.SetPayload("stepwell/reason", absl::Cord(info.reason()));
    const auto from = info.metadata().find("read_from_time_us");
    if (from != info.metadata().end()) {
      told.SetPayload("stepwell/read_from_time_us", absl::Cord(from->second));
    }
  }
  return told;
}

}  // namespace

struct MasterClient::Stubs {
  explicit Stubs(const MasterPlace& at) : place(at) {
    QuietenGrpc();
    grpc::ChannelArguments arguments;
    // A whole answer of one million buckets is about 60 MB.
    arguments.SetMaxReceiveMessageSize(256 << 20);
    arguments.SetInt("grpc.enable_http_proxy", 0);
    // Who follows waits for a master that comes again, and notices one that is gone without a word.
    arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 200);
    arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 2000);
    arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, 20'000);
    arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 10'000);
    channel = grpc::CreateCustomChannel(place.address, CredentialsOf(place), arguments);
    query = v1::QueryService::NewStub(channel);
    admin = v1::AdminService::NewStub(channel);
    trace = v1::TraceService::NewStub(channel);
    token = v1::TokenService::NewStub(channel);
  }

  // Ends at the first failure: a refused connection is told at once.
  absl::Status Connect() {
    if (place.address == kOfflineServer) {
      return absl::UnavailableError("a word for recorders, which ask none then");
    }
    const SteadyTime deadline = SteadyTime::Now() + kConnectTime;
    for (;;) {
      if (cancelled()) return absl::CancelledError("cancelled");
      const grpc_connectivity_state state = channel->GetState(/*try_to_connect=*/true);
      if (state == GRPC_CHANNEL_READY) return absl::OkStatus();
      if (state == GRPC_CHANNEL_TRANSIENT_FAILURE) {
        // TLS that is not as it should be is nothing that passes by itself.
        std::string trouble = TlsTrouble(place.address, place.own);
        if (!trouble.empty()) return absl::FailedPreconditionError(trouble);
        if (cancelled()) return absl::CancelledError("cancelled");
        return absl::UnavailableError(ConnectTrouble(place.address, !place.own.ca_pem.empty()));
      }
      // In parts, so that a cancellation is seen.
      if (deadline.HasPassed()) {
        return absl::UnavailableError(absl::StrCat(
            "no answer within 5 s: ", ConnectTrouble(place.address, !place.own.ca_pem.empty())));
      }
      channel->WaitForStateChange(state, FromNow(std::min(deadline.Left(), kCancelTime)));
    }
  }

  template <typename Response, typename Request, typename Stub>
  absl::StatusOr<Response> Call(Stub& stub,
                                grpc::Status (Stub::*method)(grpc::ClientContext*, const Request&,
                                                             Response*),
                                const Request& request) {
    if (absl::Status connected = Connect(); !connected.ok()) return connected;
    grpc::ClientContext context;
    context.set_deadline(FromNow(kCallTime));
    const Cancellable cancellable(*this, context);
    Response response;
    if (absl::Status called = FromGrpc((stub.*method)(&context, request, &response));
        !called.ok()) {
      return called;
    }
    return response;
  }

  // While it lives, Cancel reaches the call of `context`.
  class Cancellable {
   public:
    Cancellable(Stubs& stubs, grpc::ClientContext& context) : stubs_(stubs) {
      absl::MutexLock lock(&stubs_.mu);
      stubs_.under_way = &context;
      if (stubs_.is_cancelled) context.TryCancel();
    }
    ~Cancellable() {
      absl::MutexLock lock(&stubs_.mu);
      stubs_.under_way = nullptr;
    }
    Cancellable(const Cancellable&) = delete;
    Cancellable& operator=(const Cancellable&) = delete;

   private:
    Stubs& stubs_;
  };

  void Cancel() {
    absl::MutexLock lock(&mu);
    is_cancelled = true;
    if (under_way != nullptr) under_way->TryCancel();
  }

  bool cancelled() {
    absl::MutexLock lock(&mu);
    return is_cancelled;
  }

  const MasterPlace& place;
  absl::Mutex mu;
  bool is_cancelled ABSL_GUARDED_BY(mu) = false;
  grpc::ClientContext* under_way ABSL_GUARDED_BY(mu) = nullptr;
  std::shared_ptr<grpc::Channel> channel;
  std::unique_ptr<v1::QueryService::Stub> query;
  std::unique_ptr<v1::AdminService::Stub> admin;
  std::unique_ptr<v1::TraceService::Stub> trace;
  std::unique_ptr<v1::TokenService::Stub> token;
};

MasterClient::MasterClient(MasterPlace place)
    : place_(std::move(place)), stubs_(std::make_unique<Stubs>(place_)) {}
MasterClient::~MasterClient() = default;

absl::StatusOr<v1::ListTrialsResponse> MasterClient::ListTrials(
    const v1::ListTrialsRequest& request) {
  return stubs_->Call(*stubs_->query, &v1::QueryService::Stub::ListTrials, request);
}

absl::StatusOr<v1::GetTrialResponse> MasterClient::GetTrial(const v1::GetTrialRequest& request) {
  return stubs_->Call(*stubs_->query, &v1::QueryService::Stub::GetTrial, request);
}

absl::StatusOr<v1::ListSeriesResponse> MasterClient::ListSeries(
    const v1::ListSeriesRequest& request) {
  return stubs_->Call(*stubs_->query, &v1::QueryService::Stub::ListSeries, request);
}

absl::StatusOr<v1::LatestValuesResponse> MasterClient::LatestValues(
    const v1::LatestValuesRequest& request) {
  return stubs_->Call(*stubs_->query, &v1::QueryService::Stub::LatestValues, request);
}

absl::StatusOr<v1::QueryBucketsResponse> MasterClient::QueryBuckets(
    const v1::QueryBucketsRequest& request) {
  return stubs_->Call(*stubs_->query, &v1::QueryService::Stub::QueryBuckets, request);
}

absl::StatusOr<v1::SummarizeTimingsResponse> MasterClient::SummarizeTimings(
    const v1::SummarizeTimingsRequest& request) {
  return stubs_->Call(*stubs_->query, &v1::QueryService::Stub::SummarizeTimings, request);
}

absl::StatusOr<v1::CompareTrialsResponse> MasterClient::CompareTrials(
    const v1::CompareTrialsRequest& request) {
  return stubs_->Call(*stubs_->query, &v1::QueryService::Stub::CompareTrials, request);
}

namespace {

// All messages to `take`; ends the call in order when it takes no more.
template <typename Response>
absl::Status ReadStream(grpc::ClientContext& context, grpc::ClientReader<Response>& reader,
                        const std::function<bool(const Response&)>& take) {
  Response response;
  while (reader.Read(&response)) {
    if (take(response)) continue;
    context.TryCancel();
    while (reader.Read(&response)) {
    }
    reader.Finish();
    return absl::OkStatus();
  }
  return FromGrpc(reader.Finish());
}

}  // namespace

absl::Status MasterClient::ReadSamples(
    const v1::ReadSamplesRequest& request,
    const std::function<bool(const v1::ReadSamplesResponse&)>& take) {
  if (absl::Status connected = stubs_->Connect(); !connected.ok()) return connected;
  grpc::ClientContext context;
  context.set_deadline(FromNow(kCallTime));
  const Stubs::Cancellable cancellable(*stubs_, context);
  return ReadStream(context, *stubs_->query->ReadSamples(&context, request), take);
}

absl::Status MasterClient::FollowSamples(
    const v1::FollowSamplesRequest& request,
    const std::function<bool(const v1::FollowSamplesResponse&)>& take) {
  if (absl::Status connected = stubs_->Connect(); !connected.ok()) return connected;
  grpc::ClientContext context;
  const Stubs::Cancellable cancellable(*stubs_, context);
  return ReadStream(context, *stubs_->query->FollowSamples(&context, request), take);
}

absl::StatusOr<v1::FlushResponse> MasterClient::Flush(const v1::FlushRequest& request) {
  return stubs_->Call(*stubs_->admin, &v1::AdminService::Stub::Flush, request);
}

absl::StatusOr<v1::GetStatusResponse> MasterClient::GetStatus(const v1::GetStatusRequest& request) {
  return stubs_->Call(*stubs_->admin, &v1::AdminService::Stub::GetStatus, request);
}

void MasterClient::Cancel() { stubs_->Cancel(); }

absl::StatusOr<v1::SetProfilingResponse> MasterClient::SetProfiling(
    const v1::SetProfilingRequest& request) {
  return stubs_->Call(*stubs_->admin, &v1::AdminService::Stub::SetProfiling, request);
}

absl::StatusOr<v1::GetCapsResponse> MasterClient::GetCaps(const v1::GetCapsRequest& request) {
  return stubs_->Call(*stubs_->admin, &v1::AdminService::Stub::GetCaps, request);
}

absl::StatusOr<v1::SetCapsResponse> MasterClient::SetCaps(const v1::SetCapsRequest& request) {
  return stubs_->Call(*stubs_->admin, &v1::AdminService::Stub::SetCaps, request);
}

absl::StatusOr<v1::PreviewCapsResponse> MasterClient::PreviewCaps(
    const v1::PreviewCapsRequest& request) {
  return stubs_->Call(*stubs_->admin, &v1::AdminService::Stub::PreviewCaps, request);
}

absl::StatusOr<v1::SweepCapsResponse> MasterClient::SweepCaps(const v1::SweepCapsRequest& request) {
  return stubs_->Call(*stubs_->admin, &v1::AdminService::Stub::SweepCaps, request);
}

absl::StatusOr<v1::ArchiveTrialResponse> MasterClient::ArchiveTrial(
    const v1::ArchiveTrialRequest& request) {
  return stubs_->Call(*stubs_->admin, &v1::AdminService::Stub::ArchiveTrial, request);
}

absl::StatusOr<v1::DeleteTrialResponse> MasterClient::DeleteTrial(
    const v1::DeleteTrialRequest& request) {
  return stubs_->Call(*stubs_->admin, &v1::AdminService::Stub::DeleteTrial, request);
}

absl::StatusOr<v1::CreateTokenResponse> MasterClient::CreateToken(
    const v1::CreateTokenRequest& request) {
  return stubs_->Call(*stubs_->token, &v1::TokenService::Stub::CreateToken, request);
}

absl::StatusOr<v1::ListTokensResponse> MasterClient::ListTokens(
    const v1::ListTokensRequest& request) {
  return stubs_->Call(*stubs_->token, &v1::TokenService::Stub::ListTokens, request);
}

absl::StatusOr<v1::RevokeTokenResponse> MasterClient::RevokeToken(
    const v1::RevokeTokenRequest& request) {
  return stubs_->Call(*stubs_->token, &v1::TokenService::Stub::RevokeToken, request);
}

absl::StatusOr<v1::FetchIngestTokenResponse> MasterClient::FetchIngestToken(
    const v1::FetchIngestTokenRequest& request) {
  return stubs_->Call(*stubs_->token, &v1::TokenService::Stub::FetchIngestToken, request);
}

absl::StatusOr<v1::UploadTraceResponse> MasterClient::UploadTrace(
    const v1::TraceUpload& upload, const std::function<bool(v1::TracePart&)>& next) {
  if (absl::Status connected = stubs_->Connect(); !connected.ok()) return connected;
  grpc::ClientContext context;
  const Stubs::Cancellable cancellable(*stubs_, context);
  v1::UploadTraceResponse response;
  const auto writer = stubs_->trace->UploadTrace(&context, &response);
  v1::UploadTraceRequest message;
  *message.mutable_upload() = upload;
  // A write fails where the master has answered already: the end says what.
  bool may_go_on = writer->Write(message);
  while (may_go_on && next(*message.mutable_part())) may_go_on = writer->Write(message);
  writer->WritesDone();
  const grpc::Status ended = writer->Finish();
  absl::Status called = FromGrpc(ended);
  const auto delay = RetryDelayIn(ended.error_details());
  if (absl::IsResourceExhausted(called) && delay) traces::SetComeAgain(*delay, called);
  if (!called.ok()) return called;
  return response;
}

absl::StatusOr<v1::ListTracesResponse> MasterClient::ListTraces(
    const v1::ListTracesRequest& request) {
  return stubs_->Call(*stubs_->trace, &v1::TraceService::Stub::ListTraces, request);
}

absl::StatusOr<v1::SummarizeTraceResponse> MasterClient::SummarizeTrace(
    const v1::SummarizeTraceRequest& request) {
  return stubs_->Call(*stubs_->trace, &v1::TraceService::Stub::SummarizeTrace, request);
}

absl::StatusOr<v1::DeleteTraceResponse> MasterClient::DeleteTrace(
    const v1::DeleteTraceRequest& request) {
  return stubs_->Call(*stubs_->trace, &v1::TraceService::Stub::DeleteTrace, request);
}

absl::Status MasterClient::GetTrace(const v1::GetTraceRequest& request,
                                    const std::function<bool(const v1::GetTraceResponse&)>& take) {
  if (absl::Status connected = stubs_->Connect(); !connected.ok()) return connected;
  grpc::ClientContext context;
  const Stubs::Cancellable cancellable(*stubs_, context);
  return ReadStream(context, *stubs_->trace->GetTrace(&context, request), take);
}

absl::Status MasterClient::MergeTraces(
    const v1::MergeTracesRequest& request,
    const std::function<bool(const v1::MergeTracesResponse&)>& take) {
  if (absl::Status connected = stubs_->Connect(); !connected.ok()) return connected;
  grpc::ClientContext context;
  const Stubs::Cancellable cancellable(*stubs_, context);
  return ReadStream(context, *stubs_->trace->MergeTraces(&context, request), take);
}

absl::Status MasterClient::CaptureTrace(
    const v1::CaptureTraceRequest& request,
    const std::function<bool(const v1::CaptureTraceResponse&)>& take) {
  if (absl::Status connected = stubs_->Connect(); !connected.ok()) return connected;
  grpc::ClientContext context;
  const Stubs::Cancellable cancellable(*stubs_, context);
  return ReadStream(context, *stubs_->trace->CaptureTrace(&context, request), take);
}

int ReportFailure(const absl::Status& status, const std::string& address, Streams streams) {
  if (status.code() != absl::StatusCode::kUnavailable) {
    streams.err << "stepwell: " << status.message() << "\n";
    return kExitFailed;
  }
  streams.err << "stepwell: no master answers at " << address << " (" << status.message()
              << ").\nStart one with 'stepwell serve', or name another with --server HOST:PORT or"
                 " STEPWELL_SERVER.\n";
  return kExitUnavailable;
}

absl::StatusOr<v1::TrialRef> ParseTrialRef(const std::string& text, const std::string& project) {
  v1::TrialRef ref;
  absl::string_view number = text;
  if (absl::ConsumePrefix(&number, "id:")) {
    std::int64_t trial_id = 0;
    if (!absl::SimpleAtoi(number, &trial_id) || trial_id < 1) {
      return absl::InvalidArgumentError(absl::StrCat(
          "TRIAL is '", text, "'; allowed: NAME, or id: and a number 1 ... ", kTrialIdMax));
    }
    if (!project.empty()) {
      return absl::InvalidArgumentError(
          absl::StrCat("--project goes with a NAME; '", text, "' is a number"));
    }
    ref.set_trial_id(trial_id);
    return ref;
  }
  if (text.empty()) {
    return absl::InvalidArgumentError("TRIAL is empty; allowed: NAME, or id: and a number");
  }
  ref.set_project(project);
  ref.set_external_id(text);
  return ref;
}

}  // namespace stepwell::cli
