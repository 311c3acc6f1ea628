// Where a process that opens puts its spool, what it writes down of its options, and callers that know
// fewer options than the library.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstddef>
#include <cstdlib>
#include <cstring>

#include "stepwell/stepwell.h"
#include "tests/unit/recorder/files/in_child.h"
#include "tests/unit/recorder/files/recorder_fixture.h"
#include "tests/unit/recorder/files/spool_files.h"

namespace stepwell::recorder {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;
using testing::HasSubstr;
using testing::StartsWith;

class OpenTest : public RecorderTest {
 protected:
  // Opens without a given root, in a process of its own, whose temporary directory is ours.
  void OpenDefault(const std::function<void(const Recorder&)>& look) {
    ExpectInChild([&] {
      unsetenv("STEPWELL_SPOOL_DIR");
      setenv("TMPDIR", temporary().c_str(), 1);
      setenv("STEPWELL_SHARED_MEMORY", "", 1);
      setenv("STEPWELL_SYSTEM_ROOT", "/no/such/root", 1);
      const Recorder recorder({.trial = "t", .exit_wait = milliseconds(0)});
      look(recorder);
    });
  }
  const std::string& temporary() const { return directory_.path(); }
  std::string default_root() const {
    return temporary() + "/stepwell-" + std::to_string(geteuid());
  }
  // The one private root that was made beside the default one.
  std::string PrivateRoot() const {
    std::string found;
    for (const auto& entry : fs::directory_iterator(temporary())) {
      const std::string path = entry.path();
      if (path.rfind(default_root() + "-", 0) != 0) continue;
      EXPECT_EQ(found, "") << "two of them";
      found = path;
    }
    return found;
  }
};

TEST_F(OpenTest, AnEnvironmentThatIsHandedOverStandsForThatOfTheProcess) {
  const std::string spool_dir = "STEPWELL_SPOOL_DIR=" + temporary() + "/handed";
  ExpectInChild([&] {
    setenv("STEPWELL_SPOOL_DIR", (temporary() + "/own").c_str(), 1);
    setenv("STEPWELL_DISABLED", "1", 1);
    setenv("STEPWELL_PROJECT", "own", 1);
    const char* const variables[] = {"STEPWELL_TRIAL=handed", "STEPWELL_TRIALS=x",
                                     spool_dir.c_str(), "STEPWELL_DISABLED=", nullptr};
    stepwell_options options;
    stepwell_options_init(&options);
    options.environment = variables;
    options.start_agent = 0;
    EXPECT_EQ(stepwell_open(&options), STEPWELL_RECORDING) << stepwell_message();
    (void)stepwell_close(0);
  });
  EXPECT_FALSE(fs::exists(temporary() + "/own"));
  const auto writers = FindWriters(temporary() + "/handed");
  ASSERT_EQ(writers.size(), 1u);
  const std::string identity = ReadText(writers[0] / spool::kWriterFile);
  EXPECT_THAT(identity, HasSubstr("handed"));
  EXPECT_THAT(identity, testing::Not(HasSubstr("\"own\"")));
}

TEST_F(OpenTest, AgentRule06_WithoutAWordTheSpoolLiesInTheTemporaryDirectory) {
  OpenDefault([](const Recorder& recorder) {
    EXPECT_EQ(recorder.state(), STEPWELL_RECORDING);
    EXPECT_EQ(recorder.message(), "");
  });
  ASSERT_EQ(FindWriters(default_root()).size(), 1u);
  EXPECT_EQ(fs::status(default_root()).permissions(), fs::perms::owner_all);
  // A second process uses the same.
  OpenDefault([](const Recorder&) {});
  EXPECT_EQ(FindWriters(default_root()).size(), 2u);
  EXPECT_EQ(PrivateRoot(), "");
}

TEST_F(OpenTest, AgentRule06_ARefusedDefaultRootIsReplacedByAPrivateOne) {
  const struct {
    const char* name;
    std::function<void(const std::string& root)> spoil;
    std::string why;
  } rows[] = {
      {"a link",
       [](const std::string& root) {
         fs::create_directory(root + ".target");
         fs::create_directory_symlink(root + ".target", root);
       },
       "cannot open the spool directory ROOT: it is a symlink or no directory"},
      {"a file", [](const std::string& root) { std::ofstream(root) << "x"; },
       "cannot open the spool directory ROOT: it is a symlink or no directory"},
      {"wide",
       [](const std::string& root) {
         fs::create_directory(root);
         fs::permissions(root, fs::perms(0711));
       },
       "the spool directory ROOT is refused: others may enter it (chmod 700 it)"},
      {"another user's",
       [](const std::string& root) {
         fs::create_directory(root);
         fs::permissions(root, fs::perms(0700));
         if (chown(root.c_str(), 65534, 65534) != 0) fs::permissions(root, fs::perms(0755));
       },
       geteuid() == 0 ? "the spool directory ROOT is refused: it belongs to another user"
                      : "the spool directory ROOT is refused: others may enter it (chmod 700 it)"},
  };
  for (const auto& row : rows) {
    SCOPED_TRACE(row.name);
    row.spoil(default_root());
    std::string why = row.why;
    why.replace(why.find("ROOT"), 4, default_root());
    OpenDefault([&](const Recorder& recorder) {
      EXPECT_EQ(recorder.state(), STEPWELL_RECORDING);
      EXPECT_EQ(recorder.message(), why + "; records into " + PrivateRoot());
    });
    const std::string root = PrivateRoot();
    EXPECT_EQ(FindWriters(root).size(), 1u);
    EXPECT_EQ(fs::status(root).permissions(), fs::perms::owner_all);
    EXPECT_TRUE(FindWriters(default_root()).empty());
    fs::remove_all(root);
    fs::remove_all(default_root());
    fs::remove_all(default_root() + ".target");
  }
}

// Who names a directory means that one.
TEST_F(OpenTest, AgentRule06_ARefusedGivenRootIsNotReplaced) {
  const std::string given = temporary() + "/wide";
  fs::create_directory(given);
  fs::permissions(given, fs::perms(0750));
  ExpectInChild([&] {
    setenv("TMPDIR", temporary().c_str(), 1);
    setenv("STEPWELL_SHARED_MEMORY", "", 1);
    const Recorder recorder({.spool_dir = given, .exit_wait = milliseconds(0)});
    EXPECT_EQ(recorder.state(), STEPWELL_MEMORY_ONLY);
    EXPECT_EQ(recorder.message(),
              "the spool directory " + given + " is refused: others may enter it (chmod 700 it)");
  });
  EXPECT_FALSE(fs::exists(default_root()));
}

TEST_F(OpenTest, ARelativeRootIsOfTheWorkingDirectory) {
  ExpectInChild([this] {
    ASSERT_EQ(chdir(temporary().c_str()), 0);
    const Recorder recorder({.spool_dir = "spool", .exit_wait = milliseconds(0)});
    EXPECT_EQ(recorder.state(), STEPWELL_RECORDING);
    ASSERT_EQ(chdir("/"), 0);
  });
  EXPECT_EQ(FindWriters(temporary() + "/spool").size(), 1u);
}

TEST_F(OpenTest, AgentRule14_WhatTheTrialWantsSampledIsInItsWriterFile) {
  ExpectInChild([this] {
    setenv("STEPWELL_WITH", "cpu_util_core", 1);
    setenv("STEPWELL_OFFLINE", "1", 1);
    const Recorder recorder({.spool_dir = temporary(),
                             .server = "host:1",
                             .exit_wait = milliseconds(0),
                             .system_metrics = false,
                             .interval = milliseconds(20),
                             .groups = "cpu, gpu",
                             .without = "gpu_power"});
    EXPECT_EQ(recorder.message(), "offline: 'stepwell upload " + temporary() + "' sends it");
  });
  const std::string json = ReadText(WriterPath() / "writer.json");
  EXPECT_THAT(json, HasSubstr("\"server\": \"offline\""));
  EXPECT_THAT(json, HasSubstr("\"sampling\": {\"on\": false, \"interval_us\": 20000, \"groups\": "
                              "[\"cpu\", \"gpu\"], \"without\": [\"gpu_power\"], \"with\": "
                              "[\"cpu_util_core\"]}"));
}

TEST_F(OpenTest, OptionsThatCannotBeAreToldAndItRecords) {
  ExpectInChild([this] {
    setenv("STEPWELL_INTERVAL", "often", 1);
    const Recorder recorder({.spool_dir = temporary(), .exit_wait = milliseconds(0)});
    EXPECT_EQ(recorder.state(), STEPWELL_RECORDING);
    EXPECT_THAT(recorder.message(), StartsWith("STEPWELL_INTERVAL is 'often': it must be"));
  });
}

// What stepwell_options was before it grew.
struct OptionsOfOld {
  std::size_t size;
  const char* spool_dir;
  const char* server;
  const char* project;
  const char* trial;
  const char* attempt_key;
  const char* token;
  std::int32_t rank;
  std::int32_t world_size;
  const stepwell_label* labels;
  std::size_t label_count;
};
static_assert(sizeof(OptionsOfOld) == offsetof(stepwell_options, agent));

TEST_F(OpenTest, ACallerOfOldOptionsKeepsTheRestOfItsStack) {
  ExpectInChild([this] {
    struct {
      OptionsOfOld options;
      unsigned char behind[sizeof(stepwell_options)];
    } caller;
    std::memset(&caller, 0xa5, sizeof(caller));
    auto* options = reinterpret_cast<stepwell_options*>(&caller.options);
    stepwell_options_init_size(options, sizeof(caller.options));
    EXPECT_EQ(caller.options.size, sizeof(OptionsOfOld));
    EXPECT_EQ(caller.options.rank, -1);
    EXPECT_EQ(caller.options.spool_dir, nullptr);
    for (const unsigned char byte : caller.behind) ASSERT_EQ(byte, 0xa5);
    caller.options.spool_dir = temporary().c_str();
    caller.options.trial = "old";
    // Pointers and switches behind it are not looked at: they are no texts.
    EXPECT_EQ(stepwell_open(options), STEPWELL_RECORDING) << stepwell_message();
    stepwell_close(0);
  });
  const std::string json = ReadText(WriterPath() / "writer.json");
  EXPECT_THAT(json, HasSubstr("\"trial\": \"old\""));
  EXPECT_THAT(json, HasSubstr("\"sampling\": {\"on\": true, \"interval_us\": 0"));
}

TEST_F(OpenTest, ACallerOfNewerOptionsFindsTheRestZero) {
  struct {
    stepwell_options options;
    unsigned char newer[64];
  } caller;
  std::memset(&caller, 0xa5, sizeof(caller));
  stepwell_options_init_size(&caller.options, sizeof(caller));
  EXPECT_EQ(caller.options.size, sizeof(caller));
  EXPECT_EQ(caller.options.start_agent, 1);
  for (const unsigned char byte : caller.newer) EXPECT_EQ(byte, 0);
}

}  // namespace
}  // namespace stepwell::recorder
