// What Prometheus reads of a real master, and a real Prometheus that reads it (skipped where there is none).
#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "base/steady_time.h"
#include "nlohmann/json.hpp"
#include "tests/e2e/bash.h"
#include "tests/e2e/spine.h"
#include "tests/e2e/told_queries.h"
#include "tests/support/places/places.h"

namespace stepwell::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

const std::string kRules = SourcePlace("deploy/prometheus/stepwell.rules.yml");

constexpr char kUtil[] =
    "\nstepwell_trial_cpu_util_simple_ratio{project=\"default\",trial=\"measured\"";

class PrometheusTest : public SpineTest {
 protected:
  void SetUp() override { StartMaster(); }

  // A trial that runs, in a pod of a job, with a value of its machine, its GPU and its container each.
  void Measure(RawStream& stream) {
    Open(stream, writer_, "measured");
    auto definitions = DefinitionMessage(
        writer_, {{.ref = 2, .metric_group = "cpu", .name = "cpu_util_simple"},
                  {.ref = 3, .metric_group = "gpu", .name = "gpu_util"},
                  {.ref = 4, .metric_group = "memory", .name = "memory_container_used"},
                  {.ref = 5, .metric_group = "agent", .name = "placement"}});
    const auto definition = [&](int at) {
      return definitions.mutable_definitions()->mutable_definitions(at);
    };
    definition(0)->set_unit("percent");
    (*definition(1)->mutable_labels())["device"] = "GPU-1";
    (*definition(2)->mutable_labels())["container"] = "0123456789ab";
    (*definition(3)->mutable_labels())["pod"] = "run-0";
    (*definition(3)->mutable_labels())["slurm_job"] = "4711";
    ASSERT_TRUE(stream.Send(definitions));
    for (std::uint32_t ref = 2; ref <= 5; ++ref) {
      const v1::ChunkBody body =
          ref == 2 ? OneColumn(ref, NowUs(), 1000, {25, 50}) : OneColumn(ref, NowUs(), 1000, {1});
      ASSERT_TRUE(stream.Send(ChunkMessage(writer_, ref - 1, body)));
    }
    ASSERT_TRUE(stream.WaitAck(writer_, 4).has_value()) << master_->LogTail();
  }

  // What `path` answers once it `holds`, or at last.
  std::string Get(const std::string& path, const std::function<bool(const std::string&)>& holds) {
    const SteadyTime deadline = SteadyTime::Now() + absl::Seconds(30);
    for (;;) {
      std::string answer = master_->Get(path);
      if (holds(answer) || deadline.HasPassed()) return answer;
      absl::SleepFor(absl::Milliseconds(50));
    }
  }

  bool Has(const char* program) {
    return RunBash(scratch_.path(), std::string("command -v ") + program).exit_code == 0;
  }

  const Uuid writer_ = Uuid::Random();
};

TEST_F(PrometheusTest, WhatIsToldAndTheAlertsPassPromtool) {
  if (!Has("promtool")) GTEST_SKIP() << "promtool is not installed";
  RawStream stream(*client_);
  Measure(stream);
  Get("/metrics", [](const std::string& text) { return text.find(kUtil) != text.npos; });
  const Answered checked = RunBash(
      scratch_.path(), "set -o pipefail; curl -sS http://" + master_->http_address() +
                           "/metrics | promtool check metrics && promtool check rules " + kRules);
  EXPECT_EQ(checked.exit_code, 0) << checked.output;
}

