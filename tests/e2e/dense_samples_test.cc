// As densely as the agent samples: eight GPUs of a stand-in for NVIDIA's library and the whole host each
// 10 ms, to rows of a real master. What a busy machine did not take in time is declared, not made up.
#include <filesystem>
#include <fstream>
#include <iostream>

#include "absl/strings/str_replace.h"
#include "tests/e2e/spine.h"
#include "tests/support/child_process.h"

namespace stepwell::testing {
namespace {

constexpr int kGpus = 8;

class DenseSamplesTest : public SpineTest {
 protected:
  void StartAgent() {
    const std::string scenario = scratch_ / "scenario";
    std::ofstream(scenario) << "gpus " << kGpus << "\ngpu * util_gpu 50\n";
    agent_.Start({BuiltProgram("stepwell"), "agent", "--server", master_->grpc_address(),
                  "--spool-dir", scratch_ / "spool", "--trial", "dense", "--interval", "10ms"},
                 {{"STEPWELL_NVML_PATH", NVML_STUB_NEW}, {"STEPWELL_NVML_SCENARIO", scenario}},
                 scratch_ / "agent.log");
  }
  // One number; `sql` names the trial's samples as SAMPLES(group, name). -1 where there is none.
  double Number(const std::string& sql) {
    auto connection = PgConnection::Open({.url = master_->database_url()});
    EXPECT_TRUE(connection.ok()) << connection.status();
    const std::string named = absl::StrReplaceAll(sql, {{"SAMPLES(", "stepwell.samples(TRIAL, "}});
    const std::string trial = "(select trial_id from stepwell.trials where external_id = $1)";
    const auto rows =
        (*connection)->Exec(absl::StrReplaceAll(named, {{"TRIAL", trial}}).c_str(), {"dense"});
    EXPECT_TRUE(rows.ok()) << rows.status();
    return rows.ok() && rows->row_count() == 1 && !rows->IsNull(0, 0) ? rows->Float64(0, 0) : -1;
  }
  // Ticks of `group` that were declared late: lost samples by the samples of a usual tick.
  double LateTicks(const std::string& group, const std::string& samples) {
    // 3: LATE in the wire's words.
    const double late = Number(absl::StrCat(
        "select coalesce(sum(sample_count), 0)::float8 from stepwell.gaps where cause = 3 and "
        "trial_id = TRIAL and metric_group = '",
        group, "'"));
    const double of_a_tick = Number(absl::StrCat(
        "select percentile_disc(0.5) within group (order by n)::float8 from (select count(*) as n "
        "from ",
        samples, " group by \"timestamp\") as ticks"));
    return of_a_tick > 0 ? late / of_a_tick : 0;
  }

  ChildProcess agent_;
};

TEST_F(DenseSamplesTest, AgentRule16_At10MsEachSecondHas80TicksStoredOrDeclaredLate) {
  StartMaster();
  StartAgent();
  const auto has_gpus = [&] {
    EXPECT_TRUE(client_->Flush().ok());
    return Number(
               "select count(distinct labels->>'device')::float8 from "
               "SAMPLES('gpu', 'gpu_util')") == kGpus;
  };
  ASSERT_TRUE(Eventually(has_gpus, absl::Seconds(30))) << master_->LogTail();
  const auto seconds = [&] {
    EXPECT_TRUE(client_->Flush().ok());
    return Number(
        "select extract(epoch from max(\"timestamp\") - min(\"timestamp\"))::float8 from "
        "SAMPLES('memory', 'memory_free')");
  };
  ASSERT_TRUE(Eventually([&] { return seconds() >= 3; }, absl::Seconds(30)));
  agent_.Signal(SIGTERM);
  EXPECT_EQ(agent_.Wait(absl::Seconds(30)), "exit 0");

  const double took = seconds();
  // Whole ticks have no group.
  const double late = LateTicks("", "SAMPLES(null, null)");
  const double host = Number("select count(*)::float8 from SAMPLES('memory', 'memory_free')");
  EXPECT_GE((host + late) / took, 80);
  const double gpus_late = LateTicks("gpu", "SAMPLES('gpu', null)");
  const double gpus = Number("select count(*)::float8 from SAMPLES('gpu', 'gpu_util')") / kGpus;
  EXPECT_GE((gpus + gpus_late + late) / took, 80);
  std::cout << "a second of " << took << ": host " << host / took << " ticks, GPUs " << gpus / took
            << ", declared late " << late / took << ", of GPUs alone " << gpus_late / took << "\n";
}

}  // namespace
}  // namespace stepwell::testing
