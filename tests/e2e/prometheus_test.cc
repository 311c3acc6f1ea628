// What Prometheus reads of a real master, and a real Prometheus that reads it (skipped where there is none).
#include <gmock/gmock.h>

#include <fstream>
#include <functional>
#include <string>

#include "absl/strings/str_replace.h"
#include "absl/time/clock.h"
#include "base/steady_time.h"
#include "nlohmann/json.hpp"
#include "tests/e2e/bash.h"
#include "tests/e2e/spine.h"

namespace stepwell::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

constexpr char kUtil[] =
    "\nstepwell_trial_cpu_util_simple_ratio{project=\"default\",trial=\"measured\"";

class PrometheusTest : public SpineTest {
 protected:
  void SetUp() override { StartMaster(); }

  // A trial that runs, with one value of a machine.
  void Measure(RawStream& stream) {
    Open(stream, writer_, "measured");
    auto definition =
        DefinitionMessage(writer_, {{.ref = 2, .metric_group = "cpu", .name = "cpu_util_simple"}});
    definition.mutable_definitions()->mutable_definitions(0)->set_unit("percent");
    ASSERT_TRUE(stream.Send(definition));
    ASSERT_TRUE(stream.Send(ChunkMessage(writer_, 1, OneColumn(2, NowUs(), 1000, {25, 50}))));
    ASSERT_TRUE(stream.WaitAck(writer_, 1).has_value()) << master_->LogTail();
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
                           "/metrics | promtool check metrics && promtool check rules " RULES);
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

  ASSERT_TRUE(stream.Send(CloseMessage(writer_, 1)));
  EXPECT_TRUE(stream.Finish().ok());
  EXPECT_THAT(Get("/metrics", [&](const std::string& text) { return !has_it(text); }),
              Not(HasSubstr("stepwell_trial_info")));
  EXPECT_THAT(master_->Get("/metrics?trial=" + number), StartsWith("HTTP/1.1 404"));
}

// As docs/http.md configures it.
constexpr char kScrape[] = R"(
cat > CONFIG <<'YAML'
global: {scrape_interval: 1s}
rule_files: [RULES]
scrape_configs:
  - job_name: stepwell
    params: {trial: [none]}
    static_configs: [{targets: ["MASTER"]}]
  - job_name: stepwell-trials
    http_sd_configs: [{url: "http://MASTER/sd"}]
    relabel_configs: [{source_labels: [__meta_stepwell_trial_id], target_label: instance}]
YAML
port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
prometheus --config.file=CONFIG --storage.tsdb.path=DATA --web.listen-address=127.0.0.1:$port &
trap "kill $!" EXIT
for i in $(seq 200); do
  curl -sS "127.0.0.1:$port/api/v1/query" --data-urlencode \
    'query=stepwell_trial_cpu_util_simple_ratio * on () group_left () stepwell_ready' | grep '"0.5"' && exit 0
  sleep 0.2
done
exit 1
)";

TEST_F(PrometheusTest, ARealOneFindsReadsAndAnswersIt) {
  if (!Has("prometheus")) GTEST_SKIP() << "prometheus is not installed";
  RawStream stream(*client_);
  Measure(stream);
  const Answered answered =
      RunBash(scratch_.path(),
              absl::StrReplaceAll(kScrape, {{"MASTER", master_->http_address()},
                                            {"RULES", RULES},
                                            {"CONFIG", scratch_.path() + "/prometheus.yml"},
                                            {"DATA", scratch_.path() + "/tsdb"}}));
  EXPECT_EQ(answered.exit_code, 0) << answered.output;
  EXPECT_THAT(answered.output, HasSubstr("\"instance\":\""));
  EXPECT_THAT(answered.output, HasSubstr("\"trial\":\"measured\""));
}

}  // namespace
}  // namespace stepwell::testing