TEST_F(PrometheusTest, ATrialIsToldWhileItRunsAndFoundAsATarget) {
  RawStream stream(*client_);
  Measure(stream);
  const auto has_it = [](const std::string& text) { return text.find(kUtil) != text.npos; };
  const std::string all = Get("/metrics", has_it);
  EXPECT_THAT(all, HasSubstr(kUtil));
  EXPECT_THAT(all, HasSubstr("} 0.5\n"));
  EXPECT_THAT(all, HasSubstr("\nstepwell_ready 1\n"));
  EXPECT_THAT(all, HasSubstr("\nstepwell_trial_metrics_complete 1\n"));
  EXPECT_THAT(all, HasSubstr("\nstepwell_trial_info{project=\"default\",trial=\"measured\",agent=\""
                             "test-machine\",gpu_uuid=\"GPU-1\",container_id=\"0123456789ab\",pod="
                             "\"run-0\",slurm_job=\"4711\"} 1\n"));

  const std::string found = master_->Get("/sd");
  const auto targets = nlohmann::json::parse(found.substr(found.find("\r\n\r\n")), nullptr, false);
  ASSERT_EQ(targets.size(), 1U) << found;
  EXPECT_EQ(targets[0]["targets"][0], master_->http_address());
  EXPECT_EQ(targets[0]["labels"]["__meta_stepwell_trial"], "measured");
  const std::string number = targets[0]["labels"]["__param_trial"];
  EXPECT_THAT(master_->Get("/metrics?trial=" + number), HasSubstr(kUtil));
  EXPECT_THAT(master_->Get("/metrics?trial=" + number), Not(HasSubstr("stepwell_ready")));
  EXPECT_THAT(master_->Get("/metrics?trial=none"), Not(HasSubstr("stepwell_trial_")));
  EXPECT_THAT(master_->Get("/metrics?trial=99999"), StartsWith("HTTP/1.1 404"));
  EXPECT_THAT(master_->Get("/metrics?trial=x"), StartsWith("HTTP/1.1 400"));

  ASSERT_TRUE(stream.Send(CloseMessage(writer_, 4)));
  EXPECT_TRUE(stream.Finish().ok());
  EXPECT_THAT(Get("/metrics", [&](const std::string& text) { return !has_it(text); }),
              Not(HasSubstr("stepwell_trial_info")));
  EXPECT_THAT(master_->Get("/metrics?trial=" + number), StartsWith("HTTP/1.1 404"));
}

TEST_F(PrometheusTest, WhatIsMissingAndHowLongAcksTookIsTold) {
  RawStream stream(*client_);
  Measure(stream);
  ASSERT_TRUE(stream.Send(ChunkMessage(writer_, 5, std::string("\xff\xff"))));
  v1::StreamChunksRequest gap;
  gap.mutable_gap()->set_writer(writer_.ToBytes());
  gap.mutable_gap()->set_first_sequence(6);
  gap.mutable_gap()->set_last_sequence(9);
  gap.mutable_gap()->set_cause(v1::GAP_CAUSE_SPOOL_FULL);
  gap.mutable_gap()->set_sample_count(1200);
  ASSERT_TRUE(stream.Send(gap));
  ASSERT_TRUE(stream.WaitAck(writer_, 9).has_value()) << master_->LogTail();
  // An ack may be here a moment before it is counted.
  const std::string all = Get("/metrics?trial=none", [](const std::string& text) {
    return text.find("\nstepwell_ack_latency_seconds_count 6\n") != text.npos;
  });
  for (const char* line :
       {"\nstepwell_ack_latency_seconds_count 6\n",
        "\nstepwell_ack_latency_seconds_bucket{le=\"+Inf\"} 6\n",
        "\nstepwell_ingest_chunks_total{result=\"rejected\"} 1\n",
        "\nstepwell_rejected_chunks_total{reason=\"BODY_MALFORMED\"} 1\n",
        "\nstepwell_gaps_total{cause=\"rejected\"} 1\n",
        "\nstepwell_gaps_total{cause=\"spool_full\"} 1\n",
        "\nstepwell_gap_samples_total{cause=\"spool_full\"} 1200\n", "\nstepwell_queue_bytes 0\n",
        "\nstepwell_queue_limit_bytes 67108864\n"}) {
    EXPECT_THAT(all, HasSubstr(line));
  }
  const auto number = [&](const std::string& name) {
    const auto at = all.find("\n" + name + " ");
    return at == all.npos ? -1 : std::stod(all.substr(at + name.size() + 2));
  };
  EXPECT_GT(number("stepwell_commit_seconds_count"), 0);
  EXPECT_EQ(number("stepwell_commit_seconds_count"), number("stepwell_commit_groups_total"));
  for (const char* holds : {"data", "wal"}) {
    const std::string label = std::string("{holds=\"") + holds + "\"}";
    EXPECT_GT(number("stepwell_disk_free_bytes" + label), 0);
    EXPECT_GT(number("stepwell_disk_size_bytes" + label),
              number("stepwell_disk_free_bytes" + label));
  }
}

// What exporters of others say of the same GPU, pod, container and job, and of some that are nobody's.
constexpr char kOthers[] = R"(DCGM_FI_DEV_GPU_UTIL{gpu="0",UUID="GPU-1"} 91
DCGM_FI_DEV_GPU_UTIL{gpu="1",UUID="GPU-9"} 17
container_memory_working_set_bytes{pod="run-0",container="trainer",id="/kubepods/pod1/0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"} 302
container_memory_working_set_bytes{pod="web-0",container="web",id="/kubepods/pod2/7777777777777777777777777777777777777777777777777777777777777777"} 17
cgroup_memory_rss_bytes{jobid="4711"} 163
cgroup_memory_rss_bytes{jobid="4712"} 17
)";

