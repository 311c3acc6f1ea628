// `stepwell upload` and `stepwell agent status`: what was recorded without a master is told, sent
// later, and stored once, whatever happens on the way.
#include <gmock/gmock.h>
#include <grp.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "nlohmann/json.hpp"
#include "tests/e2e/spine.h"
#include "tests/support/child_process.h"

namespace stepwell::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

// Never a master.
constexpr char kNobody[] = "127.0.0.1:1";
constexpr int kNumberedPerStep = 2;
constexpr uid_t kSomebody = 54'321;

// That of a shell of root's, in which the command is started.
class RootsGroup {
 public:
  RootsGroup() {
    const gid_t root = 0;
    before_.resize(static_cast<std::size_t>(getgroups(0, nullptr)));
    EXPECT_EQ(getgroups(static_cast<int>(before_.size()), before_.data()),
              static_cast<int>(before_.size()));
    EXPECT_EQ(setgroups(1, &root), 0);
  }
  ~RootsGroup() { EXPECT_EQ(setgroups(before_.size(), before_.data()), 0); }
  RootsGroup(const RootsGroup&) = delete;
  RootsGroup& operator=(const RootsGroup&) = delete;

 private:
  std::vector<gid_t> before_;
};

class UploadTest : public SpineTest {
 protected:
  // Records numbered samples and ends; nobody acks them.
  void Record(int rank, int steps, const std::map<std::string, std::string>& environment = {}) {
    ChildProcess trainer;
    trainer.Start({BuiltProgram("fault_trainer"), "--spool-dir", spool_, "--log",
                   scratch_ / absl::StrCat("ledger-", rank), "--rank", absl::StrCat(rank),
                   "--steps", absl::StrCat(steps), "--rate", "2000", "--close-wait-ms", "0"},
                  environment, scratch_ / "trainer.log");
    EXPECT_EQ(trainer.Wait(absl::Seconds(60)), "exit 3") << Log("trainer.log");
    expected_ += 1;
    numbered_count_ = steps * kNumberedPerStep;
  }
  void StartAgent() {
    agent_.Start({BuiltProgram("stepwell"), "agent", "--server", kNobody, "--spool-dir", spool_},
                 {}, scratch_ / "agent.log");
  }
  // All that was recorded is in frames by then.
  void StopAgent() {
    EXPECT_TRUE(Eventually(
        [&] {
          const nlohmann::json status = Status();
          for (const auto& writer : status["writers"]) {
            if (writer["ring_events"] != 0) return false;
          }
          return true;
        },
        absl::Seconds(30)));
    agent_.Signal(SIGTERM);
    EXPECT_EQ(agent_.Wait(absl::Seconds(30)), "exit 0") << Log("agent.log");
  }

  // How the command ended, with what it said in said_.
  std::string Run(std::vector<std::string> words,
                  const std::map<std::string, std::string>& environment = {}) {
    const std::string log = absl::StrCat("said-", ++count_);
    words.insert(words.begin(), BuiltProgram("stepwell"));
    ChildProcess command;
    command.Start(words, environment, scratch_ / log);
    const std::string ending = command.Wait(absl::Seconds(90));
    said_ = Log(log);
    return ending;
  }
  std::string Upload(const std::string& directory, const std::vector<std::string>& more = {}) {
    std::vector<std::string> words = {"upload", directory, "--server", master_->grpc_address()};
    words.insert(words.end(), more.begin(), more.end());
    return Run(words);
  }
  static void GiveAway(const std::string& directory) {
    for (const auto& entry : fs::recursive_directory_iterator(directory)) {
      ASSERT_EQ(lchown(entry.path().c_str(), kSomebody, kSomebody), 0);
    }
    ASSERT_EQ(lchown(directory.c_str(), kSomebody, kSomebody), 0);
  }
  // As a recorder leaves it that wants the file uploaded.
  void LeaveTraceNote(const std::string& name, const std::string& path) {
    for (const auto& entry : fs::directory_iterator(spool_ + "/f1")) {
      std::ifstream json(entry.path() / "writer.json");
      if (!json.is_open()) continue;
      fs::create_directory(spool_ + "/f1/traces");
      std::ofstream(absl::StrCat(spool_, "/f1/traces/", name, ".json")) << nlohmann::json(
          {{"path", path}, {"writer", nlohmann::json::parse(json)}, {"removes_file", true}});
      return;
    }
    FAIL() << "the spool has no writer";
  }
  // What `agent status --json` says of the spool.
  nlohmann::json Status() {
    EXPECT_EQ(Run({"agent", "status", "--spool-dir", spool_, "--json"}), "exit 0") << said_;
    return nlohmann::json::parse(said_)["spools"][0];
  }
  std::string Log(const std::string& name) {
    std::ifstream file(scratch_ / name);
    return {std::istreambuf_iterator<char>(file), {}};
  }

