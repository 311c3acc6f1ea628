// Of which projects each call is told: the services of reads and traces over gRPC, real stores beneath them, and between
// the two who looks at what they ask. AccessControl refuses a foreign call before, so that nobody would see at the answer
// that a look-up went without its caller's projects.
#include <grpcpp/grpcpp.h>
#include <unistd.h>

#include <utility>

#include "base/sha256.h"
#include "server/access_rules.h"
#include "server/query_service.h"
#include "server/token_text.h"
#include "server/trace_capturing.h"
#include "server/trace_service.h"
#include "storage/pg_trace_store.h"
#include "tests/contract/query/query_reads_fixture.h"
#include "tests/e2e/doors_stand.h"
#include "tests/e2e/request_about.h"
#include "tests/fakes/fake_token_store.h"
#include "tests/support/every_method.h"

namespace stepwell::testing {
namespace {

// When kStartUs is, so that a merge asks for what machines measured then.
constexpr char kTrace[] =
    R"({"baseTimeNanoseconds":1728082800000000000,"traceEvents":[{"ph":"X","name":"a","ts":10,"dur":5,"pid":1,"tid":1}]})";

// What was asked for, of whose trials.
class LookUps {
 public:
  void Note(const ProjectFilter& projects) {
    const absl::MutexLock lock(&mu_);
    seen_.push_back(projects);
  }
  std::vector<ProjectFilter> Take() {
    const absl::MutexLock lock(&mu_);
    return std::exchange(seen_, {});
  }

 private:
  absl::Mutex mu_;
  std::vector<ProjectFilter> seen_ ABSL_GUARDED_BY(mu_);
};

class WatchedReads final : public ReadStore {
 public:
  WatchedReads(ReadStore& store, LookUps& seen) : store_(store), seen_(seen) {}
  std::optional<TrialId> KnownTrial(const TrialSelector& selector,
                                    const ProjectFilter& projects) const override {
    seen_.Note(projects);
    return store_.KnownTrial(selector, projects);
  }
  absl::StatusOr<TrialId> FindTrial(const TrialSelector& selector, const ProjectFilter& projects,
                                    SteadyTime deadline) override {
    seen_.Note(projects);
    return store_.FindTrial(selector, projects, deadline);
  }
  absl::StatusOr<bool> IsOwnedUnder(std::int64_t owner_epoch, SteadyTime deadline) override {
    return store_.IsOwnedUnder(owner_epoch, deadline);
  }
  absl::StatusOr<std::unique_ptr<ReadSnapshot>> OpenSnapshot(SteadyTime deadline) override {
    return store_.OpenSnapshot(deadline);
  }

 private:
  ReadStore& store_;
  LookUps& seen_;
};

class WatchedTraces final : public TraceStore {
 public:
  WatchedTraces(TraceStore& store, LookUps& seen) : store_(store), seen_(seen) {}
  absl::StatusOr<TraceRecord> Begin(std::int64_t owner_epoch, const TrialSelector& trial,
                                    const TrialFilter& trials,
                                    const StoredTraceHeader& header) override {
    seen_.Note(trials.projects());
    return store_.Begin(owner_epoch, trial, trials, header);
  }
  absl::Status Append(std::int64_t owner_epoch, TraceRecord& trace,
                      std::string_view bytes) override {
    return store_.Append(owner_epoch, trace, bytes);
  }
  absl::StatusOr<TraceRecord> Delete(std::int64_t owner_epoch, const TrialSelector& trial,
                                     const ProjectFilter& projects,
                                     std::int32_t trace_no) override {
    seen_.Note(projects);
    return store_.Delete(owner_epoch, trial, projects, trace_no);
  }
  absl::Status Discard(std::int64_t owner_epoch, const TraceRecord& trace) override {
    return store_.Discard(owner_epoch, trace);
  }
  absl::StatusOr<TraceRecord> Find(const TrialSelector& trial, const ProjectFilter& projects,
                                   std::int32_t trace_no) override {
    seen_.Note(projects);
    return store_.Find(trial, projects, trace_no);
  }
  absl::StatusOr<TraceList> List(const TrialSelector& trial, const ProjectFilter& projects,
                                 std::int32_t after_trace_no, std::int32_t limit) override {
    seen_.Note(projects);
    return store_.List(trial, projects, after_trace_no, limit);
  }
  absl::StatusOr<std::string> ReadPart(const TraceRecord& trace, std::int64_t part_no) override {
    return store_.ReadPart(trace, part_no);
  }

 private:
  TraceStore& store_;
  LookUps& seen_;
};

class LookUpsTest : public QueryReadsTest {
 protected:
  LookUpsTest() {
    heads_.RecoveryStarted({}, FoldNo{0});
    state_.SetDatabase(absl::OkStatus());
    const auto owner = ingest_->AcquireOwnership({.master_id = "ours", .address = "here"});
    EXPECT_TRUE(owner.ok()) << owner.status();
    state_.BecomeOwner(owner->epoch, false);
    Record();
    tokens_.places = {{Value(trial_id_), "default", "run"}};
    guard_->Learn(
        {{.id = token_.id, .digest = token_.digest, .name = "ci", .grants = {"write:default"}}},
        RealClock::Get().Monotonic());
    grpc::ServerBuilder builder;
    builder.RegisterService(queries_.service());
    builder.RegisterService(traces_.service());
    server_ = builder.BuildAndStart();
    channel_ = server_->InProcessChannel({});
  }
  ~LookUpsTest() override {
    server_->Shutdown();
    unlink(path_.c_str());
  }

