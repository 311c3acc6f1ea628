// What `stepwell serve` says and how it exits when it cannot start; settings; standby.
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <sstream>

#include "server/listen_socket.h"
#include "tests/e2e/spine.h"
#include "tests/support/child_process.h"

namespace stepwell::testing {
namespace {

std::string ReadAll(const std::string& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

class StartupTest : public SpineTest {
 protected:
  // How `stepwell serve FLAGS...` ends; what it printed is in said_.
  std::string Serve(std::vector<std::string> flags,
                    const std::map<std::string, std::string>& environment = {}) {
    std::vector<std::string> words{BuiltProgram("stepwell"), "serve"};
    words.insert(words.end(), flags.begin(), flags.end());
    const std::string log = scratch_ / absl::StrCat("said-", ++count_);
    ChildProcess serve;
    serve.Start(words, environment, log);
    const std::string ending = serve.Wait(absl::Seconds(60));
    said_ = ReadAll(log);
    return ending;
  }

  int count_ = 0;
  std::string said_;
  const std::vector<std::string> anywhere_{"--grpc-listen=127.0.0.1:0",
                                           "--http-listen=127.0.0.1:0"};
  std::vector<std::string> Anywhere(const std::string& more) {
    std::vector<std::string> flags = anywhere_;
    flags.push_back(more);
    return flags;
  }
};

TEST_F(StartupTest, UnknownFlag) {
  EXPECT_EQ(Serve({"--data-dirr", "x"}), "exit 64");
  EXPECT_EQ(said_,
            "stepwell serve: unknown flag '--data-dirr'; did you mean '--data-dir'?\n"
            "Try: stepwell serve --help\n");
}

TEST_F(StartupTest, UnknownKeyInTheFile) {
  std::ofstream(scratch_ / "conf") << "grpc-listn = \"127.0.0.1:0\"\n";
  EXPECT_EQ(Serve({"--config", scratch_ / "conf"}), "exit 78");
  EXPECT_EQ(said_, "stepwell serve: " + (scratch_ / "conf") +
                       ":1: unknown key 'grpc-listn'; did you mean 'grpc-listen'?\n");
}

TEST_F(StartupTest, AddressThatOthersReach) {
  EXPECT_EQ(Serve({"--grpc-listen=0.0.0.0:0"}), "exit 78");
  EXPECT_EQ(
      said_,
      "stepwell serve: refusing to listen on 0.0.0.0:0: other machines could reach it without"
      " authentication. Listen on 127.0.0.1, or pass --insecure-allow-remote if the network is"
      " trusted\n");
}

TEST_F(StartupTest, PortInUse) {
  const auto held = ListenSocket::Open("127.0.0.1", 0);
  ASSERT_TRUE(held.ok());
  const std::string address = HostPortText("127.0.0.1", held->port());
  EXPECT_EQ(Serve({"--grpc-listen=" + address, "--data-dir=" + (scratch_ / "data")}), "exit 78");
  EXPECT_EQ(said_, "stepwell serve: --grpc-listen: cannot listen on " + address +
                       ": the port is in use by another process; choose another, or 0\n");
  EXPECT_NE(access((scratch_ / "data").c_str(), F_OK), 0) << "nothing was begun";
}

TEST_F(StartupTest, BrokenDatabaseUrl) {
  EXPECT_EQ(Serve(Anywhere("--database-url=postgresql://u:secret@[::1")), "exit 78");
  EXPECT_NE(said_.find("stepwell serve: --database-url: "), std::string::npos) << said_;
  EXPECT_EQ(said_.find("secret"), std::string::npos) << said_;
}

TEST_F(StartupTest, BothDatabases) {
  EXPECT_EQ(Serve({"--grpc-listen=127.0.0.1:0", "--http-listen=127.0.0.1:0", "--data-dir=/tmp/x",
                   "--database-url=postgresql:///x"}),
            "exit 78");
  EXPECT_NE(said_.find("--data-dir and --database-url exclude each other"), std::string::npos);
}

TEST_F(StartupTest, DataDirectoryThatIsAFile) {
  std::ofstream(scratch_ / "file") << "x";
  EXPECT_EQ(Serve(Anywhere("--data-dir=" + (scratch_ / "file"))), "exit 78");
  EXPECT_NE(said_.find("data directory " + (scratch_ / "file")), std::string::npos) << said_;
}

TEST_F(StartupTest, NoPostgres) {
  EXPECT_EQ(Serve(Anywhere("--data-dir=" + (scratch_ / "data")),
                  {{"STEPWELL_PG_BINDIR", scratch_ / "nowhere"}}),
            "exit 78");
  EXPECT_NE(said_.find("nowhere"), std::string::npos) << said_;
}

TEST_F(StartupTest, DataDirectoryInUseAndNewerSchema) {
  StartMaster();
  EXPECT_EQ(Serve(Anywhere("--data-dir=" + master_->data_directory())), "exit 78");
  EXPECT_NE(said_.find("in use"), std::string::npos) << said_;

  auto connection = PgConnection::Open({.url = master_->database_url()});
  ASSERT_TRUE(connection.ok()) << connection.status();
  ASSERT_TRUE((*connection)
                  ->Exec("update stepwell.migrations set number = 999 where number ="
                         " (select max(number) from stepwell.migrations)")
                  .ok());
  EXPECT_EQ(Serve(Anywhere("--database-url=" + master_->database_url())), "exit 78");
  EXPECT_NE(said_.find("newer"), std::string::npos) << said_;
}

TEST_F(StartupTest, PrintConfigAndHelp) {
  EXPECT_EQ(Serve({"--print-config", "--fold-interval=7s"}), "exit 0");
  EXPECT_NE(said_.find("fold-interval = \"7s\""), std::string::npos) << said_;
  EXPECT_EQ(Serve({"--help"}), "exit 0");
  EXPECT_NE(said_.find("Examples:"), std::string::npos);
}

TEST_F(StartupTest, ASecondMasterStandsByAndTakesOver) {
  StartMaster();
  EXPECT_EQ(master_->Get("/readyz").substr(0, 12), "HTTP/1.1 200");
  MasterProcess::Options options;
  options.scratch = scratch_.path();
  options.name = "second";
  options.database_url = master_->database_url();
  options.flags = {"--master-id=second"};
  MasterProcess second(options);
  second.Start({});
  ASSERT_TRUE(
      Eventually([&] { return second.Get("/readyz").find("standby: ") != std::string::npos; },
                 absl::Seconds(30)))
      << second.LogTail();
  EXPECT_EQ(second.Get("/readyz").substr(0, 12), "HTTP/1.1 503");
  EXPECT_EQ(second.Get("/livez").substr(0, 12), "HTTP/1.1 200");
  const Uuid writer = Uuid::Random();
  std::int64_t trial_id = 0;
  {
    RawStream stream(*client_);
    trial_id = Open(stream, writer, "takeover").trial_id();
    ASSERT_TRUE(stream.Send(ChunkMessage(writer, 1, OneColumn(1, NowUs(), 1000, {1, 2}))));
    ASSERT_TRUE(stream.WaitAck(writer, 1).has_value());
    master_->Pause();
    ASSERT_TRUE(second.WaitReady(absl::Seconds(40))) << second.LogTail();
    IngestClient other(second.grpc_address());
    RawStream moved(other);
    EXPECT_EQ(Open(moved, writer, "takeover").committed_sequence(), 1U);
    ASSERT_TRUE(moved.Send(ChunkMessage(writer, 2, OneColumn(1, NowUs(), 1000, {3}))));
    ASSERT_TRUE(moved.WaitAck(writer, 2).has_value());
    // The former owner wakes up with this in its socket: it must not be stored there.
    stream.Send(ChunkMessage(writer, 2, OneColumn(1, NowUs(), 1000, {99})));
    master_->Continue();
    EXPECT_EQ(stream.Finish().error_code(), grpc::StatusCode::UNAVAILABLE) << master_->LogTail();
    ASSERT_TRUE(other.Flush().ok()) << second.LogTail();
  }
  EXPECT_TRUE(Eventually(
      [&] { return master_->Get("/readyz").find("standby: second") != std::string::npos; },
      absl::Seconds(20)))
      << master_->LogTail();
  const auto samples = Samples(trial_id, "value");
  ASSERT_EQ(samples.size(), 3U);
  EXPECT_EQ(samples.back().value, 3);
  EXPECT_EQ(second.Stop(), "exit 0") << second.LogTail();
}

}  // namespace
}  // namespace stepwell::testing