  // Each number of each rank once, no more and no less.
  void ExpectAllOnce() {
    ASSERT_TRUE(client_->Flush().ok());
    const std::int64_t trial_id = QueryNumber("select max(trial_id) from trials where $1 = 1", 1);
    std::map<double, int> count_of;
    for (const StoredSample& sample : Samples(trial_id, "numbered")) ++count_of[sample.value];
    EXPECT_EQ(count_of.size(), static_cast<std::size_t>(numbered_count_));
    for (const auto& [value, count] : count_of) EXPECT_EQ(count, expected_) << value;
    EXPECT_EQ(
        QueryNumber("select coalesce(sum(sample_count), 0)::bigint from gaps where $1 = 1", 1), 0);
  }

  const std::string spool_ = scratch_ / "spool";
  ChildProcess agent_;
  int expected_ = 0;  // of each number
  int numbered_count_ = 0;
  int count_ = 0;
  std::string said_;
};

TEST_F(UploadTest, SendsOnceWhatWasRecordedWithoutAMaster) {
  StartAgent();
  Record(0, 300);
  Record(1, 300);
  StartMaster();
  EXPECT_EQ(Upload(spool_), "exit 75") << "an agent serves it";
  EXPECT_THAT(said_, HasSubstr(absl::StrCat("an agent (process ", agent_.pid(), ") serves")));
  StopAgent();
  // Of the third nothing is in a frame: its agent never was.
  Record(2, 300);
  nlohmann::json status = Status();
  const std::size_t writer_count = status["writers"].size();
  EXPECT_GE(writer_count, 3U) << "the agent sampled the machine as well";
  EXPECT_FALSE(status["is_served"]);
  EXPECT_THAT(status["advice"].dump(), HasSubstr(absl::StrCat("'stepwell upload ", spool_, "'")));

  EXPECT_EQ(Upload(spool_, {"--json"}), "exit 0") << said_;
  const nlohmann::json sent = nlohmann::json::parse(said_.substr(said_.find('{')));
  EXPECT_EQ(sent["writers_stored"], writer_count);
  // Of a step 2 numbered, 4 checked and 4 timings.
  EXPECT_GE(sent["samples_stored"], 3 * 300 * 10);
  ExpectAllOnce();
  status = Status();
  for (const auto& writer : status["writers"]) EXPECT_EQ(writer["state"], "stored");

  EXPECT_EQ(Upload(spool_), "exit 0");
  EXPECT_EQ(said_, absl::StrCat("Nothing to send: all that ", spool_, " holds is stored.\n"));
  ExpectAllOnce();
}

TEST_F(UploadTest, StatusSaysWhichMasterIsNotReachedAndWhy) {
  StartAgent();
  Record(0, 10);
  EXPECT_TRUE(Eventually(
      [&] {
        return absl::StrContains(Status()["advice"].dump(),
                                 "127.0.0.1:1 takes nothing (Connection refused)");
      },
      absl::Seconds(20)))
      << Status().dump(2);
  StopAgent();
}

