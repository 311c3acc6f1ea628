// What does the master take, and how soon does it answer? A real master on a real PostgreSQL, the
// load on the same cores.
//   ingest.throughput   durable samples/s, chunks of 1000 samples, 2 streams
//   ingest.cpu          nanoseconds of master + PostgreSQL per sample for that, until all is folded
//   ingest.ack_p99      latency at 32,000 samples/s from 64 writers on 64 streams
//   ingest.open_p99     from the call of a new stream to Opened, writers of one trial one after the other, each
//                       on a connection of its own
//   ingest.open_64      64 of them at once, until the last is open
//   ingest.ready_empty  seconds from start on an empty data directory to ready
//   ingest.ready_journal seconds from start to ready for ingest after SIGKILL with 10 s of that load
//                       in the journal and nothing folded
//   ingest.read_journal seconds from the same start to the first complete answer about that trial
// Everything runs on the first two cores that it may use. The master's own count of what it holds
// must be what was sent: a load that it turned away is a failure, not a figure.
#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "bench/load/asked_options.h"
#include "bench/load/bench_run.h"
#include "bench/load/load_stream.h"
#include "bench/load/made_up_chunks.h"
#include "bench/load/master_child.h"
#include "bench/load/pairs.h"
#include "stepwell/v1/admin.grpc.pb.h"
#include "stepwell/v1/query.grpc.pb.h"

namespace stepwell::bench {
namespace {

struct Plan {
  int runs = 5;
  double seconds = 10;
};

// What the master holds of a trial, once it says that the answer is complete.
void CheckHeld(const MasterChild& master, const std::string& trial, std::int64_t sample_count) {
  const auto stub = v1::QueryService::NewStub(
      grpc::CreateChannel(master.grpc_address(), grpc::InsecureChannelCredentials()));
  v1::GetTrialRequest request;
  request.mutable_trial()->set_external_id(trial);
  grpc::ClientContext context;
  v1::GetTrialResponse response;
  const grpc::Status status = stub->GetTrial(&context, request, &response);
  const auto& completeness = response.completeness();
  if (status.ok() && completeness.samples_held() == sample_count && !completeness.recovering()) {
    return;
  }
  DieUnless(absl::DataLossError(
      absl::StrCat("trial ", trial, ": ", sample_count, " samples were acked, the master holds ",
                   completeness.samples_held(), "; ", std::string(status.error_message()))));
}

// What is acked and not folded yet is work that is still to be done.
void Fold(const MasterChild& master) {
  const auto stub = v1::AdminService::NewStub(
      grpc::CreateChannel(master.grpc_address(), grpc::InsecureChannelCredentials()));
  grpc::ClientContext context;
  v1::FlushResponse response;
  const grpc::Status status = stub->Flush(&context, v1::FlushRequest(), &response);
  if (!status.ok()) DieUnless(absl::InternalError("flush: " + status.error_message()));
}

struct Throughput {
  double samples_per_second = 0;
  double cpu_ns_per_sample = 0;
};

// A writer that makes up what it sends.
struct MadeUpStream {
  MadeUpStream(const std::string& address, const std::string& trial, int rank, ChunkShape shape)
      : chunks(shape, rank), stream(address, trial, rank, chunks.definitions()) {}
  absl::Status Send() { return stream.Send(chunks.Next()); }

