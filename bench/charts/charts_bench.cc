// charts_bench: how long does a chart take to load, and what does a day take on the disk, where samples
// are taken each second, each 100 ms and each 10 ms? A real master, a day of two gauges at each rate,
// merged; one series to 1000 buckets through QueryBuckets. docs/decisions/0014 draws on it.
//   charts.hour_<rate>_first                   as the master chooses, of each hour of the day once: it has read none of it
//   charts.hour_<rate>, .day_<rate>            the same hour, or day, again: its master remembers the rows. Samples or
//                                              rollups, as it chooses
//   charts.hour_<rate>_raw, .day_<rate>_raw    from samples
//   charts.bytes_<rate>                        bytes of rows and ticks per sample, by the ledger
//   charts.rollup_rows_<rate>                  rows of rollups that are there then
// --quick has six hours for a day.
#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "bench/load/asked_options.h"
#include "bench/load/bar.h"
#include "bench/load/bench_run.h"
#include "bench/load/load_stream.h"
#include "bench/load/master_child.h"
#include "bench/load/pairs.h"
#include "stepwell/v1/admin.grpc.pb.h"
#include "stepwell/v1/query.grpc.pb.h"
#include "storage/pg_connection.h"
#include "tests/support/sql_of.h"

namespace stepwell::bench {
namespace {

constexpr std::int64_t kHourUs = 3'600'000'000;
constexpr int kSeries = 2;
constexpr char kSeeded[] = "one day, made from its seed";

struct Rate {
  const char* name;
  std::int64_t interval_us;
  // Milliseconds that a chart from samples may take, an hour and a day: bars of our own.
  const char* hour_raw;
  const char* day_raw;
  const char* hour_first;
};

constexpr Rate kRates[] = {
    {"1s", 1'000'000, "<= 10", "<= 30", "<= 10"},
    {"100ms", 100'000, "<= 15", "<= 100", "<= 15"},
    {"10ms", 10'000, "<= 60", "<= 500", "<= 60"},
};
// What docs/decisions/0014 says of charts as they are asked for, whatever the interval: milliseconds.
constexpr char kHourBar[] = "<= 10";
constexpr char kDayBar[] = "<= 3";

void DieUnlessAnswered(const grpc::Status& status) {
  DieUnless(status.ok() ? absl::OkStatus() : absl::InternalError(status.error_message()));
}

// A gauge in whole percent and one in steps of 0.1, as of one machine.
class Gauges {
 public:
  SealedBody Next(std::int64_t start_us, std::int64_t interval_us, int tick_count) {
    v1::ChunkBody body;
    auto* table = body.add_tables();
    table->set_tick_group(1);
    table->set_first_time_us(start_us);
    table->set_first_batch(-1);
    for (int i = 1; i < tick_count; ++i) {
      table->add_time_deltas_us(interval_us + static_cast<std::int64_t>(20 * normal_(random_)));
      table->add_batch_deltas(0);
    }
    for (int series = 0; series < kSeries; ++series) table->add_columns()->set_ref(1 + series);
    for (int i = 0; i < tick_count; ++i) {
      busy_ = 85 + 0.9 * (busy_ - 85) + 4 * normal_(random_);
      load_ = 40 + 0.8 * (load_ - 40) + 2.5 * normal_(random_);
      table->mutable_columns(0)->add_doubles(std::clamp(std::round(busy_), 0.0, 100.0));
      table->mutable_columns(1)->add_doubles(std::round(std::clamp(load_, 0.0, 100.0) * 10) / 10);
    }
    return {body.SerializeAsString(), start_us + tick_count * interval_us};
  }

 private:
  std::mt19937_64 random_{4711};
  std::normal_distribution<double> normal_;
  double busy_ = 85;
  double load_ = 40;
};

std::vector<v1::Definition> Definitions() {
  std::vector<v1::Definition> definitions(kSeries);
  for (int i = 0; i < kSeries; ++i) {
    definitions[i].set_ref(1 + i);
    definitions[i].set_tick_group(1);
    definitions[i].set_metric_group("machine");
    definitions[i].set_name(i == 0 ? "gpu_util" : "cpu_util_simple");
    definitions[i].set_kind(v1::SERIES_KIND_GAUGE);
  }
  return definitions;
}

class Charts {
 public:
  Charts(int hours, int queries)
      : hours_(hours),
        queries_count_(queries),
        end_us_(absl::ToUnixMicros(absl::Now()) / kHourUs * kHourUs),
        master_(StartMaster()) {
    const auto channel =
        grpc::CreateChannel(master_.grpc_address(), grpc::InsecureChannelCredentials());
    queries_ = v1::QueryService::NewStub(channel);
    admin_ = v1::AdminService::NewStub(channel);
    auto sql = PgConnection::Open({.url = master_.database_url()});
    DieUnless(sql.status());
    sql_ = *std::move(sql);
  }

  void Run() {
    for (const Rate& rate : kRates) StoreDay(rate);
    for (const Rate& rate : kRates) LoadHours(rate);
    for (const Rate& rate : kRates) {
      LoadChart(rate, 1, false, Promised(kHourBar));
      LoadChart(rate, 1, true, OwnBar(rate.hour_raw));
      LoadChart(rate, hours_, false, Promised(kDayBar));
      LoadChart(rate, hours_, true, OwnBar(rate.day_raw));
    }
  }

 private:
  static MasterChild StartMaster() {
    const char* folder = std::getenv("STEPWELL_BIN");
    auto master = MasterChild::Start(std::string(folder != nullptr ? folder : "build/release/bin") +
                                     "/stepwell");
    DieUnless(master.status());
    return *std::move(master);
  }

  void StoreDay(const Rate& rate) {
    LoadStream stream(master_.grpc_address(), rate.name, 0, Definitions());
    DieUnless(stream.Open());
    Gauges gauges;
    constexpr int kTicks = 500;
    std::int64_t samples = 0;
    for (std::int64_t at = end_us_ - hours_ * kHourUs; at < end_us_;
         at += kTicks * rate.interval_us) {
      const auto ticks =
          static_cast<int>(std::min<std::int64_t>(kTicks, (end_us_ - at) / rate.interval_us));
      DieUnless(stream.Send(gauges.Next(at, rate.interval_us, ticks)));
      samples += ticks * kSeries;
    }
    DieUnless(stream.Finish(LoadStream::Ending::kClose));
    AwaitMerged();
    const double bytes = LedgerBytes(rate) / static_cast<double>(samples);
    PrintOnce(absl::StrCat("charts.bytes_", rate.name), "bytes/sample",
              "two gauges on a tick of their own; rows and ticks by the ledger", OwnBar("<= 2"),
              bytes, kSeeded);
    const auto rows =
        static_cast<double>(Number("select (select count(*) from stepwell.rollups) + "
                                   "(select count(*) from stepwell.recent_rollups)"));
    PrintOnce(absl::StrCat("charts.rollup_rows_", rate.name), "rows",
              "rollups of both steps and series, all so far", OwnBar("<= 1000"), rows, kSeeded);
  }

  // Until all that was sent is merged: its writer has closed.
  void AwaitMerged() {
    grpc::ClientContext context;
    v1::FlushResponse response;
    DieUnlessAnswered(admin_->Flush(&context, {}, &response));
    const absl::Time deadline = absl::Now() + absl::Minutes(5);
    while (absl::Now() < deadline) {
      if (Number("select count(*) from stepwell.recent_ticks") == 0) return;
      absl::SleepFor(absl::Milliseconds(200));
    }
    DieUnless(absl::DeadlineExceededError("not all was merged within 5 minutes"));
  }

  std::int64_t Number(const char* statement) {
    const auto rows = sql_->Exec(SqlOf(statement));
    DieUnless(rows.status());
    return rows->Int64(0, 0);
  }

  // By the ledger: what a cap on the trial's bytes would remove.
  double LedgerBytes(const Rate& rate) {
    v1::PreviewCapsRequest request;
    request.mutable_place()->mutable_trial()->set_external_id(rate.name);
    request.mutable_caps()->set_trial_bytes(1);
    grpc::ClientContext context;
    v1::PreviewCapsResponse response;
    DieUnlessAnswered(admin_->PreviewCaps(&context, request, &response));
    return static_cast<double>(response.raw_bytes());
  }

  static v1::QueryBucketsRequest Question(const Rate& rate, std::int64_t end_us, int hours) {
    v1::QueryBucketsRequest request;
    request.mutable_trial()->set_external_id(rate.name);
    request.add_selectors()->set_name("gpu_util");
    request.mutable_time_range()->set_start_time_us(end_us - hours * kHourUs);
    request.mutable_time_range()->set_end_time_us(end_us);
    request.set_max_buckets(1000);
    return request;
  }

  // How long it took, in milliseconds.
  double Ask(const v1::QueryBucketsRequest& request, v1::QueryBucketsResponse& response) {
    grpc::ClientContext context;
    const absl::Time begin = absl::Now();
    DieUnlessAnswered(queries_->QueryBuckets(&context, request, &response));
    const double ms = absl::ToDoubleMilliseconds(absl::Now() - begin);
    if (response.series_size() != 1 || response.series(0).indexes_size() < 200) {
      DieUnless(absl::NotFoundError("no chart: " + request.ShortDebugString()));
    }
    return ms;
  }

  void LoadHours(const Rate& rate) {
    std::vector<double> runs;
    v1::QueryBucketsResponse response;
    for (int hour = 0; hour < hours_; ++hour) {
      runs.push_back(Ask(Question(rate, end_us_ - hour * kHourUs, 1), response));
    }
    PrintOurs(absl::StrCat("charts.hour_", rate.name, "_first"), "ms",
              absl::StrCat(v1::Resolution_Name(response.resolution()), ", 1 h, each once"),
              OwnBar(rate.hour_first), runs);
  }

  void LoadChart(const Rate& rate, int hours, bool raw, const Bar& bar) {
    v1::QueryBucketsRequest request = Question(rate, end_us_, hours);
    if (raw) request.set_resolution(v1::RESOLUTION_RAW);
    std::vector<double> runs;
    v1::QueryBucketsResponse response;
    for (int i = -2; i < queries_count_; ++i) {
      const double ms = Ask(request, response);
      if (i >= 0) runs.push_back(ms);
    }
    PrintOurs(absl::StrCat("charts.", hours == 1 ? "hour_" : "day_", rate.name, raw ? "_raw" : ""),
              "ms",
              absl::StrCat(v1::Resolution_Name(response.resolution()), ", ", hours, " h, ",
                           response.series(0).indexes_size(), " buckets"),
              bar, runs);
  }

  const int hours_;
  const int queries_count_;
  const std::int64_t end_us_;
  MasterChild master_;
  std::unique_ptr<v1::QueryService::Stub> queries_;
  std::unique_ptr<v1::AdminService::Stub> admin_;
  std::unique_ptr<PgConnection> sql_;
};

}  // namespace
}  // namespace stepwell::bench

int main(int argc, char** argv) {
  const stepwell::bench::AskedOptions asked("charts_bench", {stepwell::bench::AskedOptions::kQuick},
                                            argc, argv);
  const bool quick = asked.Has("--quick");
  stepwell::bench::StayOnTwoCores();
  stepwell::bench::Charts(quick ? 6 : 24, quick ? 5 : 25).Run();
}