// As docs/http.md configures it, beside an exporter. Asks each query until it is answered, and prints that.
constexpr char kScrape[] = R"(
set -u
free_port() { python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'; }
others=$(free_port)
python3 -m http.server --bind 127.0.0.1 --directory FOLDER/others $others >/dev/null 2>&1 &
server=$!
cat > FOLDER/prometheus.yml <<YAML
global: {scrape_interval: 1s}
rule_files: [RULES]
scrape_configs:
  - job_name: stepwell
    params: {trial: [none]}
    static_configs: [{targets: ["MASTER"]}]
  - job_name: stepwell-trials
    http_sd_configs: [{url: "http://MASTER/sd"}]
    relabel_configs: [{source_labels: [__meta_stepwell_trial_id], target_label: instance}]
  - job_name: others
    metrics_path: /metrics.txt
    static_configs: [{targets: ["127.0.0.1:$others"]}]
YAML
port=$(free_port)
prometheus --config.file=FOLDER/prometheus.yml --storage.tsdb.path=FOLDER/tsdb --web.listen-address=127.0.0.1:$port 2>FOLDER/prometheus.log &
trap "kill $! $server" EXIT
asked=0
for query in FOLDER/*.promql; do
  until answer=$(curl -sS "127.0.0.1:$port/api/v1/query" --data-urlencode "query@$query" 2>&1) && grep -q '"metric"' <<<"$answer"; do
    asked=$((asked + 1))
    [ $asked -gt 200 ] && { tail -n 20 FOLDER/prometheus.log; echo "$query: $answer"; exit 1; }
    sleep 0.2
  done
  echo "$answer"
done
)";

TEST_F(PrometheusTest, ARealOneFindsReadsAndAnswersIt) {
  if (!Has("prometheus")) GTEST_SKIP() << "prometheus is not installed";
  RawStream stream(*client_);
  Measure(stream);
  // What the first one is answered, and each of the docs'.
  struct Row {
    const char* asks;
    const char* labels;
    const char* value;
  };
  const Row rows[] = {
      {"stepwell_trial_cpu_util_simple_ratio", R"("trial":"measured")", R"("0.5"])"},
      {"histogram_quantile", R"("instance":")", "]"},
      {"DCGM_FI_DEV_GPU_UTIL", R"("UUID":"GPU-1")", R"("91"])"},
      {"sum by (pod)", R"({"pod":"run-0","trial":"measured"})", R"("302"])"},
      {"sum by (container_id)", R"({"container_id":"0123456789ab","trial":"measured"})",
       R"("302"])"},
      {"cgroup_memory_rss_bytes", R"({"jobid":"4711","trial":"measured"})", R"("163"])"}};
  std::vector<std::string> queries = QueriesOf(SourcePlace("docs/http.md"));
  queries.insert(queries.begin(),
                 "stepwell_trial_cpu_util_simple_ratio * on () group_left () stepwell_ready");
  ASSERT_EQ(queries.size(), std::size(rows));
  const std::string folder = scratch_.path();
  for (std::size_t at = 0; at < queries.size(); ++at) {
    ASSERT_THAT(queries[at], HasSubstr(rows[at].asks));
    std::ofstream(absl::StrCat(folder, "/", at, ".promql")) << queries[at];
  }
  std::filesystem::create_directory(folder + "/others");
  std::ofstream(folder + "/others/metrics.txt") << kOthers;
  const Answered answered = RunBash(
      folder,
      absl::StrReplaceAll(
          kScrape, {{"MASTER", master_->http_address()}, {"RULES", kRules}, {"FOLDER", folder}}));
  ASSERT_EQ(answered.exit_code, 0) << answered.output;
  const std::vector<std::string> answers = absl::StrSplit(answered.output, '\n', absl::SkipEmpty());
  ASSERT_EQ(answers.size(), queries.size()) << answered.output;
  for (std::size_t at = 0; at < answers.size(); ++at) {
    SCOPED_TRACE(queries[at]);
    const auto found = nlohmann::json::parse(answers[at])["data"]["result"];
    EXPECT_EQ(found.size(), 1U) << "of what is nobody's of ours nothing is said";
    EXPECT_THAT(answers[at], HasSubstr(rows[at].labels));
    EXPECT_THAT(answers[at], HasSubstr(rows[at].value));
  }
}

}  // namespace
}  // namespace stepwell::testing