  MadeUpChunks chunks;
  LoadStream stream;
};

Throughput RunThroughput(const MasterChild& master, const std::string& trial, double seconds) {
  constexpr int kStreams = 2;
  std::vector<std::unique_ptr<MadeUpStream>> streams;
  for (int i = 0; i < kStreams; ++i) {
    streams.push_back(
        std::make_unique<MadeUpStream>(master.grpc_address(), trial, i, ChunkShape()));
    DieUnless(streams.back()->stream.Open());
  }
  const double cpu_before = master.CpuSeconds();
  const absl::Time begin = absl::Now();
  const absl::Time end = begin + absl::Seconds(seconds);
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < streams.size(); ++i) {
    threads.emplace_back([&, i] {
      while (absl::Now() < end) {
        DieUnless(streams[i]->Send());
      }
      // Counted when durable: the clock runs until the last ack.
      DieUnless(streams[i]->stream.Finish(LoadStream::Ending::kClose));
    });
  }
  for (auto& thread : threads) thread.join();
  const double took = absl::ToDoubleSeconds(absl::Now() - begin);
  double samples = 0;
  for (const auto& each : streams) samples += static_cast<double>(each->chunks.sample_count());
  CheckHeld(master, trial, static_cast<std::int64_t>(samples));
  Fold(master);
  return {samples / took, (master.CpuSeconds() - cpu_before) / samples * 1e9};
}

struct Paced {
  std::vector<double> latencies;  // seconds, sorted
  std::int64_t sample_count = 0;
};

Paced RunPaced(const MasterChild& master, const std::string& trial, double seconds,
               LoadStream::Ending ending) {
  constexpr int kWriters = 64;
  // 500 samples/s per writer, ten chunks a second of 50 samples each.
  const ChunkShape shape{.series_count = 10, .tick_count = 5, .tick_interval_us = 20'000};
  constexpr auto kPeriod = absl::Milliseconds(100);
  std::vector<std::unique_ptr<MadeUpStream>> streams;
  for (int i = 0; i < kWriters; ++i) {
    streams.push_back(std::make_unique<MadeUpStream>(master.grpc_address(), trial, i, shape));
    DieUnless(streams.back()->stream.Open());
  }
  // The pace is kept by one thread: writer i sends at phase i/64 of each period.
  const absl::Time begin = absl::Now() + absl::Milliseconds(50);
  const auto rounds = static_cast<int>(seconds * 10);
  for (int round = 0; round < rounds; ++round) {
    for (int i = 0; i < kWriters; ++i) {
      absl::SleepFor(begin + kPeriod * round + kPeriod * i / kWriters - absl::Now());
      DieUnless(streams[static_cast<std::size_t>(i)]->Send());
    }
  }
  std::vector<double> latencies;
  std::int64_t sample_count = 0;
  for (auto& each : streams) {
    DieUnless(each->stream.Finish(ending));
    sample_count += each->chunks.sample_count();
    const auto some = each->stream.TakeLatencies();
    latencies.insert(latencies.end(), some.begin(), some.end());
  }
  std::sort(latencies.begin(), latencies.end());
  CheckHeld(master, trial, sample_count);
  return {std::move(latencies), sample_count};
}

struct Opens {
  double p99_ms = 0;
  double at_once_ms = 0;
};

Opens RunOpens(const MasterChild& master, const std::string& trial) {
  constexpr int kWriters = 64;
  const auto make = [&](int rank) {
    return std::make_unique<MadeUpStream>(master.grpc_address(), trial, rank, ChunkShape());
  };
  std::vector<double> took;
  std::vector<std::unique_ptr<MadeUpStream>> streams;
  for (int rank = 0; rank < kWriters; ++rank) {
    streams.push_back(make(rank));
    const absl::Time begin = absl::Now();
    DieUnless(streams.back()->stream.Open());
    took.push_back(absl::ToDoubleMilliseconds(absl::Now() - begin));
  }
  std::sort(took.begin(), took.end());
  for (int rank = kWriters; rank < 2 * kWriters; ++rank) streams.push_back(make(rank));
  std::vector<std::thread> threads;
  const absl::Time begin = absl::Now();
  for (std::size_t i = kWriters; i < streams.size(); ++i) {
    threads.emplace_back([&streams, i] { DieUnless(streams[i]->stream.Open()); });
  }
  for (auto& thread : threads) thread.join();
  const double at_once = absl::ToDoubleMilliseconds(absl::Now() - begin);
  for (auto& each : streams) DieUnless(each->stream.Finish(LoadStream::Ending::kClose));
  return {took[took.size() * 99 / 100], at_once};
}

double RunAckP99(const MasterChild& master, const std::string& trial, double seconds) {
  const auto latencies = RunPaced(master, trial, seconds, LoadStream::Ending::kClose).latencies;
  return latencies[latencies.size() * 99 / 100] * 1000;
}

struct Restart {
  double ready_seconds = 0;
  double read_seconds = 0;
};

Restart RunRestart(const std::string& binary) {
  auto master = MasterChild::Start(binary, {"--fold-interval", "60s"});
  DieUnless(master.status());
  const Paced load = RunPaced(*master, "journal", 10, LoadStream::Ending::kLeaveOpen);
  DieUnless(master->KillAndRestart());
  const absl::Time ready = absl::Now();
  CheckHeld(*master, "journal", load.sample_count);
  return {master->ready_seconds(),
          master->ready_seconds() + absl::ToDoubleSeconds(absl::Now() - ready)};
}

int Main(bool quick) {
  StayOnTwoCores();
  const Plan plan = quick ? Plan{.runs = 3, .seconds = 2} : Plan{};
  const char* folder = std::getenv("STEPWELL_BIN");
  const std::string binary =
      std::string(folder != nullptr ? folder : "build/release/bin") + "/stepwell";
  std::vector<double> rates;
  std::vector<double> cpu;
  std::vector<double> p99;
  std::vector<double> open_p99;
  std::vector<double> open_64;
  std::vector<double> ready_empty;
  std::vector<double> ready_journal;
  std::vector<double> read_journal;
  for (int run = 0; run < plan.runs; ++run) {
    auto master = MasterChild::Start(binary);
    DieUnless(master.status());
    ready_empty.push_back(master->ready_seconds());
    const auto throughput = RunThroughput(*master, absl::StrCat("throughput-", run), plan.seconds);
    rates.push_back(throughput.samples_per_second);
    cpu.push_back(throughput.cpu_ns_per_sample);
    p99.push_back(RunAckP99(*master, absl::StrCat("ack-", run), plan.seconds));
    const Opens opens = RunOpens(*master, absl::StrCat("open-", run));
    open_p99.push_back(opens.p99_ms);
    open_64.push_back(opens.at_once_ms);
    const Restart restart = RunRestart(binary);
    ready_journal.push_back(restart.ready_seconds);
    read_journal.push_back(restart.read_seconds);
    std::fprintf(
        stderr,
        "run %d: %.2f M samples/s, %.0f ns/sample, ack p99 %.1f ms, Open p99 %.1f ms, 64 at "
        "once %.0f ms, ready %.2f s, after a kill %.2f s, read %.2f s\n",
        run, rates.back() / 1e6, cpu.back(), p99.back(), open_p99.back(), open_64.back(),
        ready_empty.back(), ready_journal.back(), read_journal.back());
  }
  PrintOurs("ingest.throughput", "samples/s", "durable samples, chunks of 1000, 2 streams",
            OwnBar(">= 3000000"), rates);
  PrintOurs("ingest.cpu", "ns", "master and PostgreSQL per sample, same load, folded",
            Promised("<= 100"), cpu);
  PrintOurs("ingest.ack_p99", "ms", "32,000 samples/s from 64 writers, Write to ack",
            Promised("<= 50"), p99);
  PrintOurs("ingest.open_p99", "ms", "one writer's Open after the other, the call to Opened",
            OwnBar("<= 50"), open_p99);
  PrintOurs("ingest.open_64", "ms", "Opens of 64 writers of one trial at once, to the last Opened",
            OwnBar("<= 1000"), open_64);
  PrintOurs("ingest.ready_empty", "s", "start on an empty data directory", OwnBar("<= 3"),
            ready_empty);
  PrintOurs("ingest.ready_journal", "s", "start with 10 s of unfolded journal", OwnBar("<= 1"),
            ready_journal);
  PrintOurs("ingest.read_journal", "s", "the same start to the first complete answer",
            OwnBar("<= 3"), read_journal);
  return 0;
}

}  // namespace
}  // namespace stepwell::bench

int main(int argc, char** argv) {
  const stepwell::bench::AskedOptions asked("ingest_bench", {stepwell::bench::AskedOptions::kQuick},
                                            argc, argv);
  return stepwell::bench::Main(asked.Has("--quick"));
}
