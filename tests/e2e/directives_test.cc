// What the master asks of clients: who samples a machine, and whether and how densely a trial records.

#include <functional>
#include <optional>
#include <set>

#include "google/rpc/error_details.pb.h"
#include "stepwell/v1/query.grpc.pb.h"
#include "tests/e2e/error_details.h"
#include "tests/e2e/spine.h"
#include "tests/support/child_process.h"

namespace stepwell::testing {
namespace {

class DirectivesTest : public SpineTest {
 protected:
  static constexpr char kMachine[] = "5f0c1e1e-boot";

  struct Writer {
    Uuid uuid = Uuid::Random();
    std::string trial = "my-run";
    bool is_sampler = true;
    std::string machine = kMachine;
    std::uint64_t last_generation = 0;
  };
  v1::Opened Open(RawStream& stream, const Writer& writer) {
    auto message = OpenMessage({.writer = writer.uuid,
                                .external_id = writer.trial,
                                .last_generation = writer.last_generation});
    message.mutable_open()->set_is_sampler(writer.is_sampler);
    message.mutable_open()->set_machine(writer.machine);
    EXPECT_TRUE(stream.Send(message));
    const auto opened = stream.WaitFor([&](const auto& answer) {
      return answer.has_opened() && answer.opened().writer() == writer.uuid.ToBytes();
    });
    EXPECT_TRUE(opened.has_value()) << master_->LogTail();
    return opened ? opened->opened() : v1::Opened();
  }

  // The next directive of that kind for the writer; those of others are dropped.
  static std::optional<v1::Directive> NextDirective(RawStream& stream, const Writer& writer,
                                                    v1::Directive::DirectiveCase kind) {
    const auto answer = stream.WaitFor([&](const auto& message) {
      return message.has_directive() && message.directive().writer() == writer.uuid.ToBytes() &&
             message.directive().directive_case() == kind;
    });
    if (!answer) return std::nullopt;
    return answer->directive();
  }
  static v1::Sampling NextSampling(RawStream& stream, const Writer& writer) {
    const auto directive = NextDirective(stream, writer, v1::Directive::kSampling);
    EXPECT_TRUE(directive.has_value());
    return directive ? directive->sampling() : v1::Sampling();
  }
  static v1::Profiling NextProfiling(RawStream& stream, const Writer& writer) {
    const auto directive = NextDirective(stream, writer, v1::Directive::kProfiling);
    EXPECT_TRUE(directive.has_value());
    return directive ? directive->profiling() : v1::Profiling();
  }
  static std::optional<v1::Sampling> SamplingOf(const v1::Opened& opened) {
    for (const auto& directive : opened.directives()) {
      if (directive.has_sampling()) return directive.sampling();
    }
    return std::nullopt;
  }
  static std::optional<v1::Profiling> ProfilingOf(const v1::Opened& opened) {
    for (const auto& directive : opened.directives()) {
      if (directive.has_profiling()) return directive.profiling();
    }
    return std::nullopt;
  }

