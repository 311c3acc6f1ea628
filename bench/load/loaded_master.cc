#include "bench/load/loaded_master.h"

#include <google/protobuf/arena.h>
#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <cstdlib>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "bench/load/bench_run.h"

namespace stepwell::bench {
namespace {

// As merges choose (storage/pg_fold_sql.h): what stays in the ring longer is not ripe.
constexpr char kCountRipe[] = R"(
select count(*) from (
  select from stepwell.recent_ticks r
  left join stepwell.writers w on w.trial_id = r.trial_id and w.writer_no = r.writer_no
  group by r.trial_id, r.writer_no, r.tick_group, r.received_day, w.state
  having sum(r.tick_count) >= 3600 or w.state is distinct from 1) ripe)";

constexpr char kSizes[] = R"(
select coalesce(sum(size) filter (where relname ~ '^(recent_)?rollup'), 0)::float8,
       coalesce(sum(size) filter (where relname ~ '^(journal|recent(_ticks)?)_[0-9]'), 0)::float8,
       coalesce(sum(size), 0)::float8
from (select c.relname, pg_total_relation_size(c.oid) as size
      from pg_class c join pg_namespace n on n.oid = c.relnamespace
      where n.nspname = 'stepwell' and c.relkind = 'r') tables)";

MasterChild StartMaster(std::vector<std::string> flags) {
  const char* folder = std::getenv("STEPWELL_BIN");
  auto master = MasterChild::Start(
      std::string(folder != nullptr ? folder : "build/release/bin") + "/stepwell",
      std::move(flags));
  DieUnless(master.status());
  return *std::move(master);
}

void DieUnlessAnswered(const grpc::Status& status) {
  DieUnless(status.ok() ? absl::OkStatus() : absl::InternalError(status.error_message()));
}

// The bodies of these writers in turns, as they would come: each stream belongs to one thread.
void SendAll(const TickLoad& load, const std::vector<std::size_t>& writers,
             const std::vector<std::size_t>& place_in_stream,
             std::vector<std::unique_ptr<LoadStream>>& streams) {
  for (std::size_t i = 0, sent = 1; sent > 0; ++i) {
    sent = 0;
    for (const std::size_t index : writers) {
      const TickWriter& writer = load.writers[index];
      if (i >= writer.bodies.size()) continue;
      auto& stream = *streams[static_cast<std::size_t>(writer.agent)];
      DieUnless(stream.Send(writer.bodies[i], place_in_stream[index]));
      ++sent;
    }
  }
}

}  // namespace

LoadedMaster::LoadedMaster(const std::string& trial, const TickLoad& like,
                           std::vector<std::string> flags)
    : trial_(trial), master_(StartMaster(std::move(flags))) {
  Connect();
  empty_ = ReadSizes();
  std::vector<std::vector<LoadStream::Writer>> by_agent;
  for (const TickWriter& writer : like.writers) {
    by_agent.resize(std::max(by_agent.size(), static_cast<std::size_t>(writer.agent) + 1));
    by_agent[static_cast<std::size_t>(writer.agent)].push_back(
        {writer.rank, DefinitionsOf(writer.series)});
  }
  for (const auto& writers : by_agent) {
    streams_.push_back(std::make_unique<LoadStream>(master_.grpc_address(), trial, writers));
    DieUnless(streams_.back()->Open());
  }
}

void LoadedMaster::Connect() {
  auto sql = PgConnection::Open({.url = master_.database_url()});
  DieUnless(sql.status());
  sql_ = *std::move(sql);
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(-1);
  const auto channel = grpc::CreateCustomChannel(master_.grpc_address(),
                                                 grpc::InsecureChannelCredentials(), arguments);
  queries_ = v1::QueryService::NewStub(channel);
  admin_ = v1::AdminService::NewStub(channel);
}

