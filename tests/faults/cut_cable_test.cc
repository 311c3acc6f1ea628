// Agents in network namespaces of their own, each behind a cable (a veth pair) that is pulled, or that loses
// all packets of one direction. No kernel answers for the other side, as it does behind a proxy: nothing is
// acknowledged, nothing reset. Each agent leaves its connection, and with the cable all goes on by itself.
// How it would fail: an agent waits for the kernel's own patience, fifteen minutes of retransmissions.
#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "tests/faults/master_client.h"
#include "tests/faults/network/chaos_proxy.h"
#include "tests/faults/scene.h"

namespace stepwell::faults {
namespace {

// `command`: words with a space between. Whether it ended well.
bool Do(const std::string& command) {
  ChildProcess child;
  child.Start(absl::StrSplit(command, ' '), {}, "/dev/null");
  return child.Wait(absl::Seconds(30)) == "exit 0";
}

constexpr char kIp[] = "/usr/sbin/ip";
constexpr char kUnshare[] = "/usr/bin/unshare";
constexpr char kEnter[] = "/usr/bin/nsenter";

// Keepalive's thirty seconds, on a machine that has other work.
constexpr absl::Duration kFoundWithin = absl::Seconds(36);

enum class Cut { kPulled, kUp, kDown };

// An agent with a spool, a trainer, a cable and a proxy at the master's end of it.
class Site {
 public:
  Site(Scene& scene, const MasterProcess& master, int number, Cut cut)
      : number_(number), cut_(cut), scene_(scene) {
    const std::string spool = scene.path(absl::StrCat("spool-", number));
    mkdir(spool.c_str(), 0700);
    const std::string ready = scene.path(absl::StrCat("cable-", number));
    // The program's own process, once there is a cable.
    agent_.Start(
        {kUnshare, "-n", "/bin/sh", "-c",
         absl::StrCat("until test -e ", ready, "; do sleep 0.05; done; exec \"$@\""), "agent",
         testing::BuiltProgram("stepwell"), "agent", "--server",
         absl::StrCat(here(), ":", Listen(master)), "--spool-dir", spool, "--no-auto-sampling"},
        {}, log());
    Eventually([&] { return HasOwnNamespace(); }, absl::Seconds(30));
    connected_ = Connect();
    std::ofstream(ready).flush();
    scene.StartTrainer(number, {{"--spool-dir", spool}, {"--rate", "20"}, {"--world-size", "3"}});
  }
  bool connected() const { return connected_; }
  int number() const { return number_; }
  std::string log() const { return scene_.path(absl::StrCat("agent-", number_, ".log")); }
  ChaosProxy& proxy() { return *proxy_; }
  bool HasLeft() const {
    std::ifstream file(log());
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    return text.find("stream_broken") != std::string::npos ||
           text.find("master_silent") != std::string::npos;
  }
  // Packets go to a station that is not there: lost without a word.
  bool Break() {
    const std::string nobody = " lladdr 02:00:00:00:00:99 nud permanent dev ";
    switch (cut_) {
      case Cut::kPulled:
        return Do(absl::StrCat(kIp, " link set ", cable(), " down"));
      case Cut::kUp:
        return Do(absl::StrCat(kEnter, " -t ", agent_.pid(), " -n ", kIp, " neigh replace ", here(),
                               nobody, cable(), "p"));
      case Cut::kDown:
        return Do(absl::StrCat(kIp, " neigh replace ", there(), nobody, cable()));
    }
    return false;
  }
  bool Mend() {
    switch (cut_) {
      case Cut::kPulled:
        return Do(absl::StrCat(kIp, " link set ", cable(), " up"));
      case Cut::kUp:
        return Do(absl::StrCat(kEnter, " -t ", agent_.pid(), " -n ", kIp, " neigh del ", here(),
                               " dev ", cable(), "p"));
      case Cut::kDown:
        return Do(absl::StrCat(kIp, " neigh del ", there(), " dev ", cable()));
    }
    return false;
  }

