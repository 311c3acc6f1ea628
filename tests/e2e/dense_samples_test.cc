// As densely as the agent samples: eight GPUs of a stand-in for NVIDIA's library, the whole host and a
// training process each 10 ms, to rows of a real master. What a busy machine did not take in time is
// declared, not made up; in the best second almost all is stored.
#include <filesystem>
#include <fstream>
#include <iostream>

#include "absl/strings/str_replace.h"
#include "tests/e2e/spine.h"
#include "tests/support/child_process.h"
#include "tests/support/places/places.h"
#include "tests/support/sql_of.h"

namespace stepwell::testing {
namespace {

constexpr int kGpus = 8;

class DenseSamplesTest : public SpineTest {
 protected:
  // It lives for as long as the agent may need.
  void StartRank() {
    rank_.Start({BuiltProgram("small_trial"), "return", "10", "120"},
                {{"STEPWELL_SERVER", master_->grpc_address()},
                 {"STEPWELL_SPOOL_DIR", scratch_ / "spool"},
                 {"STEPWELL_TRIAL", "dense"},
                 {"STEPWELL_INTERVAL", "10ms"}},
                scratch_ / "rank.log");
  }
  void StartAgent() {
    const std::string scenario = scratch_ / "scenario";
    std::ofstream(scenario) << "gpus " << kGpus << "\ngpu * util_gpu 50\n";
    agent_.Start({BuiltProgram("stepwell"), "agent", "--server", master_->grpc_address(),
                  "--spool-dir", scratch_ / "spool", "--trial", "dense", "--interval", "10ms"},
                 {{"STEPWELL_NVML_PATH", BuildPlace("nvml_stub/new/libnvidia-ml.so.1")},
                  {"STEPWELL_NVML_SCENARIO", scenario}},
                 scratch_ / "agent.log");
  }
  // One number; `sql` names the trial's samples as SAMPLES(group, name). -1 where there is none.
  double Number(const std::string& sql) {
    auto connection = PgConnection::Open({.url = master_->database_url()});
    EXPECT_TRUE(connection.ok()) << connection.status();
    const std::string named = absl::StrReplaceAll(sql, {{"SAMPLES(", "stepwell.samples(TRIAL, "}});
    const std::string trial = "(select trial_id from stepwell.trials where external_id = $1)";
    const auto rows =
        (*connection)->Exec(SqlOf(absl::StrReplaceAll(named, {{"TRIAL", trial}})), {"dense"});
    EXPECT_TRUE(rows.ok()) << rows.status();
    return rows.ok() && rows->row_count() == 1 && !rows->IsNull(0, 0) ? rows->Float64(0, 0) : -1;
  }
  // Ticks of `group` that were declared late: lost samples by the samples of a usual tick, which are
  // those of `samples`. `of_rank`: by a recording process's writer, else by the machine's.
  double LateTicks(const std::string& group, const std::string& samples, bool of_rank = false) {
    // 3: LATE in the wire's words; a process that did not answer for half a second, on a machine that
    // is so busy, is SENSOR_FAILED.
    const double late = Number(absl::StrCat(
        "select coalesce(sum(sample_count), 0)::float8 from stepwell.gaps where cause ",
        of_rank ? "in (2, 3)" : "= 3",
        " and "
        "trial_id = TRIAL and metric_group = '",
        group, "' and reason ", of_rank ? "" : "not ", "like '%process%'"));
    const double of_a_tick = Number(absl::StrCat(
        "select percentile_disc(0.5) within group (order by n)::float8 from (select count(*) as n "
        "from ",
        samples, " group by \"timestamp\") as ticks"));
    return of_a_tick > 0 ? late / of_a_tick : 0;
  }
  // Ticks of the second that has most of them.
  double BestSecond(const std::string& samples) {
    return Number(
        absl::StrCat("select coalesce(max(n), 0)::float8 from (select count(*) as n from ", samples,
                     " group by date_trunc('second', \"timestamp\")) as seconds"));
  }
  // Seconds between the first and the last of them.
  double Took(const std::string& samples) {
    return Number(absl::StrCat(
        "select extract(epoch from max(\"timestamp\") - min(\"timestamp\"))::float8 from ",
        samples));
  }

  ChildProcess rank_;
  ChildProcess agent_;
};

TEST_F(DenseSamplesTest, AgentRule16_At10MsEachSecondHas80TicksStoredOrDeclaredLate) {
  const std::string host = "SAMPLES('memory', 'memory_free')";
  const std::string process = "SAMPLES('memory', 'memory_process_resident')";
  StartMaster();
  StartAgent();
  StartRank();
  const auto has_gpus = [&] {
    EXPECT_TRUE(client_->Flush().ok());
    return Number(
               "select count(distinct labels->>'device')::float8 from "
               "SAMPLES('gpu', 'gpu_util')") == kGpus;
  };
  ASSERT_TRUE(Eventually(has_gpus, absl::Seconds(30))) << master_->LogTail();
  const auto has_dense_second = [&] {
    EXPECT_TRUE(client_->Flush().ok());
    return Took(process) >= 3 && BestSecond(host) >= 80 && BestSecond(process) >= 80;
  };
  EXPECT_TRUE(Eventually(has_dense_second, absl::Seconds(60)))
      << "best second: host " << BestSecond(host) << ", process " << BestSecond(process);
  agent_.Signal(SIGTERM);
  EXPECT_EQ(agent_.Wait(absl::Seconds(30)), "exit 0");
  rank_.Kill();

  const double took = Took(host);
  // Whole ticks have no group.
  const double late = LateTicks("", "SAMPLES(null, null)");
  const double count = Number("select count(*)::float8 from " + host);
  EXPECT_GE((count + late) / took, 80);
  const double gpus_late = LateTicks("gpu", "SAMPLES('gpu', null)");
  const double gpus = Number("select count(*)::float8 from SAMPLES('gpu', 'gpu_util')") / kGpus;
  EXPECT_GE((gpus + gpus_late + late) / took, 80);
  const double process_took = Took(process);
  const double process_late = LateTicks("memory", process, /*of_rank=*/true);
  const double process_count = Number("select count(*)::float8 from " + process);
  EXPECT_GE((process_count + process_late) / process_took, 80);
  std::cout << "a second of " << took << ": host " << count / took << " ticks, GPUs " << gpus / took
            << ", declared late " << late / took << ", of GPUs alone " << gpus_late / took
            << "; process " << process_count / process_took << " and late "
            << process_late / process_took << "\n";
}

}  // namespace
}  // namespace stepwell::testing