void LoadedMaster::Load(const TickLoad& load) {
  std::vector<std::size_t> place_in_stream;
  std::vector<std::size_t> count_of(streams_.size());
  std::vector<std::size_t> halves[2];
  for (std::size_t i = 0; i < load.writers.size(); ++i) {
    const auto agent = static_cast<std::size_t>(load.writers[i].agent);
    place_in_stream.push_back(count_of[agent]++);
    halves[agent % 2].push_back(i);
  }
  std::vector<std::thread> threads;
  for (const auto& half : halves) {
    threads.emplace_back([&] { SendAll(load, half, place_in_stream, streams_); });
  }
  for (auto& thread : threads) thread.join();
  for (auto& stream : streams_) DieUnless(stream->AwaitAcks());
}

void LoadedMaster::Settle() {
  grpc::ClientContext context;
  v1::FlushResponse response;
  DieUnlessAnswered(admin_->Flush(&context, {}, &response));
  const absl::Time deadline = absl::Now() + absl::Minutes(5);
  while (absl::Now() < deadline) {
    const auto ripe = sql_->Exec(kCountRipe);
    DieUnless(ripe.status());
    if (ripe->Int64(0, 0) == 0) return AwaitIdle([&] { return CpuSeconds(); });
    // The question counts as PostgreSQL's own time: of hundreds of writers it takes milliseconds, and a minute may pass.
    absl::SleepFor(absl::Seconds(1));
  }
  DieUnless(absl::DeadlineExceededError("what is ripe was not merged within 5 minutes"));
}

void LoadedMaster::Close() {
  for (auto& stream : streams_) DieUnless(stream->Finish(LoadStream::Ending::kClose));
}

void LoadedMaster::Restart() {
  // What so much at once left to write: a master at rest has no such checkpoint before it.
  DieUnless(sql_->Exec("checkpoint").status());
  DieUnless(master_.KillAndRestart());
  Connect();
}

void LoadedMaster::CheckHeld(std::int64_t sample_count) {
  v1::GetTrialRequest request;
  request.mutable_trial()->set_external_id(trial_);
  grpc::ClientContext context;
  v1::GetTrialResponse response;
  DieUnlessAnswered(queries_->GetTrial(&context, request, &response));
  if (response.completeness().samples_held() == sample_count) return;
  DieUnless(absl::DataLossError(absl::StrCat(sample_count, " samples were acked, the master holds ",
                                             response.completeness().samples_held())));
}

LoadedMaster::Sizes LoadedMaster::ReadSizes() {
  const auto found = sql_->Exec(kSizes);
  DieUnless(found.status());
  const double rollups = found->Float64(0, 0);
  const double rings = found->Float64(0, 1);
  return {found->Float64(0, 2) - rollups - rings, rollups, rings};
}

LoadedMaster::Sizes LoadedMaster::StoredBytes() {
  const Sizes now = ReadSizes();
  return {now.samples - empty_.samples, now.rollups - empty_.rollups, now.rings - empty_.rings};
}

v1::QueryBucketsResponse LoadedMaster::Ask(v1::QueryBucketsRequest request) {
  request.mutable_trial()->set_external_id(trial_);
  grpc::ClientContext context;
  v1::QueryBucketsResponse response;
  DieUnlessAnswered(queries_->QueryBuckets(&context, request, &response));
  return response;
}

int LoadedMaster::AskLatest() {
  grpc::ClientContext context;
  v1::LatestValuesRequest request;
  request.mutable_trial()->set_external_id(trial_);
  // As whoever asks often would: a value with its series and labels is a dozen small allocations.
  google::protobuf::Arena arena;
  auto& response = *google::protobuf::Arena::CreateMessage<v1::LatestValuesResponse>(&arena);
  DieUnlessAnswered(queries_->LatestValues(&context, request, &response));
  return response.values_size();
}

void AwaitIdle(const std::function<double()>& cpu_seconds) {
  const absl::Time deadline = absl::Now() + absl::Minutes(3);
  int idle_seconds = 0;
  for (double before = cpu_seconds(); absl::Now() < deadline;) {
    absl::SleepFor(absl::Seconds(1));
    const double now = cpu_seconds();
    idle_seconds = now - before < 0.03 ? idle_seconds + 1 : 0;
    if (idle_seconds == 3) return;
    before = now;
  }
  DieUnless(absl::DeadlineExceededError("a server was still busy after 3 minutes"));
}

}  // namespace stepwell::bench