 private:
  std::string here() const { return absl::StrCat("10.99.", number_, ".1"); }
  std::string there() const { return absl::StrCat("10.99.", number_, ".2"); }
  std::string cable() const { return absl::StrCat("cable", number_); }
  bool HasOwnNamespace() const {
    struct stat ours {};
    struct stat its {};
    return stat("/proc/self/ns/net", &ours) == 0 &&
           stat(absl::StrCat("/proc/", agent_.pid(), "/ns/net").c_str(), &its) == 0 &&
           ours.st_ino != its.st_ino;
  }
  std::string Listen(const MasterProcess& master) {
    if (!Do(absl::StrCat(kIp, " link add ", cable(), " type veth peer name ", cable(), "p")) ||
        !Do(absl::StrCat(kIp, " addr add ", here(), "/24 dev ", cable()))) {
      return "0";
    }
    proxy_ = std::make_unique<ChaosProxy>(master.grpc_address(), scene_.random()(), here());
    return proxy_->address().substr(proxy_->address().rfind(':') + 1);
  }
  bool Connect() const {
    const std::string inside = absl::StrCat(kEnter, " -t ", agent_.pid(), " -n ", kIp);
    return proxy_ != nullptr &&
           Do(absl::StrCat(kIp, " link set ", cable(), "p netns ", agent_.pid())) &&
           Do(absl::StrCat(kIp, " link set ", cable(), " up")) &&
           Do(absl::StrCat(inside, " addr add ", there(), "/24 dev ", cable(), "p")) &&
           Do(absl::StrCat(inside, " link set ", cable(), "p up"));
  }

  const int number_;
  const Cut cut_;
  Scene& scene_;
  std::unique_ptr<ChaosProxy> proxy_;
  ChildProcess agent_;
  bool connected_ = false;
};

// REQUIRES: nothing else of this process uses the network yet.
void CutAndMend(const std::string& name, absl::Duration length) {
  if (unshare(CLONE_NEWNET) != 0 || !Do(absl::StrCat(kIp, " link set lo up")) ||
      !Do(absl::StrCat(kIp, " link add probe type veth peer name probep"))) {
    GTEST_SKIP() << "no network namespaces or cables here";
  }
  Scene scene(name);
  MasterProcess master({.scratch = scene.path("")});
  MasterClient client(master.grpc_address());
  ASSERT_TRUE(master.StartAndWait()) << master.LogTail();
  std::vector<std::unique_ptr<Site>> sites;
  for (const Cut cut : {Cut::kPulled, Cut::kUp, Cut::kDown}) {
    sites.push_back(std::make_unique<Site>(scene, master, static_cast<int>(sites.size()), cut));
    ASSERT_TRUE(sites.back()->connected());
  }
  ASSERT_TRUE(scene.Await("all are at work", absl::Seconds(90), [&] {
    return std::all_of(sites.begin(), sites.end(), [](const auto& site) {
      const ChaosProxy::Counts counts = site->proxy().counts();
      return counts.bytes_up > 10'000 && counts.bytes_down > 500;
    });
  })) << scene.Logs();
  const absl::Duration cut_at = scene.Elapsed();
  for (const auto& site : sites) EXPECT_TRUE(site->Break());
  scene.Say("pulled, deaf, dumb");
  // Asked every 20 s, answered within 10 s; a minute of silence is the agent's own patience.
  for (const auto& site : sites) {
    EXPECT_TRUE(scene.Await(absl::StrCat("site ", site->number(), " left its connection"),
                            absl::Seconds(120), [&] { return site->HasLeft(); }));
  }
  EXPECT_LE(scene.Elapsed() - cut_at, kFoundWithin);
  scene.Await("the cut", length + absl::Seconds(30),
              [&] { return scene.Elapsed() >= cut_at + length; });
  for (const auto& site : sites) EXPECT_TRUE(site->Mend());
  scene.Say("mended");
  scene.StopProducers(absl::Seconds(180));
  const Verdict verdict = scene.ExpectExact(master, Demand::kRecorded);
  EXPECT_EQ(verdict.declared_count, 0U);
  EXPECT_EQ(master.Stop(), "exit 0") << master.LogTail();
}

TEST(CutCableTest, LongIsFoundAndLeftAndAllGoesOn) { CutAndMend("cut cable", absl::Seconds(40)); }

TEST(CutCableTest, LongTenMinutesCostNothing) {
  CutAndMend("cut cable, ten minutes", absl::Minutes(10));
}

}  // namespace
}  // namespace stepwell::faults