  // A trial with a sample and two traces, and one beside it.
  void Record() {
    Turn("beside");
    OpenWriter("a");
    Turn("run");
    Feed feed = OpenWriter("a");
    TickTable table;
    table.tick_group = 1;
    table.times_us = {kStartUs};
    table.batches = {0};
    table.columns.push_back(
        {.series_no = SeriesNo{AddSeries("gpu", "gpu_util")}, .values = {1}, .presence = {}});
    Commit(feed, {std::move(table)}, kStartUs);
    Fold();
    for (const char* name : {"ep0-ba0-rank0.json", "ep0-ba0-rank1.json"}) {
      const StoredTraceHeader header{
          .name = name, .byte_count = sizeof(kTrace) - 1, .sha256 = Digest()};
      auto trace = trace_store_.Begin(kEpoch, {.trial_id = Value(trial_id_)}, kAllProjects, header);
      ASSERT_TRUE(trace.ok()) << trace.status();
      ASSERT_TRUE(trace_store_.Append(kEpoch, *trace, kTrace).ok());
    }
  }
  static std::string Digest() {
    Sha256 sha;
    sha.Feed(kTrace);
    return sha.Finish();
  }
  // As RequestAbout, with what a call needs that it gets as far as the trial.
  std::unique_ptr<google::protobuf::Message> RequestOf(
      const google::protobuf::MethodDescriptor& method) const {
    auto request = RequestAbout(method, {Value(trial_id_), "default", "run"});
    const auto* trace_no = request->GetDescriptor()->FindFieldByName("trace_no");
    if (trace_no != nullptr) request->GetReflection()->SetInt32(request.get(), trace_no, 1);
    // It takes that one away.
    if (method.name() == "DeleteTrace") {
      request->GetReflection()->SetInt32(request.get(), trace_no, 2);
    }
    if (auto* compare = dynamic_cast<v1::CompareTrialsRequest*>(request.get())) {
      compare->add_trials()->set_external_id("beside");
    }
    if (auto* buckets = dynamic_cast<v1::QueryBucketsRequest*>(request.get())) {
      buckets->set_max_buckets(10);
    }
    if (auto* upload = dynamic_cast<v1::UploadTraceRequest*>(request.get())) {
      auto& header = *upload->mutable_upload()->mutable_header();
      header.set_name("u.json");
      header.set_format(v1::TRACE_FORMAT_CHROME_JSON);
      header.set_byte_count(sizeof(kTrace) - 1);
      header.set_sha256(Digest());
    }
    return request;
  }

  const std::string path_ = absl::StrCat(::testing::TempDir(), "look-ups-", getpid());
  const NewToken token_ = MakeToken();
  const std::shared_ptr<TokenGuard> guard_ = *TokenGuard::Open(path_, RealClock::Get());
  FakeTokenStore tokens_;
  const AccessControl access_{guard_.get(), tokens_};
  LookUps seen_;
  WatchedReads watched_{reader_, seen_};
  const QuerySources sources_{watched_, heads_, RealClock::Get(), liveness_};
  const QueryReads samples_{sources_};
  MasterState state_;
  WriterDirector director_{RealClock::Get()};
  TraceCapturing capturing_{
      director_,
      {.find_trial =
           [this](const TrialSelector& trial, const ProjectFilter& projects, SteadyTime deadline) {
             return watched_.FindTrial(trial, projects, deadline);
           },
       .list_writers = [](TrialId, SteadyTime) { return std::vector<WriterRecord>(); }}};
  PgTraceStore trace_store_{{.url = url_}};
  LookUps of_traces_;
  WatchedTraces watched_traces_{trace_store_, of_traces_};
  QueryGrpcService queries_{sources_, {.access = &access_}};
  TraceGrpcService traces_{watched_traces_, state_, samples_, capturing_, {.access = &access_}};
  std::unique_ptr<grpc::Server> server_;
  std::shared_ptr<grpc::Channel> channel_;
};

TEST_F(LookUpsTest, EachGoesWithTheProjectsOfItsCaller) {
  const ProjectFilter own = std::vector<std::string>{"default"};
  int count = 0;
  for (const google::protobuf::MethodDescriptor* method : EveryMethod()) {
    const std::string service(method->service()->name());
    const bool is_here = service == "QueryService" || service == "TraceService";
    if (!is_here || FindRule(*method->input_type())->subject != Subject::kTrials) continue;
    SCOPED_TRACE(method->full_name());
    seen_.Take();
    of_traces_.Take();
    const Called called =
        DoorsStand::CallOn(channel_, PathOf(*method), *RequestOf(*method), token_.text);
    // No rank is open for a capture.
    EXPECT_TRUE(called.status.ok() || method->name() == "CaptureTrace")
        << called.status.error_message();
    const std::vector<ProjectFilter> seen = seen_.Take();
    EXPECT_THAT(seen, ::testing::Each(own));
    const std::vector<ProjectFilter> traces = of_traces_.Take();
    EXPECT_THAT(traces, ::testing::Each(own));
    const bool captures = method->name() == "CaptureTrace";
    const bool reads = service == "QueryService" || captures || method->name() == "MergeTraces";
    EXPECT_EQ(!seen.empty(), reads);
    EXPECT_EQ(!traces.empty(), service == "TraceService" && !captures);
    ++count;
  }
  EXPECT_GE(count, 15);
}

}  // namespace
}  // namespace stepwell::testing