TEST_F(UploadTest, GoesOnWhereAMasterDiedInBetween) {
  StartAgent();
  Record(0, 4000);
  StopAgent();
  // Dies with a commit that it never acked.
  StartMaster({}, "after_commit_before_ack=exit");
  EXPECT_EQ(Upload(spool_, {"--timeout", "2s"}), "exit 75") << said_;
  EXPECT_THAT(said_, HasSubstr("no ack came in time. Nothing of it is lost"));
  EXPECT_FALSE(master_->running()) << "the test's own premise";
  ASSERT_TRUE(master_->StartAndWait()) << master_->LogTail();
  ASSERT_EQ(Upload(spool_, {"--json"}), "exit 0") << said_;
  EXPECT_EQ(nlohmann::json::parse(said_.substr(said_.find('{')))["writers_left"], 0);
  ExpectAllOnce();
}

TEST_F(UploadTest, ACopyIsSentWithItsOwnersRightsAndStoresNothingTwice) {
  StartAgent();
  Record(0, 300);
  StopAgent();
  const std::string copy = scratch_ / "copy";
  fs::copy(spool_, copy, fs::copy_options::recursive);
  StartMaster();
  EXPECT_EQ(Upload(spool_), "exit 0") << said_;
  fs::permissions(copy, fs::perms::owner_all | fs::perms::group_exec);
  EXPECT_EQ(Upload(copy), "exit 1") << said_;
  EXPECT_THAT(said_, HasSubstr("may be entered by others (chmod 700 it)"));
  fs::permissions(copy, fs::perms::owner_all);
  if (geteuid() == 0) GiveAway(copy);
  EXPECT_EQ(Upload(copy), "exit 0") << said_;
  ExpectAllOnce();
  for (const auto& entry : fs::recursive_directory_iterator(copy)) {
    struct stat found {};
    ASSERT_EQ(lstat(entry.path().c_str(), &found), 0);
    EXPECT_EQ(found.st_uid, geteuid() == 0 ? kSomebody : geteuid()) << entry.path();
  }
}

// A user's notes name what his uploader should read.
TEST_F(UploadTest, AnothersIsSentWithNoRightThatIsRoots) {
  if (geteuid() != 0) GTEST_SKIP() << "only root has more rights than the owner";
  const RootsGroup group;
  Record(0, 10);
  const std::string secret = scratch_ / "secret.pftrace";
  std::ofstream(secret) << "a secret of root's group";
  fs::permissions(secret, fs::perms(0640));
  fs::create_symlink(secret, spool_ + "/linked.pftrace");
  LeaveTraceNote("named", secret);
  LeaveTraceNote("linked", spool_ + "/linked.pftrace");
  GiveAway(spool_);
  StartMaster();
  master_->Pause();
  ChildProcess upload;
  upload.Start({BuiltProgram("stepwell"), "upload", spool_, "--server", master_->grpc_address(),
                "--named-files"},
               {}, scratch_ / "upload.log");
  std::string rights;
  EXPECT_TRUE(Eventually(
      [&] {
        std::ifstream file(absl::StrCat("/proc/", upload.pid(), "/status"));
        rights.assign(std::istreambuf_iterator<char>(file), {});
        return absl::StrContains(rights, "Uid:\t54321\t54321\t54321\t54321\n");
      },
      absl::Seconds(20)))
      << rights;
  EXPECT_THAT(rights, AllOf(HasSubstr("Groups:\t \n"), HasSubstr("CapEff:\t0000000000000000\n"),
                            ::testing::Not(HasSubstr("Gid:\t0"))));
  master_->Continue();
  EXPECT_EQ(upload.Wait(absl::Seconds(60)), "exit 1") << Log("upload.log");
  ExpectAllOnce();
  EXPECT_THAT(Log("upload.log"), HasSubstr("trace_not_uploaded"));
  EXPECT_THAT(Log("upload.log"), HasSubstr("2 traces given up: "));
  EXPECT_EQ(QueryNumber("select count(*) from stepwell.traces where $1 = 1", 1), 0);
  EXPECT_TRUE(fs::exists(secret));
}

