// Between the agents and the master stands a network that delays, stalls, cuts to pieces, resets,
// flaps, swallows, or loses one side without a word. Nothing may be lost, nothing doubled, and all
// goes on by itself.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <memory>
#include <ostream>

#include "absl/strings/str_cat.h"
#include "tests/faults/master_client.h"
#include "tests/faults/network/chaos_proxy.h"
#include "tests/faults/scene.h"

namespace stepwell::faults {
namespace {

std::string ReadText(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

struct Row {
  const char* name;
  const char* weather;
  const char* steps_per_second;
  // Connections that the weather must have broken before the test is content.
  std::uint64_t reset_min = 0;
};

void PrintTo(const Row& row, std::ostream* out) { *out << row.weather; }

class BadNetworkTest : public ::testing::TestWithParam<Row> {};

// While the weather lasts, acks come: at its end, with the producers still at work, the master holds
// all that was recorded at some moment under it.
TEST_P(BadNetworkTest, AcksComeAndNothingIsLostOrDoubled) {
  const Row& row = GetParam();
  Scene scene(absl::StrCat("network ", row.name));
  MasterProcess master({.scratch = scene.path("")});
  MasterClient client(master.grpc_address());
  ASSERT_TRUE(master.StartAndWait()) << master.LogTail();
  ChaosProxy proxy(master.grpc_address(), scene.random()());
  proxy.Set(row.weather);
  scene.Say(absl::StrCat("weather: ", row.weather));
  scene.StartAgent(proxy.address());
  const std::map<std::string, std::string> options = {{"--world-size", "2"},
                                                      {"--rate", row.steps_per_second}};
  scene.StartTrainer(0, options);
  scene.StartTrainer(1, options);
  const auto committed = [&] {
    const auto status = client.Status();
    return status ? status->samples_committed() : 0;
  };
  // What is committed catches up with what is recorded, three times and as the connection breaks.
  for (int i = 0; i < 3; ++i) {
    const std::size_t recorded = scene.ReadLedgers().samples.size();
    ASSERT_TRUE(scene.Await(absl::StrCat(recorded + 200, " samples"), absl::Seconds(90), [&] {
      return committed() >= recorded + 200;
    })) << scene.Logs();
  }
  EXPECT_TRUE(scene.Await(absl::StrCat(row.reset_min, " resets"), absl::Seconds(90),
                          [&] { return proxy.counts().reset >= row.reset_min; }));
  scene.StopProducers(absl::Seconds(90));
  const ChaosProxy::Counts counts = proxy.counts();
  scene.Say(absl::StrCat(counts.accepted, " connections, ", counts.reset, " reset, ",
                         counts.bytes_up, " bytes up in ", counts.writes_up, " writes, ",
                         counts.bytes_down, " down"));
  // Where nothing breaks a connection, slowness is no reason to leave it. Once it may be this machine
  // that let a ping wait for too long.
  if (row.reset_min == 0) {
    EXPECT_LE(counts.accepted, 2U) << scene.Logs();
  }
  const Verdict verdict = scene.ExpectExact(master, Demand::kRecorded);
  EXPECT_EQ(verdict.declared_count, 0U);
  EXPECT_EQ(master.Stop(), "exit 0") << master.LogTail();
}

std::string NameOf(const ::testing::TestParamInfo<Row>& row) { return row.param.name; }

INSTANTIATE_TEST_SUITE_P(, BadNetworkTest,
                         ::testing::Values(Row{"Slow", "delay=300ms jitter=200ms", "50"},
                                           Row{"Slices", "slice=1", "50"},
                                           Row{"Resets", "reset=30000", "100", 4},
                                           Row{"Flaps", "flap=1500ms:500ms", "50", 5}),
                         NameOf);
INSTANTIATE_TEST_SUITE_P(Long, BadNetworkTest,
                         ::testing::Values(Row{"Stalls", "delay=20ms stall=10%:700ms", "50"},
                                           Row{"Narrow", "rate=8000", "10"},
                                           Row{"ResetsSoon", "slice=100 reset=6000", "20", 6},
                                           Row{"FlapsLong", "flap=5s:10s delay=100ms", "50", 5}),
                         NameOf);

// An agent with a spool, a trainer and a network of its own.
class Site {
 public:
  Site(Scene& scene, const MasterProcess& master, const std::string& name, int rank, int world_size)
      : scene_(scene), name_(name), proxy_(master.grpc_address(), scene.random()()) {
    const std::string spool = scene.path("spool-" + name);
    mkdir(spool.c_str(), 0700);
    agent_.Start({testing::BuiltProgram("stepwell"), "agent", "--server", proxy_.address(),
                  "--spool-dir", spool, "--no-auto-sampling"},
                 {}, log());
    scene.StartTrainer(
        rank,
        {{"--spool-dir", spool}, {"--rate", "20"}, {"--world-size", absl::StrCat(world_size)}});
  }
  const std::string& name() const { return name_; }
  std::string log() const { return scene_.path(name_ + "-agent.log"); }
  ChaosProxy& proxy() { return proxy_; }

 private:
  Scene& scene_;
  const std::string name_;
  ChaosProxy proxy_;
  ChildProcess agent_;
};

// Thirty seconds, and the first wait before another try, on a machine that has other work.
constexpr absl::Duration kFoundWithin = absl::Seconds(36);

// Four networks that fall silent in four ways at once; nobody is told anything. Keepalive finds each
// within 30 s (asked every 20 s, answered within 10 s), not the agent's own patience of 60 s, unless the
// machine is so busy that gRPC comes late.
TEST(SilentNetworkTest, IsFoundByKeepaliveAndLeftAndAllGoesOn) {
  Scene scene("silent network");
  MasterProcess master({.scratch = scene.path("")});
  ASSERT_TRUE(master.StartAndWait()) << master.LogTail();
  const std::vector<std::string> names = {"both", "up", "down", "lost"};
  std::vector<std::unique_ptr<Site>> sites;
  for (std::size_t i = 0; i < names.size(); ++i) {
    sites.push_back(std::make_unique<Site>(scene, master, names[i], static_cast<int>(i),
                                           static_cast<int>(names.size())));
  }
  ASSERT_TRUE(scene.Await("all are at work", absl::Seconds(60), [&] {
    return std::all_of(sites.begin(), sites.end(), [](const auto& site) {
      const ChaosProxy::Counts counts = site->proxy().counts();
      return counts.bytes_up > 10'000 && counts.bytes_down > 500;
    });
  })) << scene.Logs();
  for (const auto& site : sites) {
    if (site->name() == "lost") {
      site->proxy().LoseServer();
    } else {
      site->proxy().Set("hold=" + site->name());
    }
  }
  scene.Say("the networks are silent");
  const absl::Duration silent_at = scene.Elapsed();
  // Each agent leaves the connection that it had and tries another one.
  for (const auto& site : sites) {
    EXPECT_TRUE(scene.Await(site->name() + ": left", absl::Seconds(90), [&] {
      return site->proxy().counts().accepted >= 2;
    })) << ReadText(site->log());
  }
  EXPECT_LE(scene.Elapsed() - silent_at, kFoundWithin);
  for (const auto& site : sites) site->proxy().Set("");
  scene.Say("the networks are back");
  scene.StopProducers(absl::Seconds(120));
  // Each would be found by patience, too; all of them are only where nobody asked before.
  const auto by_patience = std::count_if(sites.begin(), sites.end(), [](const auto& site) {
    return ReadText(site->log()).find("master_silent") != std::string::npos;
  });
  scene.Say(absl::StrCat(by_patience, " found by patience, not by keepalive"));
  EXPECT_LT(by_patience, static_cast<std::ptrdiff_t>(sites.size()));
  const Verdict verdict = scene.ExpectExact(master, Demand::kRecorded);
  EXPECT_EQ(verdict.declared_count, 0U);
  EXPECT_EQ(master.Stop(), "exit 0") << master.LogTail();
}

}  // namespace
}  // namespace stepwell::faults