  static v1::SetProfilingRequest Request(bool on, std::int64_t interval_us = 0,
                                         const std::vector<std::string>& groups = {}) {
    v1::SetProfilingRequest request;
    request.mutable_trial()->set_external_id("my-run");
    request.set_on(on);
    request.set_interval_us(interval_us);
    for (const std::string& group : groups) request.add_metric_groups(group);
    return request;
  }
  grpc::Status Set(const v1::SetProfilingRequest& request, v1::SetProfilingResponse& response) {
    grpc::ClientContext context;
    context.set_wait_for_ready(true);
    context.set_deadline(absl::ToChronoTime(absl::Now() + absl::Seconds(30)));
    return client_->admin().SetProfiling(&context, request, &response);
  }
  v1::SetProfilingResponse Set(const v1::SetProfilingRequest& request) {
    v1::SetProfilingResponse response;
    const grpc::Status status = Set(request, response);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return response;
  }
  v1::GetTrialResponse Trial() {
    const auto query = v1::QueryService::NewStub(client_->channel());
    grpc::ClientContext context;
    context.set_wait_for_ready(true);
    v1::GetTrialRequest request;
    request.mutable_trial()->set_external_id("my-run");
    v1::GetTrialResponse response;
    const grpc::Status status = query->GetTrial(&context, request, &response);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return response;
  }
};

TEST_F(DirectivesTest, AgentRule07_OfTwoSamplersOneSamplesAndTheOtherFollowsWhenItsStreamIsCut) {
  StartMaster();
  RawStream first_stream(*client_);
  RawStream second_stream(*client_);
  const Writer first;
  const Writer second;
  const auto first_told = SamplingOf(Open(first_stream, first));
  ASSERT_TRUE(first_told.has_value());
  EXPECT_TRUE(first_told->on());
  EXPECT_EQ(first_told->shared_with(), 1);
  const auto second_told = SamplingOf(Open(second_stream, second));
  ASSERT_TRUE(second_told.has_value());
  EXPECT_FALSE(second_told->on());
  // Of another machine, and of another trial: each has an election of its own.
  const Writer elsewhere{.machine = "another-boot"};
  EXPECT_TRUE(SamplingOf(Open(second_stream, elsewhere))->on());
  const Writer rank{.is_sampler = false};
  EXPECT_FALSE(SamplingOf(Open(second_stream, rank)).has_value());

  first_stream.Cancel();
  EXPECT_TRUE(NextSampling(second_stream, second).on());

  // It comes back, and is second now; a Close makes room as well.
  RawStream third_stream(*client_);
  EXPECT_FALSE(SamplingOf(Open(third_stream, first))->on());
  ASSERT_TRUE(second_stream.Send(CloseMessage(second.uuid, 0)));
  EXPECT_TRUE(NextSampling(third_stream, first).on());
}

TEST_F(DirectivesTest, AgentRule07_WhoSamplesKnowsHowManyTrialsShareTheMachine) {
  StartMaster();
  RawStream stream(*client_);
  RawStream other_stream(*client_);
  const Writer sampler;
  EXPECT_EQ(SamplingOf(Open(stream, sampler))->shared_with(), 1);
  const Writer other_rank{.trial = "other-run", .is_sampler = false};
  const Writer other_sampler{.trial = "other-run"};
  Open(other_stream, other_rank);
  EXPECT_EQ(NextSampling(stream, sampler).shared_with(), 2);
  EXPECT_EQ(SamplingOf(Open(other_stream, other_sampler))->shared_with(), 2);
  ASSERT_TRUE(other_stream.Send(CloseMessage(other_rank.uuid, 0)));
  ASSERT_TRUE(other_stream.Send(CloseMessage(other_sampler.uuid, 0)));
  const v1::Sampling alone = NextSampling(stream, sampler);
  EXPECT_TRUE(alone.on());
  EXPECT_EQ(alone.shared_with(), 1);
}

TEST_F(DirectivesTest, SetProfilingReachesAllWritersAndSurvivesARestart) {
  StartMaster();
  const Writer rank{.is_sampler = false};
  const Writer sampler;
  {
    RawStream rank_stream(*client_);
    RawStream sampler_stream(*client_);
    EXPECT_FALSE(ProfilingOf(Open(rank_stream, rank)).has_value()) << "nobody ever asked";
    Open(sampler_stream, sampler);
    EXPECT_FALSE(Trial().has_profiling());

    v1::SetProfilingResponse response = Set(Request(false));
    EXPECT_EQ(response.writers_told(), 2);
    EXPECT_GE(response.trial_id(), 1'000'000'000);
    EXPECT_FALSE(response.profiling().on());
    EXPECT_FALSE(NextProfiling(rank_stream, rank).on());
    EXPECT_FALSE(NextProfiling(sampler_stream, sampler).on());

    response = Set(Request(true, 250'000, {"gpu", "cpu"}));
    EXPECT_EQ(response.profiling().metric_groups_size(), 2);
    for (const auto& told :
         {NextProfiling(rank_stream, rank), NextProfiling(sampler_stream, sampler)}) {
      EXPECT_TRUE(told.on());
      EXPECT_EQ(told.interval_us(), 250'000);
      ASSERT_EQ(told.metric_groups_size(), 2);
      EXPECT_EQ(told.metric_groups(0), "cpu");
      EXPECT_EQ(told.metric_groups(1), "gpu");
    }
    const v1::GetTrialResponse trial = Trial();
    ASSERT_TRUE(trial.has_profiling());
    EXPECT_EQ(trial.profiling().interval_us(), 250'000);
    Set(Request(false));
  }
  master_->Kill();
  ASSERT_TRUE(master_->StartAndWait()) << master_->LogTail();
  // The old channel may not have noticed yet.
  client_ = std::make_unique<IngestClient>(master_->grpc_address());
  ASSERT_TRUE(
      Eventually([&] { return client_->GetStatus().role() != "standby"; }, absl::Seconds(20)));
  RawStream stream(*client_);
  const auto again = ProfilingOf(Open(stream, rank));
  ASSERT_TRUE(again.has_value());
  EXPECT_FALSE(again->on());
  const auto later = ProfilingOf(Open(stream, Writer{.is_sampler = false}));
  ASSERT_TRUE(later.has_value());
  EXPECT_FALSE(later->on());
  EXPECT_FALSE(ProfilingOf(Open(stream, Writer{.trial = "other-run"})).has_value());

  // The way back: what the trial chose itself.
  EXPECT_EQ(Set(Request(true)).writers_told(), 2);
  const v1::Profiling back = NextProfiling(stream, rank);
  EXPECT_TRUE(back.on());
  EXPECT_EQ(back.interval_us(), 0);
  EXPECT_EQ(back.metric_groups_size(), 0);
}

TEST_F(DirectivesTest, SetProfilingSaysWhatIsWrong) {
  StartMaster();
  struct Row {
    const char* name;
    std::function<void(v1::SetProfilingRequest&)> change;
    grpc::StatusCode code;
    const char* reason;
    const char* field;
  };
  const Row rows[] = {
      {"unknown trial", [](auto&) {}, grpc::StatusCode::NOT_FOUND, "TRIAL_NOT_FOUND", ""},
      {"unknown number",
       [](auto& request) {
         request.mutable_trial()->clear_external_id();
         request.mutable_trial()->set_trial_id(4711);
       },
       grpc::StatusCode::NOT_FOUND, "TRIAL_NOT_FOUND", ""},
      {"no trial", [](auto& request) { request.clear_trial(); }, grpc::StatusCode::INVALID_ARGUMENT,
       "TRIAL_REF", "trial"},
      {"interval", [](auto& request) { request.set_interval_us(1); },
       grpc::StatusCode::INVALID_ARGUMENT, "INTERVAL_RANGE", "interval_us"},
      {"group", [](auto& request) { request.add_metric_groups(""); },
       grpc::StatusCode::INVALID_ARGUMENT, "METRIC_GROUP_BYTES", "metric_groups[0]"},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.name);
    v1::SetProfilingRequest request = Request(true);
    row.change(request);
    v1::SetProfilingResponse response;
    const grpc::Status status = Set(request, response);
    EXPECT_EQ(status.error_code(), row.code) << status.error_message();
    const auto info = DetailOf<google::rpc::ErrorInfo>(status);
    ASSERT_TRUE(info.has_value());
    EXPECT_EQ(info->reason(), row.reason);
    const auto bad = DetailOf<google::rpc::BadRequest>(status);
    ASSERT_EQ(bad.has_value(), *row.field != '\0');
    if (!bad) continue;
    ASSERT_EQ(bad->field_violations_size(), 1);
    EXPECT_EQ(bad->field_violations(0).field(), row.field);
    EXPECT_EQ(bad->field_violations(0).description(), status.error_message());
  }
}

TEST_F(DirectivesTest, AClientThatDoesNotReadHoldsUpNobody) {
  constexpr int kRequests = 400;
  StartMaster();
  RawStream reader(*client_);
  const Writer fast{.is_sampler = false};
  Open(reader, fast);
  // A stream of its own connection that sends its Open, and then reads nothing.
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  // Or the client's side takes in megabytes that nobody asked for.
  arguments.SetInt(GRPC_ARG_HTTP2_BDP_PROBE, 0);
  arguments.SetInt(GRPC_ARG_HTTP2_STREAM_LOOKAHEAD_BYTES, 64 << 10);
  const auto lazy_stub = v1::IngestService::NewStub(grpc::CreateCustomChannel(
      master_->grpc_address(), grpc::InsecureChannelCredentials(), arguments));
  grpc::ClientContext context;
  context.set_deadline(absl::ToChronoTime(absl::Now() + absl::Minutes(2)));
  const auto lazy = lazy_stub->StreamChunks(&context);
  const Writer slow{.is_sampler = false};
  ASSERT_TRUE(
      lazy->Write(OpenMessage({.writer = slow.uuid, .external_id = slow.trial, .rank = 1})));
  ASSERT_TRUE(
      Eventually([&] { return client_->GetStatus().writers_open() == 2; }, absl::Seconds(20)));

  // 4 kB each: many times what the connection takes.
  std::vector<std::string> groups;
  for (int i = 0; i < 32; ++i) groups.push_back(absl::StrCat(std::string(120, 'g'), i));
  for (int i = 1; i <= kRequests; ++i) {
    ASSERT_EQ(Set(Request(true, 10'000 + i, groups)).writers_told(), 2);
  }
  const auto newest = reader.WaitFor([&](const auto& message) {
    return message.directive().profiling().interval_us() == 10'000 + kRequests;
  });
  EXPECT_TRUE(newest.has_value());

  std::set<std::int64_t> seen;
  v1::StreamChunksResponse message;
  while (seen.count(10'000 + kRequests) == 0 && lazy->Read(&message)) {
    if (!message.has_directive()) continue;
    const std::int64_t interval_us = message.directive().profiling().interval_us();
    EXPECT_TRUE(seen.empty() || interval_us > *seen.rbegin()) << "never an older one";
    seen.insert(interval_us);
  }
  EXPECT_EQ(seen.count(10'000 + kRequests), 1U) << "the newest is among them";
  EXPECT_LT(seen.size(), kRequests) << "those between were left out";
  context.TryCancel();
  while (lazy->Read(&message)) {
  }
  lazy->Finish();
}

}  // namespace
}  // namespace stepwell::testing