// A copy belongs to who made it, and so do the files that another's notes in it name then.
TEST_F(UploadTest, OfACopyNoFileIsReadOrRemovedThatOnlyItsNotesName) {
  Record(0, 10);
  const std::string own = scratch_ / "own.pftrace";
  std::ofstream(own) << "what the uploader alone may read";
  const std::string folder = scratch_ / "folder";
  fs::create_directory(folder);
  std::ofstream(folder + "/linked.pftrace") << "the same";
  const std::string traces = fs::canonical(spool_).string() + "/f1/traces";
  LeaveTraceNote("named", own);
  LeaveTraceNote("dots", traces + "/stepwell-traces-x/../../../../own.pftrace");
  fs::create_directory_symlink(folder, traces + "/stepwell-traces-y");
  LeaveTraceNote("linked", traces + "/stepwell-traces-y/linked.pftrace");
  fs::create_directory(traces + "/stepwell-traces-z");
  std::ofstream(traces + "/stepwell-traces-z/held.pftrace") << std::string("\x0a\x02\x08\x01", 4);
  LeaveTraceNote("held", traces + "/stepwell-traces-z/held.pftrace");
  StartMaster();
  EXPECT_EQ(Upload(spool_), "exit 1") << said_;
  ExpectAllOnce();
  EXPECT_TRUE(fs::exists(own));
  EXPECT_TRUE(fs::exists(folder + "/linked.pftrace"));
  EXPECT_EQ(QueryNumber("select count(*) from stepwell.traces where $1 = 1", 1), 1) << said_;
  for (const char* name : {"own.pftrace", "linked.pftrace"}) EXPECT_THAT(said_, HasSubstr(name));
  EXPECT_THAT(said_, HasSubstr("--named-files sends what the notes there name"));
  EXPECT_FALSE(fs::exists(traces + "/stepwell-traces-z/held.pftrace"));
}

// The notes name where their files were written, which is another place; the files came along.
TEST_F(UploadTest, SendsTheTracesOfACopyAndLeavesTheOthers) {
  Record(0, 10);
  const std::string traces = fs::canonical(spool_).string() + "/f1/traces";
  LeaveTraceNote("held", traces + "/stepwell-traces-z/held.pftrace");
  fs::create_directory(traces + "/stepwell-traces-z");
  std::ofstream(traces + "/stepwell-traces-z/held.pftrace") << std::string("\x0a\x02\x08\x01", 4);
  const std::string copy = scratch_ / "copy";
  fs::copy(spool_, copy, fs::copy_options::recursive);
  StartMaster();
  EXPECT_EQ(Upload(copy), "exit 0") << said_;
  ExpectAllOnce();
  EXPECT_EQ(QueryNumber("select count(*) from stepwell.traces where $1 = 1", 1), 1) << said_;
  EXPECT_FALSE(fs::exists(copy + "/f1/traces/stepwell-traces-z/held.pftrace"));
  EXPECT_TRUE(fs::exists(traces + "/stepwell-traces-z/held.pftrace"));
}

