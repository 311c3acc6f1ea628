// Samples of the machine, which no producer logs: an agent takes them itself, a tick each tenth of a second, whoever dies
// or hangs. Invariant: of each series one sample a tick, none twice, and each tick that is not there is counted by a gap.
// How it would fail: a chunk of the sampler's that is sent again is stored again; one that waited is given up without a
// word; ticks between an agent that was killed and the next are told by nobody.
#include <gtest/gtest.h>
#include <signal.h>

#include <cstdio>
#include <string>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "tests/faults/database_text.h"
#include "tests/faults/master_client.h"
#include "tests/faults/network/chaos_proxy.h"
#include "tests/faults/scene.h"

namespace stepwell::faults {
namespace {

constexpr int kIntervalMs = 100;
// Of one series, by its own times: how many samples, how many of one time, how many ticks are absent and in how many holes.
constexpr char kTicksOf[] = R"(
select count(*) || ' ' || count(*) - count(distinct timestamp) || ' ' || coalesce(sum(absent), 0)::bigint || ' ' ||
       count(*) filter (where absent > 0)
from (
  select timestamp, greatest(0, round(extract(epoch from timestamp - lag(timestamp) over (order by timestamp))
                                      * 1000 / $interval) - 1) as absent
  from stepwell.trials t, stepwell.samples(t.trial_id, 'memory', 'memory_free') s
  where t.external_id = 'faults') ticks)";
// Of late ticks of the machine, whose writer has no rank, by how many samples most of its ticks have.
constexpr char kToldTicks[] = R"(
with sampled as (
  select count(*) as of_one from stepwell.generic_metrics g join stepwell.trials t using (trial_id), unnest(g.timestamps) as u (at)
  where t.external_id = 'faults' and g.metric_group not in ('faults', 'timing') and not g.labels ? 'rank'
  group by u.at)
select round(coalesce(sum(sample_count), 0)::numeric / (select mode() within group (order by of_one) from sampled))::bigint
from stepwell.gaps g join stepwell.trials t using (trial_id)
join stepwell.writers w on w.trial_id = g.trial_id and w.writer_no = g.writer_no
where t.external_id = 'faults' and g.cause = 3 and w.rank is null)";

class MachineTicksTest : public ::testing::Test {
 protected:
  struct Ticks {
    int count = 0;
    int doubled = 0;
    int absent = 0;
    int holes = 0;
  };
  void StartAgent() {
    scene_.StartAgent(proxy_.address(),
                      {"--trial", "faults", "--interval", absl::StrCat(kIntervalMs, "ms")});
  }
  std::string Ask(const std::string& sql) {
    return DatabaseText(master_.database_url(),
                        absl::StrReplaceAll(sql, {{"$interval", absl::StrCat(kIntervalMs)}}));
  }
  Ticks ReadTicks() {
    Ticks ticks;
    const std::string text = Ask(kTicksOf);
    EXPECT_EQ(sscanf(text.c_str(), "%d %d %d %d", &ticks.count, &ticks.doubled, &ticks.absent,
                     &ticks.holes),
              4)
        << text;
    return ticks;
  }
  void AwaitTicks(const std::string& what, int more) {
    const auto held = [&] {
      (void)client_.Flush();
      int count = 0;
      return sscanf(Ask(kTicksOf).c_str(), "%d", &count) == 1 ? count : 0;
    };
    int before = 0;
    ASSERT_TRUE(scene_.Await(what + ": the database answers", absl::Seconds(60),
                             [&] {
                               before = held();
                               return before > 0;
                             }))
        << scene_.Logs() << master_.LogTail();
    ASSERT_TRUE(scene_.Await(absl::StrCat(what, ": ", more, " ticks"), absl::Seconds(60),
                             [&] { return held() >= before + more; }))
        << scene_.Logs() << master_.LogTail();
  }

  Scene scene_{::testing::UnitTest::GetInstance()->current_test_info()->name()};
  MasterProcess master_{{.scratch = scene_.path("")}};
  MasterClient client_{master_.grpc_address()};
  ChaosProxy proxy_{master_.grpc_address(), scene_.random()()};
};

TEST_F(MachineTicksTest, EachTickIsThereOnceOrTold) {
  ASSERT_TRUE(master_.StartAndWait()) << master_.LogTail();
  StartAgent();
  scene_.StartTrainer(0);
  ASSERT_NO_FATAL_FAILURE(AwaitTicks("begin", 10));
  for (int round = 0; round < 2; ++round) {
    master_.Kill();
    ASSERT_TRUE(master_.StartAndWait()) << master_.LogTail();
    ASSERT_NO_FATAL_FAILURE(AwaitTicks("the master was killed", 10));
    proxy_.ResetAll();
    ASSERT_NO_FATAL_FAILURE(AwaitTicks("connections were reset", 5));
    proxy_.Set("hold=down");
    const absl::Duration until = scene_.Elapsed() + absl::Milliseconds(scene_.Random(300, 1500));
    Eventually([&] { return scene_.Elapsed() >= until; }, absl::Seconds(60));
    master_.Kill();
    proxy_.Set("");
    ASSERT_TRUE(master_.StartAndWait()) << master_.LogTail();
    ASSERT_NO_FATAL_FAILURE(AwaitTicks("it was killed behind acks that nobody heard", 10));
    kill(master_.PostmasterPid(), SIGKILL);
    ASSERT_NO_FATAL_FAILURE(AwaitTicks("PostgreSQL was killed", 10));
    scene_.agent().Kill();
    const absl::Duration back = scene_.Elapsed() + absl::Milliseconds(scene_.Random(600, 1500));
    Eventually([&] { return scene_.Elapsed() >= back; }, absl::Seconds(60));
    StartAgent();
    ASSERT_NO_FATAL_FAILURE(AwaitTicks("the agent was killed", 20));
  }
  scene_.StopProducers(absl::Seconds(60));
  scene_.agent().Signal(SIGTERM);
  EXPECT_EQ(scene_.agent().Wait(absl::Seconds(60)), "exit 0") << scene_.Logs();
  (void)scene_.ExpectExact(master_, Demand::kRecorded, scene_.DropsOfRecorders());
  const Ticks ticks = ReadTicks();
  int told = 0;
  EXPECT_TRUE(absl::SimpleAtoi(Ask(kToldTicks), &told)) << Ask(kToldTicks);
  scene_.Say(absl::StrCat(ticks.count, " ticks, ", ticks.absent, " absent in ", ticks.holes,
                          " holes, ", told, " told"));
  EXPECT_GT(ticks.count, 80);
  EXPECT_EQ(ticks.doubled, 0);
  EXPECT_GE(ticks.absent, 2 * 4) << "nothing was missed: this proves little";
  // Each agent's first tick is off the grid of the one before.
  EXPECT_NEAR(told, ticks.absent, 2 + 1);
  EXPECT_EQ(master_.Stop(), "exit 0") << master_.LogTail();
}

}  // namespace
}  // namespace stepwell::faults
