#include "tests/unit/cli/small_master.h"

#include <grpcpp/grpcpp.h>

#include <iterator>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/sha256.h"
#include "stepwell/v1/admin.grpc.pb.h"
#include "stepwell/v1/query.grpc.pb.h"
#include "stepwell/v1/token.grpc.pb.h"
#include "stepwell/v1/trace.grpc.pb.h"

namespace stepwell::cli {
namespace {

constexpr std::int64_t kTrialId = 7;
constexpr std::int64_t kFirstUs = 1'763'632'882'000'000;
constexpr std::int64_t kSecondUs = 1'000'000;
// A read of it ends after each sample, as a master ends one that takes a minute.
constexpr char kSlowRun[] = "slow-run";
constexpr int kSlowSamples = 3;

v1::Trial TheTrial() {
  v1::Trial trial;
  trial.set_trial_id(kTrialId);
  trial.set_project("default");
  trial.set_external_id("my-run");
  trial.set_state(v1::TRIAL_STATE_COMPLETED);
  trial.set_attempt_count(1);
  trial.set_series_count(3);
  trial.set_created_time_us(kFirstUs);
  trial.set_first_sample_time_us(kFirstUs);
  trial.set_last_sample_time_us(kFirstUs + kSecondUs);
  return trial;
}

v1::Series TheSeries(int series_no) {
  static constexpr const char* kNames[][2] = {
      {"training", "loss"}, {"training", "samples_per_second"}, {"cpu", "cpu_util_simple"}};
  v1::Series series;
  series.set_series_no(series_no);
  series.mutable_key()->set_metric_group(kNames[series_no - 1][0]);
  series.mutable_key()->set_name(kNames[series_no - 1][1]);
  (*series.mutable_key()->mutable_labels())["rank"] = "0";
  series.set_kind(v1::SERIES_KIND_GAUGE);
  return series;
}

bool Selects(const v1::SeriesSelector& selector, const v1::SeriesKey& key) {
  if (!selector.metric_group().empty() && selector.metric_group() != key.metric_group()) {
    return false;
  }
  if (!selector.name().empty() && selector.name() != key.name()) return false;
  for (const auto& [name, value] : selector.labels()) {
    if (key.labels().count(name) == 0 || key.labels().at(name) != value) return false;
  }
  return true;
}

grpc::Status Find(const v1::TrialRef& ref) {
  for (const char* name : {"my-run", "next-run", kSlowRun}) {
    if (ref.trial_id() == kTrialId || ref.external_id() == name) return grpc::Status::OK;
  }
  return {grpc::StatusCode::NOT_FOUND, absl::StrCat("there is no trial '", ref.external_id(), "'")};
}

v1::Token TheToken() {
  v1::Token token;
  token.set_token_id("5f0c21d3a9be");
  token.set_name("ci");
  token.add_grants("read:vision");
  token.set_created_time_us(kFirstUs);
  return token;
}

class Tokens : public v1::TokenService::Service {
  grpc::Status CreateToken(grpc::ServerContext* /*context*/, const v1::CreateTokenRequest* request,
                           v1::CreateTokenResponse* response) override {
    response->set_text("stepwell_5f0c21d3a9be_0123");
    *response->mutable_token() = TheToken();
    *response->mutable_token()->mutable_grants() = request->grants();
    return grpc::Status::OK;
  }
  // One to a page.
  grpc::Status ListTokens(grpc::ServerContext* /*context*/, const v1::ListTokensRequest* request,
                          v1::ListTokensResponse* response) override {
    *response->add_tokens() = TheToken();
    if (request->page_token().empty()) response->set_next_page_token("2");
    return grpc::Status::OK;
  }
  grpc::Status FetchIngestToken(grpc::ServerContext* /*context*/,
                                const v1::FetchIngestTokenRequest* request,
                                v1::FetchIngestTokenResponse* response) override {
    response->set_text("stepwell_5f0c21d3a9be_0123");
    *response->mutable_token() = TheToken();
    response->mutable_token()->set_made_by("a9be5f0c21d3");
    response->mutable_token()->set_grants(0, absl::StrCat("ingest:", request->trial().project(),
                                                          "/", request->trial().external_id()));
    return grpc::Status::OK;
  }
  grpc::Status RevokeToken(grpc::ServerContext* /*context*/, const v1::RevokeTokenRequest* request,
                           v1::RevokeTokenResponse* response) override {
    *response->mutable_token() = TheToken();
    response->mutable_token()->set_token_id(request->token_id());
    return grpc::Status::OK;
  }
};

class Query : public v1::QueryService::Service {
  // Of a name the first page is empty: whoever looks for one must ask again.
  grpc::Status ListTrials(grpc::ServerContext* /*context*/, const v1::ListTrialsRequest* request,
                          v1::ListTrialsResponse* response) override {
    if (!request->name_contains().empty() && request->page_token().empty()) {
      response->set_next_page_token("looked at some");
      return grpc::Status::OK;
    }
    if (TheTrial().external_id().find(request->name_contains()) != std::string::npos) {
      *response->add_trials() = TheTrial();
    }
    return grpc::Status::OK;
  }
  grpc::Status GetTrial(grpc::ServerContext* /*context*/, const v1::GetTrialRequest* request,
                        v1::GetTrialResponse* response) override {
    *response->mutable_trial() = TheTrial();
    response->mutable_completeness()->set_contiguous(true);
    return Find(request->trial());
  }
  grpc::Status LatestValues(grpc::ServerContext* /*context*/,
                            const v1::LatestValuesRequest* request,
                            v1::LatestValuesResponse* response) override {
    for (int no = 1; no <= 3; ++no) {
      if (!Selects(request->selector(), TheSeries(no).key())) continue;
      v1::LatestValuesResponse::Value& value = *response->add_values();
      *value.mutable_series() = TheSeries(no);
      value.set_time_us(kFirstUs + kSecondUs);
      value.set_batch(1);
      value.set_value(no);
    }
    response->mutable_completeness()->set_answered_time_us(kFirstUs + 2 * kSecondUs);
    return Find(request->trial());
  }
  // Two to a page, so that whoever wants all must ask again.
  grpc::Status ListSeries(grpc::ServerContext* /*context*/, const v1::ListSeriesRequest* request,
                          v1::ListSeriesResponse* response) override {
    const bool is_first = request->page_token().empty();
    for (int no = is_first ? 1 : 3; no <= (is_first ? 2 : 3); ++no) {
      const v1::Series series = TheSeries(no);
      if (Selects(request->selector(), series.key())) *response->add_series() = series;
    }
    if (is_first) response->set_next_page_token("second");
    return Find(request->trial());
  }
  grpc::Status ReadSamples(grpc::ServerContext* /*context*/, const v1::ReadSamplesRequest* request,
                           grpc::ServerWriter<v1::ReadSamplesResponse>* writer) override {
    if (grpc::Status found = Find(request->trial()); !found.ok()) return found;
    if (request->trial().external_id() == kSlowRun) return ReadSlowly(*request, *writer);
    v1::ReadSamplesResponse samples;
    const bool is_later = request->time_range().start_time_us() > kFirstUs + kSecondUs;
    if (!is_later && Selects(request->selector(), TheSeries(1).key())) {
      *samples.mutable_series() = TheSeries(1);
      for (const double value : {2.5, 2.25}) {
        samples.add_timestamps_us(kFirstUs + samples.values_size() * kSecondUs);
        samples.add_batches(samples.values_size());
        samples.add_values(value);
      }
      samples.add_attempts(1);
    }
    samples.mutable_completeness()->set_contiguous(true);
    writer->Write(samples);
    return grpc::Status::OK;
  }
  // The cursor is how many samples came.
  static grpc::Status ReadSlowly(const v1::ReadSamplesRequest& request,
                                 grpc::ServerWriter<v1::ReadSamplesResponse>& writer) {
    int at = 0;
    if (!request.cursor().empty() && !absl::SimpleAtoi(request.cursor(), &at)) {
      return {grpc::StatusCode::INVALID_ARGUMENT, "cursor"};
    }
    v1::ReadSamplesResponse samples;
    *samples.mutable_series() = TheSeries(1);
    samples.add_timestamps_us(kFirstUs + at * kSecondUs);
    samples.add_batches(at);
    samples.add_values(at);
    samples.add_attempts(1);
    samples.set_cursor(absl::StrCat(at + 1));
    const bool is_last = at + 1 == kSlowSamples;
    if (is_last) samples.mutable_completeness()->set_contiguous(true);
    writer.Write(samples);
    if (is_last) return grpc::Status::OK;
    return {grpc::StatusCode::DEADLINE_EXCEEDED,
            "the read took over 60 s; go on with the cursor of the last message"};
  }
  grpc::Status QueryBuckets(grpc::ServerContext* /*context*/,
                            const v1::QueryBucketsRequest* request,
                            v1::QueryBucketsResponse* /*response*/) override {
    return Find(request->trial());
  }
  grpc::Status CompareTrials(grpc::ServerContext* /*context*/,
                             const v1::CompareTrialsRequest* request,
                             v1::CompareTrialsResponse* response) override {
    for (const v1::TrialRef& ref : request->trials()) {
      if (grpc::Status found = Find(ref); !found.ok()) return found;
      v1::Trial& trial = *response->add_trials()->mutable_trial();
      trial = TheTrial();
      trial.set_external_id(ref.external_id());
    }
    response->set_width(2);
    const v1::Series of_both = TheSeries(1);
    if (!request->selectors().empty() && !Selects(request->selectors(0), of_both.key())) {
      return grpc::Status::OK;
    }
    auto& series = *response->add_series();
    *series.mutable_key() = of_both.key();
    for (int i = 0; i < request->trials_size(); ++i) {
      auto& side = *series.add_sides();
      side.set_count(2);
      side.set_mean(2 + i);
      side.set_mean_difference(i);
      side.set_mean_ratio(1 + i / 2.0);
    }
    return grpc::Status::OK;
  }
  grpc::Status SummarizeTimings(grpc::ServerContext* /*context*/,
                                const v1::SummarizeTimingsRequest* request,
                                v1::SummarizeTimingsResponse* /*response*/) override {
    if (request->attempt() <= 1) return Find(request->trial());
    return {grpc::StatusCode::NOT_FOUND, "trial 7 has no attempt 2"};
  }
};

// One trace, of three bytes; next-run has three more: one that is damaged, a profile, and one of which other bytes come than
// were uploaded.
class Traces : public v1::TraceService::Service {
  static constexpr std::int32_t kChangedNo = 4;
  static std::string BytesOf(std::int32_t trace_no) {
    constexpr const char* kBytes[] = {
        "", "[]\n", "flops",
        R"([{"ph":"X","cat":"cpu_op","name":"aten::mm","ts":0,"dur":200,"pid":1,"tid":1}])"};
    if (trace_no == kChangedNo) return kBytes[3];
    return kBytes[trace_no >= 1 && trace_no <= 3 ? trace_no : 1];
  }
  static v1::Trace TheTrace(std::int32_t trace_no = 1) {
    const std::string bytes = BytesOf(trace_no);
    v1::Trace trace;
    trace.set_trace_no(trace_no);
    trace.mutable_header()->set_name("ep0-ba7-rank3.json");
    trace.mutable_header()->set_format(v1::TRACE_FORMAT_CHROME_JSON);
    trace.mutable_header()->set_byte_count(std::ssize(bytes));
    Sha256 sha;
    sha.Feed(bytes);
    if (trace_no == kChangedNo) sha.Feed(" as they were");
    trace.mutable_header()->set_sha256(sha.Finish());
    trace.set_state(v1::TRACE_STATE_COMPLETE);
    trace.set_received_bytes(std::ssize(bytes));
    return trace;
  }
  grpc::Status UploadTrace(grpc::ServerContext* /*context*/,
                           grpc::ServerReader<v1::UploadTraceRequest>* reader,
                           v1::UploadTraceResponse* response) override {
    v1::UploadTraceRequest message;
    std::int64_t received = 0;
    std::int64_t byte_count = 0;
    v1::TrialRef trial;
    while (reader->Read(&message)) {
      if (message.has_upload()) {
        byte_count = message.upload().header().byte_count();
        trial = message.upload().trial();
      }
      received += static_cast<std::int64_t>(message.part().data().size());
    }
    response->set_trace_no(1);
    response->set_received_bytes(received);
    response->set_complete(received == byte_count);
    return Find(trial);
  }
  grpc::Status ListTraces(grpc::ServerContext* /*context*/, const v1::ListTracesRequest* request,
                          v1::ListTracesResponse* response) override {
    *response->add_traces() = TheTrace();
    for (const std::int32_t more : {2, 3, kChangedNo}) {
      if (request->trial().external_id() == "next-run") *response->add_traces() = TheTrace(more);
    }
    return Find(request->trial());
  }
  grpc::Status GetTrace(grpc::ServerContext* /*context*/, const v1::GetTraceRequest* request,
                        grpc::ServerWriter<v1::GetTraceResponse>* writer) override {
    v1::GetTraceResponse message;
    *message.mutable_trace() = TheTrace(request->trace_no());
    writer->Write(message);
    message.mutable_part()->set_data(BytesOf(request->trace_no()));
    writer->Write(message);
    return grpc::Status::OK;
  }
  grpc::Status DeleteTrace(grpc::ServerContext* /*context*/, const v1::DeleteTraceRequest* request,
                           v1::DeleteTraceResponse* response) override {
    response->set_byte_count(3);
    return Find(request->trial());
  }
  // Rank 0 gives one, any other does not.
  grpc::Status CaptureTrace(grpc::ServerContext* /*context*/,
                            const v1::CaptureTraceRequest* request,
                            grpc::ServerWriter<v1::CaptureTraceResponse>* writer) override {
    if (const grpc::Status found = Find(request->trial()); !found.ok()) return found;
    v1::CaptureTraceResponse news;
    news.set_step_count(request->step_count());
    news.add_ranks()->set_state(v1::CAPTURE_STATE_ASKED);
    for (const std::int32_t rank : request->ranks()) {
      if (rank == 0) continue;
      v1::CapturedRank& failed = *news.add_ranks();
      failed.set_rank(rank);
      failed.set_state(v1::CAPTURE_STATE_FAILED);
      failed.set_reason("UNKNOWN_RANK");
      failed.set_message("the trial has no such rank");
    }
    writer->Write(news);
    news.set_first_batch(120);
    news.mutable_ranks(0)->set_state(v1::CAPTURE_STATE_STORED);
    news.mutable_ranks(0)->set_trace_no(1);
    news.mutable_ranks(0)->set_step_count(request->step_count());
    news.mutable_ranks(0)->set_span_count(1234);
    news.mutable_ranks(0)->set_name("capture-ep0-ba125-rank0.pftrace");
    if (request->native()) {
      v1::CapturedNative& native = *news.mutable_ranks(0)->mutable_native();
      native.set_state(v1::CAPTURE_STATE_FAILED);
      native.set_reason("NO_PROFILER");
      native.set_message("its program has not imported torch");
    }
    news.set_is_over(true);
    writer->Write(news);
    return grpc::Status::OK;
  }
};

class Admin : public v1::AdminService::Service {
  grpc::Status Flush(grpc::ServerContext* /*context*/, const v1::FlushRequest* /*request*/,
                     v1::FlushResponse* response) override {
    response->set_sample_count(2);
    response->set_trial_count(1);
    return grpc::Status::OK;
  }
  grpc::Status GetStatus(grpc::ServerContext* /*context*/, const v1::GetStatusRequest* /*request*/,
                         v1::GetStatusResponse* response) override {
    response->set_master_id("small");
    response->set_role("owner");
    return grpc::Status::OK;
  }
  grpc::Status SetProfiling(grpc::ServerContext* /*context*/,
                            const v1::SetProfilingRequest* request,
                            v1::SetProfilingResponse* response) override {
    response->set_trial_id(7);
    response->mutable_profiling()->set_on(request->on());
    response->mutable_profiling()->set_interval_us(request->interval_us());
    *response->mutable_profiling()->mutable_metric_groups() = request->metric_groups();
    response->set_writers_told(2);
    return Find(request->trial());
  }
  static grpc::Status FindPlace(const v1::CapsPlace& place) {
    return place.has_trial() ? Find(place.trial()) : grpc::Status::OK;
  }
  static v1::EffectiveCap RawAge(const v1::CapsPlace& place, std::int64_t value) {
    v1::EffectiveCap cap;
    cap.set_field("raw_age_seconds");
    cap.set_value(value);
    *cap.mutable_place() = place;
    return cap;
  }
  static v1::CapRemoval Removal() {
    v1::CapRemoval removal;
    removal.set_trial_id(kTrialId);
    removal.set_field("series_samples");
    removal.set_sample_count(1200);
    removal.set_first_time_us(kFirstUs);
    removal.set_last_time_us(kFirstUs + kSecondUs);
    return removal;
  }
  grpc::Status GetCaps(grpc::ServerContext* /*context*/, const v1::GetCapsRequest* request,
                       v1::GetCapsResponse* response) override {
    *response->add_effective() = RawAge(request->place(), 86'400);
    return FindPlace(request->place());
  }
  grpc::Status SetCaps(grpc::ServerContext* /*context*/, const v1::SetCapsRequest* request,
                       v1::SetCapsResponse* response) override {
    *response->mutable_set() = request->caps();
    *response->add_effective() = RawAge(request->place(), request->caps().raw_age_seconds());
    return FindPlace(request->place());
  }
  grpc::Status PreviewCaps(grpc::ServerContext* /*context*/, const v1::PreviewCapsRequest* request,
                           v1::PreviewCapsResponse* response) override {
    *response->add_removals() = Removal();
    response->set_sample_count(1200);
    return FindPlace(request->place());
  }
  grpc::Status SweepCaps(grpc::ServerContext* /*context*/, const v1::SweepCapsRequest* request,
                         v1::SweepCapsResponse* response) override {
    if (request->place().metric_group() == "slow") {
      return {grpc::StatusCode::DEADLINE_EXCEEDED, "the time is over and something is left"};
    }
    *response->add_removals() = Removal();
    response->set_sample_count(1200);
    return FindPlace(request->place());
  }
  grpc::Status ArchiveTrial(grpc::ServerContext* /*context*/,
                            const v1::ArchiveTrialRequest* request,
                            v1::ArchiveTrialResponse* response) override {
    response->set_trial_id(kTrialId);
    response->set_archived(request->archived());
    return Find(request->trial());
  }
  grpc::Status DeleteTrial(grpc::ServerContext* /*context*/, const v1::DeleteTrialRequest* request,
                           v1::DeleteTrialResponse* response) override {
    response->set_trial_id(kTrialId);
    response->set_sample_count(1200);
    response->set_byte_count(4096);
    response->set_done(true);
    return Find(request->trial());
  }
};

}  // namespace

struct SmallMaster::Services {
  Query query;
  Admin admin;
  Traces traces;
  Tokens tokens;
  std::unique_ptr<grpc::Server> server;
};

SmallMaster::SmallMaster() : services_(std::make_unique<Services>()) {
  int port = 0;
  grpc::ServerBuilder builder;
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
  builder.RegisterService(&services_->query);
  builder.RegisterService(&services_->admin);
  builder.RegisterService(&services_->traces);
  builder.RegisterService(&services_->tokens);
  services_->server = builder.BuildAndStart();
  STEPWELL_CHECK(services_->server != nullptr && port != 0);
  address_ = absl::StrCat("127.0.0.1:", port);
}

SmallMaster::~SmallMaster() { services_->server->Shutdown(); }

}  // namespace stepwell::cli