// The files of some may have been removed meanwhile: that is no success, and no reason to come again.
TEST_F(UploadTest, OfEachTraceItSaysWhatBecameOfIt) {
  Record(0, 10);
  const std::string traces = fs::canonical(spool_).string() + "/f1/traces";
  LeaveTraceNote("held", traces + "/stepwell-traces-z/held.pftrace");
  fs::create_directory(traces + "/stepwell-traces-z");
  std::ofstream(traces + "/stepwell-traces-z/held.pftrace") << std::string("\x0a\x02\x08\x01", 4);
  LeaveTraceNote("kept-no-longer", scratch_ / "ep0-ba10-rank0.pftrace");
  LeaveTraceNote("of-another-machine", scratch_ / "none/ep0-ba10-rank0.pftrace");
  LeaveTraceNote("recorded", scratch_ / "recording-rank0-0.pftrace");
  LeaveTraceNote("recorded-elsewhere", scratch_ / "none/recording-rank0-0.pftrace");
  for (const char* name : {"recorded", "recorded-elsewhere"}) {
    const std::string note = traces + "/" + name;
    fs::rename(note + ".json", note + ".recording");
  }
  StartMaster();
  fs::create_directory(traces + "/odd.json");
  EXPECT_EQ(Upload(spool_, {"--named-files", "--json"}), "exit 1") << said_;
  const nlohmann::json told = nlohmann::json::parse(said_.substr(said_.find("{\n")));
  EXPECT_EQ(told["traces_sent"], 1);
  EXPECT_EQ(told["traces_gone"], 3);
  EXPECT_EQ(told["traces_left"], 0);
  EXPECT_EQ(told["traces_given_up"], 0);
  // As of a disk that is not mounted: it stays until somebody sees to it.
  EXPECT_EQ(told["traces_absent"], 1);
  EXPECT_TRUE(fs::exists(traces + "/recorded-elsewhere.recording"));
  fs::create_directory(scratch_ / "none");
  EXPECT_EQ(Upload(spool_, {"--named-files"}), "exit 0") << said_;
  EXPECT_THAT(said_, HasSubstr("1 trace not sent: the file is not there any more"));
  fs::rename(traces, scratch_ / "away");
  fs::create_directory_symlink(scratch_ / "away", traces);
  EXPECT_EQ(Upload(spool_), "exit 1") << said_;
  EXPECT_THAT(said_, HasSubstr("1 directory cannot be read (traces: "));
}

TEST_F(UploadTest, TracesOfAWriterThatIsRefusedAreNoReasonToComeAgain) {
  Record(0, 10);
  StartMaster();
  EXPECT_EQ(Upload(spool_), "exit 0") << said_;
  const std::string trial =
      absl::StrCat(QueryNumber("select max(trial_id) from trials where $1 = 1", 1));
  EXPECT_EQ(Run({"admin", "archive", "id:" + trial, "--server", master_->grpc_address()}), "exit 0")
      << said_;
  Record(1, 10);
  const std::string traces = fs::canonical(spool_).string() + "/f1/traces";
  LeaveTraceNote("held", traces + "/stepwell-traces-z/held.pftrace");
  fs::create_directory(traces + "/stepwell-traces-z");
  std::ofstream(traces + "/stepwell-traces-z/held.pftrace") << std::string("\x0a\x02\x08\x01", 4);
  EXPECT_EQ(Upload(spool_, {"--timeout", "3s"}), "exit 1") << said_;
  EXPECT_THAT(said_, HasSubstr("1 writer refused by the master (TRIAL_ARCHIVED"));
  EXPECT_THAT(said_, HasSubstr("1 trace not taken by the master ("));
  EXPECT_TRUE(fs::exists(traces + "/stepwell-traces-z/held.pftrace"));
}

TEST_F(UploadTest, SendsWhatATrialRecordedOffline) {
  StartMaster();
  agent_.Start({BuiltProgram("stepwell"), "agent", "--server", master_->grpc_address(),
                "--spool-dir", spool_},
               {}, scratch_ / "agent.log");
  Record(0, 300, {{"STEPWELL_OFFLINE", "1"}});
  EXPECT_EQ(Upload(spool_), "exit 75") << "this agent goes on: a person started it";
  EXPECT_THAT(said_, HasSubstr(absl::StrCat("an agent (process ", agent_.pid(), ") serves ", spool_,
                                            " and sends none of it: it was recorded offline")));
  StopAgent();
  EXPECT_THAT(Log("agent.log"), HasSubstr("all_acked=false"));
  EXPECT_EQ(QueryNumber("select count(*) from trials where $1 = 1", 1), 0) << "nothing was sent";
  EXPECT_EQ(Status()["writers"][0]["server"], "offline");
  EXPECT_EQ(Upload(spool_), "exit 0") << said_;
  ExpectAllOnce();
}

