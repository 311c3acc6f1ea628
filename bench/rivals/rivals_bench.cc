// How does Stepwell do beside VictoriaMetrics on the same two cores? Both get the load `day` (190 series,
// value and batch), day after day in turns, from a client on the same cores that made the bytes before.
//   rivals.throughput   durable samples/s of ours over samples/s taken by theirs (which answers before
//                       any fsync)
//   rivals.cpu          processor time of the servers per sample, all merges included
//   rivals.bytes        stored bytes per sample after all merges
//   rivals.series_day_raw, .series_day_rollups   one series, 24 h, 1000 buckets of min, mean, max
//   rivals.gpus_hour_raw, .gpus_hour_auto        64 series, 1 h, 500 buckets
//   rivals.latest       newest values of all 190 series
// Answers of ours are read and parsed, theirs are only read.
#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "bench/load/bench_run.h"
#include "bench/load/load_stream.h"
#include "bench/load/master_child.h"
#include "bench/rivals/day_load.h"
#include "bench/rivals/victoria.h"
#include "stepwell/v1/admin.grpc.pb.h"
#include "stepwell/v1/query.grpc.pb.h"

namespace stepwell::bench {
namespace {

constexpr std::int64_t kDayStartUs = 1'790'000'000'000'000 / 86'400'000'000 * 86'400'000'000;
constexpr char kTrial[] = "day";

struct Plan {
  int rounds = 5;
  int hours = 24;
  int queries = 40;
};

void DieUnlessAnswered(const grpc::Status& status) {
  DieUnless(status.ok() ? absl::OkStatus() : absl::InternalError(status.error_message()));
}

// What was measured of both sides in turns.
struct Pairs {
  std::vector<double> ours;
  std::vector<double> theirs;
};

// The ratio of the medians; its spread is that of the pairs.
void Print(const std::string& name, const std::string& against, const std::string& bar,
           const Pairs& pairs) {
  std::vector<double> ratios;
  for (std::size_t i = 0; i < pairs.ours.size(); ++i)
    ratios.push_back(pairs.ours[i] / pairs.theirs[i]);
  const double ours = Median(pairs.ours);
  const double theirs = Median(pairs.theirs);
  const nlohmann::json line = {{"name", name},
                               {"value", ours / theirs},
                               {"unit", "ratio"},
                               {"against", against},
                               {"bar", bar},
                               {"raw", {{"ours", ours}, {"theirs", theirs}}},
                               {"n", ratios.size()},
                               {"spread",
                                {*std::min_element(ratios.begin(), ratios.end()),
                                 *std::max_element(ratios.begin(), ratios.end())}}};
  std::printf("%s\n", line.dump().c_str());
  std::fflush(stdout);
}

double SecondsOf(const std::function<void()>& work) {
  const absl::Time begin = absl::Now();
  work();
  return absl::ToDoubleSeconds(absl::Now() - begin);
}

// Until what runs behind the answers is done: under 3 % of a core for a second.
void AwaitIdle(const std::function<double()>& cpu_seconds) {
  const absl::Time deadline = absl::Now() + absl::Minutes(3);
  for (double before = cpu_seconds(); absl::Now() < deadline;) {
    absl::SleepFor(absl::Seconds(1));
    const double now = cpu_seconds();
    if (now - before < 0.03) return;
    before = now;
  }
  DieUnless(absl::DeadlineExceededError("a server was still busy after 3 minutes"));
}

// Halves of about the same number of samples, one for each of two client threads.
const std::vector<int> kHalves[2] = {{0, 1, 2, 3, 4}, {5, 6, 7, 8}};

class Rivals {
 public:
  explicit Rivals(const Plan& plan)
      : plan_(plan), master_(StartMaster()), victoria_(StartVictoria()) {
    const auto channel =
        grpc::CreateChannel(master_.grpc_address(), grpc::InsecureChannelCredentials());
    queries_ = v1::QueryService::NewStub(channel);
    admin_ = v1::AdminService::NewStub(channel);
    base_bytes_ = OurBytes();
    for (int writer = 0; writer < kDayWriters; ++writer) {
      streams_.push_back(std::make_unique<LoadStream>(master_.grpc_address(), kTrial,
                                                      writer == kDayWriters - 1 ? 0 : -1 - writer,
                                                      DefinitionsOf(DaySeriesOf(writer))));
      DieUnless(streams_.back()->Open());
    }
  }

