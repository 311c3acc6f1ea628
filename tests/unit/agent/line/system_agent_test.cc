// One agent for all users of a machine, some of them hostile.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <grp.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <set>

#include "client/agent/writer_identity.h"
#include "tests/unit/agent/line/agent_fixture.h"

namespace stepwell::agent {
namespace {

namespace fs = std::filesystem;

constexpr uid_t kGood = 40001;
constexpr uid_t kHostile = 40002;

class SystemAgentTest : public AgentTest {
 protected:
  void SetUp() override {
    if (geteuid() != 0) GTEST_SKIP() << "only root can serve other users";
    AgentTest::SetUp();
    fs::permissions(root_, fs::perms(0755));
    system_ = root_ + "/system";
    victim_ = root_ + "/victim";
    fs::create_directory(victim_);
    fs::permissions(victim_, fs::perms(0700));
    std::ofstream(victim_ + "/writer.json") << "a secret";
  }
  void StartSystemAgent(bool auto_sampling = false) {
    StartAgent([&](AgentOptions& options) {
      options.system = true;
      options.spool_dir = system_;
      options.auto_sampling = auto_sampling;
      options.selection.SetInterval(absl::Milliseconds(100));
    });
  }
  std::string RootOf(uid_t uid) const { return system_ + "/u" + std::to_string(uid); }
  // In a process of that user.
  static pid_t StartAs(uid_t uid, const std::function<void()>& body) {
    const pid_t child = fork();
    if (child != 0) return child;
    if (setgroups(0, nullptr) != 0 || setgid(uid) != 0 || setuid(uid) != 0) _exit(126);
    body();
    _exit(0);
  }
  pid_t RecordAs(uid_t uid, const std::string& trial, const std::function<void()>& body) {
    const std::string root = RootOf(uid);
    return StartAs(uid, [=] {
      setenv("STEPWELL_AGENT", "off", 1);
      stepwell_options options;
      stepwell_options_init(&options);
      options.spool_dir = root.c_str();
      options.trial = trial.c_str();
      if (stepwell_open(&options) != STEPWELL_RECORDING) _exit(1);
      body();
    });
  }
  // With all that it recorded acked.
  void ExpectServed(uid_t uid, const std::string& trial) {
    EXPECT_EQ(Wait(RecordAs(uid, trial,
                            [] {
                              RecordSteps(30, 1000);
                              if (stepwell_close(30000) != 1) _exit(3);
                            })),
              0);
    ExpectEachStepOnce(Of(trial), 30);
  }
  Writers Of(const std::string& trial) {
    Writers found = master_.writers();
    std::erase_if(found,
                  [&](const auto& entry) { return entry.second.open.external_id() != trial; });
    return found;
  }
  static std::set<uid_t> OwnersBelow(const std::string& path) {
    std::set<uid_t> owners;
    for (const auto& entry : fs::recursive_directory_iterator(path)) {
      struct stat status {};
      if (lstat(entry.path().c_str(), &status) == 0) owners.insert(status.st_uid);
    }
    return owners;
  }
  std::string system_;
  std::string victim_;
};

TEST_F(SystemAgentTest, AgentRule07_ServesEachUserInHisOwnDirectoryAsHimself) {
  StartSystemAgent(/*auto_sampling=*/true);
  struct stat status {};
  ASSERT_EQ(stat(system_.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777, 01733u);
  ASSERT_EQ(stat((system_ + "/f1/agent.lock").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0644u);
  const std::string stop = root_ + "/stop";
  const auto record = [stop] {
    for (int i = 0; i < 6000 && !fs::exists(stop); ++i) RecordSteps(1, 10000);
    if (stepwell_close(30000) != 1) _exit(3);
  };
  const pid_t one = RecordAs(kGood, "one", record);
  const pid_t two = RecordAs(kHostile, "two", record);
  // Users share the machine.
  EXPECT_TRUE(master_.WaitUntil([](const Writers& writers) {
    for (const auto& [id, writer] : writers) {
      if (!writer.open.is_sampler() || writer.open.external_id() != "one") continue;
      for (const FakeMaster::Sample& sample : FakeMaster::SamplesOf(writer)) {
        if (sample.name == "shared_with" && sample.value == 2) return true;
      }
    }
    return false;
  }));
  EXPECT_EQ(OwnersBelow(RootOf(kGood)), std::set<uid_t>({kGood}));
  EXPECT_EQ(OwnersBelow(RootOf(kHostile)), std::set<uid_t>({kHostile}));
  std::ofstream(stop) << "";
  EXPECT_EQ(Wait(one), 0);
  EXPECT_EQ(Wait(two), 0);
  ASSERT_TRUE(WaitForClosed());
  EXPECT_EQ(master_.writers().size(), 4u);
}

// What the hostile one puts where the agent looks.
TEST_F(SystemAgentTest, AgentRule07_AHostileUserReachesOnlyHisOwn) {
  StartSystemAgent();
  ExpectServed(kHostile, "his own");  // his root is served
  const pid_t hostile = StartAs(kHostile, [this] {
    fs::create_directory_symlink(victim_, RootOf(40003));
    fs::create_directory(RootOf(40004));
    const auto make = [&](const char* trial) {
      WriterIdentity who;
      who.writer = Uuid::Random();
      who.trial = trial;
      const fs::path made = RootOf(kHostile) + "/f1/" + who.writer.ToText();
      fs::create_directory(made);
      fs::permissions(made, fs::perms(0700));
      std::ofstream(made / "writer.draft") << ToWriterJson(who);
      for (const char* name : {"lock", "names", "header"}) std::ofstream(made / name) << "";
      return made;
    };
    const auto begin = [](const fs::path& made) {
      fs::rename(made / "writer.draft", made / "writer.json");
    };
    for (const char* name : {"lock", "names", "header"}) {
      const fs::path made = make(name);
      fs::remove(made / name);
      if (mkfifo((made / name).c_str(), 0600) != 0) _exit(2);
      begin(made);
    }
    fs::path made = make("fifo for an identity");
    if (mkfifo((made / "writer.json").c_str(), 0600) != 0) _exit(2);
    made = make("link for an identity");
    fs::create_symlink(victim_ + "/writer.json", made / "writer.json");
    made = make("link for a spool");
    fs::create_directory_symlink(victim_, made / "spool");
    begin(made);
    made = make("link within a spool");
    fs::create_directory(made / "spool");
    fs::create_directory_symlink(victim_, made / "spool" / "0");
    begin(made);
    made = make("fifo for a segment");
    fs::create_directories(made / "spool" / "0");
    if (mkfifo((made / "spool" / "0" / "0000000001.seg").c_str(), 0600) != 0) _exit(2);
    begin(made);
    fs::create_directory_symlink(victim_, RootOf(kHostile) + "/f1/" + Uuid::Random().ToText());
  });
  EXPECT_EQ(Wait(hostile), 0);
  struct stat before {};
  ASSERT_EQ(stat(victim_.c_str(), &before), 0);
  // Others are served on, and so is he.
  ExpectServed(kGood, "good");
  ExpectServed(kHostile, "his own again");
  StopAgent();
  struct stat after {};
  ASSERT_EQ(stat(victim_.c_str(), &after), 0);
  EXPECT_EQ(after.st_mtim.tv_nsec, before.st_mtim.tv_nsec);
  EXPECT_EQ(std::distance(fs::directory_iterator(victim_), {}), 1);
  EXPECT_EQ(OwnersBelow(RootOf(kHostile)), std::set<uid_t>({kHostile}));
  EXPECT_TRUE(fs::is_empty(RootOf(40004)));
}

// His is there first: begun beside the system agent, it may find its directory served.
TEST_F(SystemAgentTest, LetsAnAgentThatAUserStartedFinish) {
  fs::create_directory(system_);
  fs::permissions(system_, fs::perms(01733));
  const std::string began = RootOf(kGood) + "/began";
  const std::string finish = root_ + "/finish";
  const pid_t own_agent = StartAs(kGood, [&] {
    const auto directory = OpenFormatDirectory(RootOf(kGood));
    if (!directory.ok()) _exit(2);
    const auto lock = AgentLock::Take(directory->get());
    if (!lock.ok()) _exit(3);
    std::ofstream(began) << "";
    for (int i = 0; i < 24000 && !fs::exists(finish); ++i) usleep(5000);
  });
  for (int i = 0; i < 6000 && !fs::exists(began); ++i) usleep(5000);
  ASSERT_TRUE(fs::exists(began)) << "its own agent ended with " << Wait(own_agent);
  StartSystemAgent();
  const pid_t recorder = RecordAs(kGood, "good", [] { RecordSteps(30); });
  EXPECT_EQ(Wait(recorder), 0);
  ExpectServed(kHostile, "another's");
  EXPECT_TRUE(Of("good").empty());
  std::ofstream(finish) << "";
  EXPECT_EQ(Wait(own_agent), 0);
  ASSERT_TRUE(master_.WaitUntil([this](const Writers& writers) {
    for (const auto& [id, writer] : writers) {
      if (writer.open.external_id() == "good" && writer.closed) return true;
    }
    return false;
  }));
}

TEST_F(SystemAgentTest, AUserMayRemoveAllThatIsHisAndComeBack) {
  StartSystemAgent();
  ExpectServed(kGood, "first");
  fs::remove_all(RootOf(kGood));
  ExpectServed(kGood, "second");
}

TEST_F(SystemAgentTest, RefusesAPlaceThatIsNotItsOwn) {
  AgentOptions options;
  options.server = master_.address();
  options.system = true;
  options.spool_dir = system_;
  fs::create_directory_symlink(victim_, system_);
  EXPECT_FALSE(Agent::Create(options, RealClock::Get()).ok());
  fs::remove(system_);
  fs::create_directory(system_);
  fs::create_directory(system_ + "/f1");
  ASSERT_EQ(chown((system_ + "/f1").c_str(), kHostile, kHostile), 0);
  const absl::Status foreign = Agent::Create(options, RealClock::Get()).status();
  EXPECT_THAT(std::string(foreign.message()),
              ::testing::HasSubstr("f1 belongs to user 40002: remove it"));
  ASSERT_EQ(chown(system_.c_str(), kHostile, kHostile), 0);
  EXPECT_FALSE(Agent::Create(options, RealClock::Get()).ok());
}

}  // namespace
}  // namespace stepwell::agent