TEST_F(UploadTest, EndsAtASignalWhileAMasterHangs) {
  StartMaster();
  Record(0, 10);
  master_->Pause();
  ChildProcess upload;
  upload.Start({BuiltProgram("stepwell"), "upload", spool_, "--server", master_->grpc_address()},
               {}, scratch_ / "upload.log");
  // It takes signals itself once it asks.
  EXPECT_TRUE(Eventually(
      [&] {
        std::error_code gone;
        for (const auto& task :
             fs::directory_iterator(absl::StrCat("/proc/", upload.pid(), "/task"), gone)) {
          std::ifstream file(task.path() / "comm");
          std::string name;
          if (std::getline(file, name) && name == "stepwell-upload") return true;
        }
        return false;
      },
      absl::Seconds(20)));
  upload.Signal(SIGINT);
  EXPECT_EQ(upload.Wait(absl::Seconds(20)), "exit 75") << Log("upload.log");
  EXPECT_THAT(Log("upload.log"), HasSubstr("stopped"));
  master_->Continue();
  EXPECT_EQ(Upload(spool_), "exit 0") << said_;
  ExpectAllOnce();
}

TEST_F(UploadTest, SaysWhatItCannotSend) {
  EXPECT_EQ(Run({"upload", scratch_ / "none"}), "exit 66");
  EXPECT_EQ(Run({"upload", scratch_.path()}), "exit 66");
  EXPECT_THAT(said_, HasSubstr("is no spool directory: it has no 'f1'"));
  std::ofstream(scratch_ / "file") << "no directory";
  EXPECT_EQ(Run({"upload", scratch_ / "file"}), "exit 66");
  EXPECT_EQ(Run({"upload"}), "exit 64");
  Record(0, 10);
  EXPECT_EQ(Run({"upload", spool_, "--server", kNobody}), "exit 69");
  EXPECT_THAT(said_, HasSubstr("no master answers at 127.0.0.1:1"));
  EXPECT_EQ(Status()["writers"][0]["state"], "ended") << "nothing has changed";
  ChildProcess trainer;
  trainer.Start(
      {BuiltProgram("fault_trainer"), "--spool-dir", spool_, "--log", scratch_ / "ledger"}, {},
      scratch_ / "trainer.log");
  EXPECT_TRUE(Eventually(
      [&] {
        return Run({"upload", spool_, "--server", kNobody}) == "exit 75";
      },
      absl::Seconds(20)));
  EXPECT_THAT(said_, HasSubstr(absl::StrCat("lives (", trainer.pid(), ")")));
}

TEST_F(UploadTest, StatusOfADirectoryThatIsNoSpoolSaysSo) {
  fs::create_directory(scratch_ / "empty");
  std::ofstream(scratch_ / "file") << "no directory";
  const struct {
    const char* name;
    const char* says;
  } rows[] = {
      {"none", "none: No such file or directory\n"},
      {"empty", "empty is no spool directory: it has no 'f1'\n"},
      {"file", "file is no directory, or a link to one\n"},
  };
  for (const auto& row : rows) {
    for (const bool as_json : {false, true}) {
      SCOPED_TRACE(absl::StrCat(row.name, as_json ? " as JSON" : ""));
      std::vector<std::string> words = {"agent", "status", "--spool-dir", scratch_ / row.name};
      if (as_json) words.emplace_back("--json");
      EXPECT_EQ(Run(words), "exit 66");
      EXPECT_THAT(said_, AllOf(StartsWith("stepwell agent status: "), EndsWith(row.says)));
    }
  }
}

TEST_F(UploadTest, StatusIsOneLineWhereThereIsNothing) {
  // Where recorders of this user write may be anything; here nothing is.
  const std::map<std::string, std::string> elsewhere = {{"STEPWELL_SPOOL_DIR", scratch_ / "none"}};
  EXPECT_EQ(Run({"agent", "status"}, elsewhere), "exit 0");
  EXPECT_EQ(said_, absl::StrCat("Nothing waits here: there is no spool directory of yours at ",
                                scratch_ / "none",
                                " (STEPWELL_SPOOL_DIR). --spool-dir DIR looks "
                                "elsewhere.\n"));
  EXPECT_EQ(Run({"agent", "status", "--help"}), "exit 0");
  EXPECT_THAT(said_, HasSubstr("Examples:"));
  EXPECT_EQ(Run({"agent", "status", "extra"}), "exit 64");
}

}  // namespace
}  // namespace stepwell::testing
