// How soon is what is acked on the screens of those who follow? A real master on a real PostgreSQL; 64 writers of
// one trial send 32,000 samples/s, of whom one stream follows all and 15 a rank each, all on the same two cores.
//   follow.push_p99   from the ack of a chunk, as its writer hears it, to the message that brings its samples to a
//                     follower, both by this process: the 99th percentile of all chunks and followers
// A chunk that one of them misses is a failure, not a figure.
#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "base/clock.h"
#include "bench/load/asked_options.h"
#include "bench/load/bar.h"
#include "bench/load/bench_run.h"
#include "bench/load/master_child.h"
#include "bench/load/paced_load.h"
#include "stepwell/v1/query.grpc.pb.h"

namespace stepwell::bench {
namespace {

constexpr char kTrial[] = "followed";
constexpr int kRankFollowers = 15;

struct Plan {
  int runs = 5;
  absl::Duration phase = absl::Seconds(10);
};

// Of one chunk.
using ChunkKey = std::pair<int, std::int32_t>;  // rank, sequence

// One FollowSamples call, read on a thread of its own.
class Follower {
 public:
  // `rank` -1 = the whole trial.
  Follower(const std::string& address, int rank) : rank_(rank) {
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    stub_ = v1::QueryService::NewStub(
        grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(), arguments));
    v1::FollowSamplesRequest request;
    request.mutable_trial()->set_external_id(kTrial);
    if (rank >= 0) {
      (*request.add_selectors()->mutable_labels())["rank"] = absl::StrCat(rank);
    }
    reader_ = stub_->FollowSamples(&context_, request);
    thread_ = std::thread([this] { ReadAll(); });
  }
  ~Follower() {
    context_.TryCancel();
    thread_.join();
  }

  bool AwaitBegin() {
    absl::MutexLock lock(&mu_);
    return mu_.AwaitWithTimeout(absl::Condition(&begun_), absl::Seconds(20));
  }
  // Milliseconds from the acks to the messages, of the chunks from index `first` on that it is to get.
  std::vector<double> PushMs(const std::vector<std::vector<double>>& ack_times, std::size_t first) {
    std::vector<double> took;
    absl::MutexLock lock(&mu_);
    for (int rank = 0; rank < static_cast<int>(ack_times.size()); ++rank) {
      if (rank_ >= 0 && rank != rank_) continue;
      const std::vector<double>& acks = ack_times[static_cast<std::size_t>(rank)];
      for (std::size_t i = first; i < acks.size(); ++i) {
        const ChunkKey key(rank, static_cast<std::int32_t>(i + 1));
        const auto came = [&]() ABSL_SHARED_LOCKS_REQUIRED(mu_) { return came_.contains(key); };
        if (!mu_.AwaitWithTimeout(absl::Condition(&came), absl::Seconds(20))) {
          DieUnless(absl::DataLossError(
              absl::StrCat("chunk ", i + 1, " of rank ", rank, " was acked and never pushed")));
        }
        took.push_back((came_.at(key) - acks[i]) * 1000);
      }
    }
    return took;
  }

 private:
  void ReadAll() {
    v1::FollowSamplesResponse message;
    std::map<std::int32_t, int> rank_of;
    while (reader_->Read(&message)) {
      const double now = absl::ToDoubleSeconds(RealClock::Get().Monotonic());
      for (const v1::Series& series : message.series()) {
        rank_of[series.series_no()] = std::atoi(series.key().labels().at("rank").c_str());
      }
      absl::MutexLock lock(&mu_);
      begun_ = true;
      for (const auto& samples : message.samples()) {
        for (const std::int32_t batch : samples.batches()) {
          came_.try_emplace({rank_of[samples.series_no()], batch}, now);
        }
      }
    }
  }

  const int rank_;
  std::unique_ptr<v1::QueryService::Stub> stub_;
  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientReader<v1::FollowSamplesResponse>> reader_;
  std::thread thread_;
  absl::Mutex mu_;
  bool begun_ ABSL_GUARDED_BY(mu_) = false;
  std::map<ChunkKey, double> came_ ABSL_GUARDED_BY(mu_);
};

double Quantile(const std::vector<double>& sorted, double share) {
  return sorted[static_cast<std::size_t>(static_cast<double>(sorted.size() - 1) * share)];
}

int Main(bool quick) {
  StayOnTwoCores();
  const Plan plan = quick ? Plan{.runs = 3, .phase = absl::Seconds(2)} : Plan{};
  const char* folder = std::getenv("STEPWELL_BIN");
  const auto master = MasterChild::Start(
      std::string(folder != nullptr ? folder : "build/release/bin") + "/stepwell");
  DieUnless(master.status());
  PacedLoad load(master->grpc_address(), kTrial);
  DieUnless(load.Open());
  std::vector<std::unique_ptr<Follower>> followers;
  for (int rank = -1; rank < kRankFollowers; ++rank) {
    followers.push_back(std::make_unique<Follower>(master->grpc_address(), rank));
    if (!followers.back()->AwaitBegin()) {
      DieUnless(absl::DeadlineExceededError("a follower got no first message within 20 s"));
    }
  }
  std::vector<double> p50, p90, p99;
  std::size_t first = 0;
  std::size_t push_count = 0;
  for (int run = 0; run < plan.runs; ++run) {
    DieUnless(load.AckP99Ms(plan.phase).status());
    const std::vector<std::vector<double>> ack_times = load.AckTimes();
    std::vector<double> took;
    for (const auto& follower : followers) {
      const std::vector<double> some = follower->PushMs(ack_times, first);
      took.insert(took.end(), some.begin(), some.end());
    }
    first = ack_times[0].size();
    std::sort(took.begin(), took.end());
    push_count += took.size();
    p50.push_back(Quantile(took, 0.5));
    p90.push_back(Quantile(took, 0.9));
    p99.push_back(Quantile(took, 0.99));
    std::fprintf(stderr, "run %d: %zu pushes, median %.2f ms, p90 %.2f ms, p99 %.2f ms\n", run,
                 took.size(), p50.back(), p90.back(), p99.back());
  }
  const Bar bar = Promised("<= 50");
  const nlohmann::json line = {
      {"name", "follow.push_p99"},
      {"value", Median(p99)},
      {"unit", "ms"},
      {"against", "ack to push, 16 followers of 64 writers with 32,000 samples/s"},
      {"bar", bar.text},
      {"promised", bar.promised},
      {"raw",
       {{"p50", Median(p50)}, {"p90", Median(p90)}, {"p99", Median(p99)}, {"pushes", push_count}}},
      {"n", p99.size()},
      {"spread",
       {*std::min_element(p99.begin(), p99.end()), *std::max_element(p99.begin(), p99.end())}}};
  std::printf("%s\n", line.dump().c_str());
  return 0;
}

}  // namespace
}  // namespace stepwell::bench

int main(int argc, char** argv) {
  const stepwell::bench::AskedOptions asked("follow_bench", {stepwell::bench::AskedOptions::kQuick},
                                            argc, argv);
  return stepwell::bench::Main(asked.Has("--quick"));
}