  void Load() {
    Pairs rates;
    Pairs cpu;
    for (int round = 0; round < plan_.rounds; ++round) {
      const std::int64_t start_us = kDayStartUs + round * std::int64_t{86'400'000'000};
      const DayLoad load(start_us, plan_.hours, static_cast<std::uint64_t>(round) + 1);
      const auto samples = static_cast<double>(load.sample_count());
      sample_count_ += samples;
      const auto ours = [&] {
        TakeTurn(
            cpu.ours, rates.ours, samples, [&] { return master_.CpuSeconds(); },
            [&] { LoadOurs(load); });
      };
      const auto theirs = [&] {
        TakeTurn(
            cpu.theirs, rates.theirs, samples, [&] { return victoria_.CpuSeconds(); },
            [&] { LoadTheirs(load); });
      };
      // Who begins changes, so that neither always finds the machine as the other left it.
      round % 2 == 0 ? (ours(), theirs()) : (theirs(), ours());
      std::fprintf(stderr,
                   "round %d: %.2f M samples/s and %.0f ns, VictoriaMetrics %.2f M and %.0f ns\n",
                   round, rates.ours.back() / 1e6, cpu.ours.back(), rates.theirs.back() / 1e6,
                   cpu.theirs.back());
    }
    Print("rivals.throughput", "VictoriaMetrics, samples with value and batch per second", ">= 3",
          rates);
    Print("rivals.cpu", "VictoriaMetrics, processor time of the servers per sample", "<= 0.2", cpu);
  }

  void Bytes() {
    for (auto& stream : streams_) DieUnless(stream->Finish(LoadStream::Ending::kClose));
    Flush();
    AwaitIdle([&] { return master_.CpuSeconds(); });
    const auto theirs = victoria_.StoredBytes();
    DieUnless(theirs.status());
    const double ours = static_cast<double>(OurBytes() - base_bytes_) / sample_count_;
    const double rival = static_cast<double>(*theirs) / sample_count_;
    std::fprintf(stderr, "bytes per sample: %.2f, VictoriaMetrics %.2f\n", ours, rival);
    // One state of each: there is nothing to repeat.
    Print("rivals.bytes", "VictoriaMetrics, all that is stored, ours with rollups", "<= 1.45",
          {{ours, ours, ours}, {rival, rival, rival}});
  }

  void Query() {
    const std::int64_t day_us = kDayStartUs + (plan_.rounds - 1) * std::int64_t{86'400'000'000};
    const std::int64_t end_us = day_us + plan_.hours * std::int64_t{3'600'000'000};
    const std::int64_t hour_us = end_us - 3'600'000'000;
    v1::QueryBucketsRequest day;
    day.mutable_trial()->set_external_id(kTrial);
    auto* one = day.add_selectors();
    one->set_name("gpu_util");
    (*one->mutable_labels())["device"] = "3";
    (*one->mutable_labels())["rank"] = "0";
    day.mutable_time_range()->set_start_time_us(day_us);
    day.mutable_time_range()->set_end_time_us(end_us);
    day.set_max_buckets(1000);
    const std::int64_t day_step_s = std::max<std::int64_t>(1, plan_.hours * 3600 / 1000);
    const std::string their_day =
        RangeTarget(absl::StrCat("rollup(gpu_util{device=\"3\",writer=\"0\",field=\"value\"}[",
                                 day_step_s, "s])"),
                    day_us, end_us, day_step_s);
    v1::QueryBucketsRequest hour;
    hour.mutable_trial()->set_external_id(kTrial);
    hour.add_selectors()->set_name("gpu_util");
    hour.mutable_time_range()->set_start_time_us(hour_us);
    hour.mutable_time_range()->set_end_time_us(end_us);
    hour.set_max_buckets(500);
    const std::string their_hour =
        RangeTarget("rollup(gpu_util{field=\"value\"}[7s])", hour_us, end_us, 7);
    const std::string their_latest =
        absl::StrCat("/api/v1/query?nocache=1&query=", Escaped("{field=\"value\"}"),
                     "&time=", end_us / 1'000'000);
    const auto raw = [](v1::QueryBucketsRequest request) {
      request.set_resolution(v1::RESOLUTION_RAW);
      return request;
    };
    Compare(
        "series_day_raw", "one series, 24 h to 1000 buckets, from samples", "<= 0.6",
        [&] { Ask(raw(day)); }, their_day);
    Compare(
        "series_day_rollups", "the same from rollups", "<= 0.15", [&] { Ask(day); }, their_day);
    Compare(
        "gpus_hour_raw", "64 series, 1 h to 500 buckets, from samples", "<= 0.25",
        [&] { Ask(raw(hour)); }, their_hour);
    Compare(
        "gpus_hour_auto", "the same as the master chooses", "<= 0.25", [&] { Ask(hour); },
        their_hour);
    Compare(
        "latest", "newest values of 190 series", "<= 0.1", [&] { AskLatest(); }, their_latest);
  }

 private:
  static MasterChild StartMaster() {
    const char* folder = std::getenv("STEPWELL_BIN");
    auto master = MasterChild::Start(std::string(folder != nullptr ? folder : "build/release/bin") +
                                     "/stepwell");
    DieUnless(master.status());
    return *std::move(master);
  }
  static Victoria StartVictoria() {
    auto victoria = Victoria::Start(VICTORIA_METRICS);
    DieUnless(victoria.status());
    return *std::move(victoria);
  }

  static void TakeTurn(std::vector<double>& cpu, std::vector<double>& rates, double samples,
                       const std::function<double()>& cpu_seconds,
                       const std::function<void()>& load) {
    const double before = cpu_seconds();
    rates.push_back(samples / SecondsOf(load));
    AwaitIdle(cpu_seconds);
    cpu.push_back((cpu_seconds() - before) / samples * 1e9);
  }

  void LoadOurs(const DayLoad& load) {
    std::vector<std::thread> threads;
    for (const std::vector<int>& half : kHalves) {
      threads.emplace_back([&] {
        // In turns, as an agent's machine and rank would be.
        for (std::size_t i = 0, sent = 1; sent > 0; ++i) {
          sent = 0;
          for (const int writer : half) {
            const auto& bodies = load.writers()[static_cast<std::size_t>(writer)].bodies;
            if (i >= bodies.size()) continue;
            DieUnless(streams_[static_cast<std::size_t>(writer)]->Send(bodies[i]));
            ++sent;
          }
        }
        for (const int writer : half)
          DieUnless(streams_[static_cast<std::size_t>(writer)]->AwaitAcks());
      });
    }
    for (auto& thread : threads) thread.join();
  }

  void LoadTheirs(const DayLoad& load) {
    std::vector<std::thread> threads;
    for (const std::vector<int>& half : kHalves) {
      threads.emplace_back([&] {
        Victoria::Connection connection(victoria_.port());
        for (std::size_t i = 0, sent = 1; sent > 0; ++i) {
          sent = 0;
          for (const int writer : half) {
            const auto& writes = load.writers()[static_cast<std::size_t>(writer)].remote_writes;
            if (i >= writes.size()) continue;
            DieUnless(connection.PostRemoteWrite(writes[i]));
            ++sent;
          }
        }
      });
    }
    for (auto& thread : threads) thread.join();
  }

  void Flush() {
    grpc::ClientContext context;
    v1::FlushResponse response;
    DieUnlessAnswered(admin_->Flush(&context, {}, &response));
  }

  void Ask(const v1::QueryBucketsRequest& request) {
    grpc::ClientContext context;
    v1::QueryBucketsResponse response;
    DieUnlessAnswered(queries_->QueryBuckets(&context, request, &response));
    if (response.series_size() == 0)
      DieUnless(absl::NotFoundError("no series: " + request.ShortDebugString()));
  }

  void AskLatest() {
    grpc::ClientContext context;
    v1::LatestValuesRequest request;
    request.mutable_trial()->set_external_id(kTrial);
    v1::LatestValuesResponse response;
    DieUnlessAnswered(queries_->LatestValues(&context, request, &response));
    if (response.values_size() != 190)
      DieUnless(absl::NotFoundError(absl::StrCat(response.values_size(), " latest values")));
  }

  void Compare(const std::string& name, const std::string& what, const std::string& bar,
               const std::function<void()>& ours, const std::string& target) {
    Victoria::Connection connection(victoria_.port());
    Pairs pairs;
    std::size_t bytes = 0;
    for (int i = -3; i < plan_.queries; ++i) {
      const double our_ms = SecondsOf(ours) * 1000;
      const double their_ms = SecondsOf([&] {
                                const auto body = connection.Get(target);
                                DieUnless(body.status());
                                bytes = body->size();
                              }) *
                              1000;
      if (i < 0) continue;  // both sides warm
      pairs.ours.push_back(our_ms);
      pairs.theirs.push_back(their_ms);
    }
    if (bytes < 1000) DieUnless(absl::NotFoundError("VictoriaMetrics found nothing: " + target));
    std::fprintf(stderr, "%s: %.3f ms, VictoriaMetrics %.3f ms (%zu bytes)\n", name.c_str(),
                 Median(pairs.ours), Median(pairs.theirs), bytes);
    Print("rivals." + name, "VictoriaMetrics: " + what, bar, pairs);
  }

  static std::string Escaped(const std::string& text) {
    std::string escaped;
    for (const char c : text)
      absl::StrAppend(&escaped, "%", absl::Hex(static_cast<unsigned char>(c), absl::kZeroPad2));
    return escaped;
  }
  static std::string RangeTarget(const std::string& query, std::int64_t start_us,
                                 std::int64_t end_us, std::int64_t step_s) {
    return absl::StrCat("/api/v1/query_range?nocache=1&query=", Escaped(query),
                        "&start=", start_us / 1'000'000, "&end=", end_us / 1'000'000,
                        "&step=", step_s, "s");
  }

  std::int64_t OurBytes() const { return BytesBelow(master_.data_dir() + "/postgres/base"); }

  const Plan plan_;
  MasterChild master_;
  Victoria victoria_;
  std::unique_ptr<v1::QueryService::Stub> queries_;
  std::unique_ptr<v1::AdminService::Stub> admin_;
  std::vector<std::unique_ptr<LoadStream>> streams_;
  std::int64_t base_bytes_ = 0;
  double sample_count_ = 0;
};

int Main(bool quick) {
  StayOnTwoCores();
  Rivals rivals(quick ? Plan{.rounds = 3, .hours = 2, .queries = 20} : Plan{});
  rivals.Load();
  rivals.Bytes();
  rivals.Query();
  return 0;
}

}  // namespace
}  // namespace stepwell::bench

int main(int argc, char** argv) {
  return stepwell::bench::Main(argc > 1 && std::string(argv[1]) == "--quick");
}
