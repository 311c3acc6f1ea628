// GPUs of a stand-in for NVIDIA's library, through a real agent and a real master, to rows in
// PostgreSQL.
#include <filesystem>
#include <fstream>
#include <map>

#include "stepwell/v1/query.grpc.pb.h"
#include "tests/e2e/spine.h"
#include "tests/support/child_process.h"
#include "tests/support/places/places.h"

namespace stepwell::testing {
namespace {

constexpr char kWell[] =
    "gpus 2\ngpu 0 util_gpu 35\ngpu 1 util_gpu 70\ngpu * memory_total 1000000\n"
    "gpu 0 memory_used 250000\ngpu 1 memory_used 400000\n";

class GpuTest : public SpineTest {
 protected:
  void Play(const std::string& scenario) {
    std::ofstream(scratch_ / "scenario.new", std::ios::trunc) << scenario;
    std::filesystem::rename(scratch_ / "scenario.new", scratch_ / "scenario");
  }
  void StartAgent() {
    agent_.Start({BuiltProgram("stepwell"), "agent", "--server", master_->grpc_address(),
                  "--spool-dir", scratch_ / "spool", "--trial", "gpus", "--interval", "100ms"},
                 {{"STEPWELL_NVML_PATH", BuildPlace("nvml_stub/new/libnvidia-ml.so.1")},
                  {"STEPWELL_NVML_SCENARIO", scratch_ / "scenario"}},
                 scratch_ / "agent.log");
  }
  v1::LatestValuesResponse Latest() {
    v1::LatestValuesRequest request;
    request.mutable_trial()->set_external_id("gpus");
    v1::LatestValuesResponse response;
    grpc::ClientContext context;
    v1::QueryService::NewStub(client_->channel())->LatestValues(&context, request, &response);
    return response;
  }
  // "gpu_util GPU-stub-0" -> value
  static std::map<std::string, double> GpuValues(const v1::LatestValuesResponse& latest) {
    std::map<std::string, double> values;
    for (const auto& value : latest.values()) {
      const auto& key = value.series().key();
      const auto device = key.labels().find("device");
      if (device != key.labels().end()) values[key.name() + " " + device->second] = value.value();
    }
    return values;
  }
  bool HasGap(v1::GapCause cause, const std::string& text) {
    const v1::LatestValuesResponse latest = Latest();
    for (const v1::Gap& gap : latest.completeness().gaps()) {
      if (gap.cause() == cause && gap.metric_group() == "gpu" &&
          gap.reason().find(text) != std::string::npos) {
        return true;
      }
    }
    return false;
  }
  ChildProcess agent_;
};

TEST_F(GpuTest, UtilisationAndMemoryOfTwoGpusBecomeRowsAndALostOneAGap) {
  StartMaster();
  Play(kWell);
  StartAgent();
  ASSERT_TRUE(
      Eventually([&] { return GpuValues(Latest()).count("gpu_sm_activity GPU-stub-1") > 0; },
                 absl::Seconds(30)))
      << master_->LogTail();
  const std::map<std::string, double> values = GpuValues(Latest());
  EXPECT_EQ(values.at("gpu_util GPU-stub-0"), 35);
  EXPECT_EQ(values.at("gpu_util GPU-stub-1"), 70);
  EXPECT_EQ(values.at("gpu_free_memory GPU-stub-0"), 750000);
  EXPECT_EQ(values.at("gpu_used_memory GPU-stub-1"), 400000);

  Play("gpus 2\ngpu 0 util_gpu 36\ngpu 1 fail * 15\n");
  EXPECT_TRUE(Eventually(
      [&] { return HasGap(v1::GAP_CAUSE_SENSOR_FAILED, "GPU-stub-1: nvmlDeviceGetUtil"); },
      absl::Seconds(30)));
  EXPECT_TRUE(Eventually([&] { return GpuValues(Latest()).at("gpu_util GPU-stub-0") == 36; },
                         absl::Seconds(30)));
  agent_.Signal(SIGTERM);
  EXPECT_EQ(agent_.Wait(absl::Seconds(30)), "exit 0");

  const std::int64_t trial_id =
      Latest().values(0).series().series_no() > 0
          ? QueryNumber("select max(trial_id) from trials where $1 = 1", 1)
          : 0;
  const auto count = [&](const char* sql) { return QueryNumber(sql, trial_id); };
  EXPECT_TRUE(Eventually(
      [&] {
        return count(
                   "select count(*) from stepwell.samples($1, 'gpu', 'gpu_util', null, null) "
                   "where labels->>'device' = 'GPU-stub-1' and value = 70") >= 2;
      },
      absl::Seconds(30)));
  EXPECT_EQ(count("select count(*) from stepwell.samples($1, 'gpu', 'gpu_util', null, null) "
                  "where labels->>'device' = 'GPU-stub-1' and value <> 70"),
            0);
  EXPECT_GE(count("select count(*) from stepwell.samples($1, 'gpu', 'gpu_free_memory', null, "
                  "null) where labels->>'device' = 'GPU-stub-0' and value = 750000"),
            2);
}

// Two agents of one machine, each with a GPU that the other does not see: as in one-GPU containers.
class SharedGpuTest : public GpuTest {
 protected:
  ChildProcess StartAgentWithGpu(int number) {
    const std::string name = absl::StrCat("agent-", number);
    const std::string scenario = scratch_ / (name + ".scenario");
    std::ofstream(scenario) << "gpus 1\ngpu 0 number " << number << "\ngpu 0 util_gpu " << number
                            << "\n";
    ChildProcess agent;
    agent.Start({BuiltProgram("stepwell"), "agent", "--server", master_->grpc_address(),
                 "--spool-dir", scratch_ / name, "--trial", "gpus", "--interval", "100ms"},
                {{"STEPWELL_NVML_PATH", BuildPlace("nvml_stub/new/libnvidia-ml.so.1")},
                 {"STEPWELL_NVML_SCENARIO", scenario},
                 {"STEPWELL_AGENT_ID", name}},
                scratch_ / absl::StrCat(name, ".log"));
    return agent;
  }
  // Agents that stored samples of it.
  std::int64_t AgentsOf(const char* name, int gpu = 0) {
    auto connection = PgConnection::Open({.url = master_->database_url()});
    EXPECT_TRUE(connection.ok()) << connection.status();
    const auto rows =
        (*connection)
            ->Exec(
                "select count(distinct labels->>'agent') from stepwell.samples((select "
                "max(trial_id) from stepwell.trials), null, $1, null, null) "
                "where $2 = '' or labels->>'device' = $2",
                {name, gpu == 0 ? std::string() : absl::StrCat("GPU-stub-", gpu)});
    EXPECT_TRUE(rows.ok()) << rows.status();
    return rows.ok() ? rows->Int64(0, 0) : -1;
  }
};

TEST_F(SharedGpuTest, AgentRule07_EachGpuIsStoredAndTheMachineOnce) {
  StartMaster();
  ChildProcess one = StartAgentWithGpu(1);
  const auto has = [&](const std::string& gpu) {
    return [this, gpu] { return GpuValues(Latest()).count("gpu_util " + gpu) > 0; };
  };
  ASSERT_TRUE(Eventually(has("GPU-stub-1"), absl::Seconds(30))) << master_->LogTail();
  ChildProcess two = StartAgentWithGpu(2);
  ASSERT_TRUE(Eventually(has("GPU-stub-2"), absl::Seconds(30))) << master_->LogTail();
  for (ChildProcess* agent : {&two, &one}) {
    agent->Signal(SIGTERM);
    EXPECT_EQ(agent->Wait(absl::Seconds(30)), "exit 0");
  }
  ASSERT_TRUE(client_->Flush().ok());
  EXPECT_EQ(AgentsOf("gpu_util", 1), 1);
  EXPECT_EQ(AgentsOf("gpu_util", 2), 1);
  for (const char* name : {"memory_free", "shared_with", "disk_util"}) {
    EXPECT_EQ(AgentsOf(name), 1) << name;
  }
  // Both are in the container of this test, if there is one.
  EXPECT_LE(AgentsOf("memory_container_used"), 1);
}

}  // namespace
}  // namespace stepwell::testing
