// What `stepwell serve` says, and how it exits, when what it was told cannot be; its settings.
#include <sys/stat.h>

#include <filesystem>

#include "absl/time/clock.h"
#include "base/tls/tls_authority.h"
#include "nlohmann/json.hpp"
#include "server/host_port.h"
#include "server/listen_socket.h"
#include "tests/e2e/startup.h"

namespace stepwell::testing {
namespace {

using ::testing::StartsWith;

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
  for (const std::string flag : {"--grpc-listen", "--http-listen"}) {
    EXPECT_EQ(Serve({flag + "=0.0.0.0:0"}), "exit 78");
    EXPECT_EQ(said_, "stepwell serve: " + flag +
                         ": refusing to listen on 0.0.0.0:0: other machines could reach it without"
                         " authentication. Listen on 127.0.0.1, give --tls-cert and --tls-key, with"
                         " which callers are asked for a token (beside --tls-client-ca name its"
                         " --token-file, too), or pass --insecure-allow-remote if the network is"
                         " trusted\n");
  }
}

// Who shows a certificate is known; what he may do there nobody says.
TEST_F(StartupTest, AddressThatOthersReachByTheirCertificatesAlone) {
  const absl::Time now = absl::Now();
  const auto ca = TlsAuthority::Make("ca", now, now + absl::Hours(1));
  const auto own = ca->Sign({TlsSide::kServer, "s", {"localhost"}, now, now + absl::Hours(1)});
  std::ofstream(scratch_ / "ca.pem") << ca->own().cert_pem;
  std::ofstream(scratch_ / "server.pem") << own->cert_pem;
  std::ofstream(scratch_ / "server.key") << own->key_pem;
  for (const std::string flag : {"--grpc-listen", "--http-listen"}) {
    EXPECT_EQ(Serve({"--data-dir", scratch_ / "data", "--tls-cert", scratch_ / "server.pem",
                     "--tls-key", scratch_ / "server.key", "--tls-client-ca", scratch_ / "ca.pem",
                     flag + "=0.0.0.0:0"}),
              "exit 78");
    EXPECT_EQ(said_, "stepwell serve: " + flag +
                         ": refusing to listen on 0.0.0.0:0: other machines could reach it without"
                         " a token. Listen on 127.0.0.1, name a --token-file, or pass"
                         " --insecure-allow-remote if the network is trusted\n");
  }
}

TEST_F(StartupTest, AddressThatOthersReachWhereTheOperatorSaysSo) {
  StartMaster({"--insecure-allow-remote", "--grpc-listen=0.0.0.0:0", "--http-listen=0.0.0.0:0"});
  const auto ready = nlohmann::json::parse(ReadAll(scratch_ / "master.ready"));
  for (const char* port : {"grpc", "http"}) {
    EXPECT_THAT(ready.value(port, ""), StartsWith("0.0.0.0:")) << port;
  }
}

TEST_F(StartupTest, CertificatesThatCannotBe) {
  const absl::Time now = absl::Now();
  const auto ca = TlsAuthority::Make("ca", now, now + absl::Hours(1));
  const auto server = ca->Sign({TlsSide::kServer, "s", {"localhost"}, now, now + absl::Hours(1)});
  const auto client = ca->Sign({TlsSide::kClient, "c", {}, now, now + absl::Hours(1)});
  std::ofstream(scratch_ / "server.pem") << server->cert_pem;
  std::ofstream(scratch_ / "server.key") << server->key_pem;
  std::ofstream(scratch_ / "client.pem") << client->cert_pem;
  std::ofstream(scratch_ / "client.key") << client->key_pem;
  std::ofstream(scratch_ / "empty");
  struct Row {
    std::vector<std::string> flags;
    std::string message;
  };
  const auto pair = [&](const std::string& cert, const std::string& key) {
    return std::vector<std::string>{"--tls-cert", scratch_ / cert, "--tls-key", scratch_ / key};
  };
  for (const Row& row : {
           Row{{"--tls-cert", scratch_ / "server.pem"},
               "--tls-cert and --tls-key go together, and --tls-client-ca with both"},
           Row{{"--tls-client-ca", scratch_ / "server.pem"},
               "--tls-cert and --tls-key go together, and --tls-client-ca with both"},
           Row{{"--token-file", scratch_ / "token"},
               "--token-file wants --tls-cert and --tls-key: in plain everybody on the way reads "
               "the"
               " token"},
           Row{pair("none.pem", "server.key"), "certificates: --tls-cert " +
                                                   (scratch_ / "none.pem") +
                                                   ": No such file or directory"},
           Row{pair("empty", "server.key"),
               "certificates: --tls-cert " + (scratch_ / "empty") + ": no certificate in PEM"},
           Row{pair("server.pem", "empty"),
               "certificates: --tls-key " + (scratch_ / "empty") + ": no private key in PEM"},
           Row{pair("server.pem", "client.key"),
               "certificates: --tls-key " + (scratch_ / "client.key") + ": is not the key of " +
                   (scratch_ / "server.pem")},
           Row{pair("client.pem", "client.key"), "certificates: --tls-cert " +
                                                     (scratch_ / "client.pem") +
                                                     ": is no certificate of a server"},
       }) {
    std::vector<std::string> flags = anywhere_;
    flags.insert(flags.end(), row.flags.begin(), row.flags.end());
    EXPECT_EQ(Serve(flags), "exit 78");
    EXPECT_EQ(said_, "stepwell serve: " + row.message + "\n");
  }
}

// Each kind of setting, from each place that gives one.
TEST_F(StartupTest, ValuesThatAreNotAllowed) {
  std::ofstream(scratch_ / "conf") << "# one\nfold-bytes = 7\n";
  struct Row {
    std::vector<std::string> flags;
    std::map<std::string, std::string> environment;
    int exit_code;
    std::string message;
  };
  const std::string duration =
      "allowed are durations from 10ms to 10m, written as 500ms, 10s or 5m";
  const std::string bytes = "allowed are 0, and bytes from 1MiB to ";
  const std::string written = ", written as 64MiB, 1.5GB or 67108864";
  for (const Row& row : {
           Row{{"--queue-bytes=1x"}, {}, 64, "--queue-bytes is '1x', " + bytes + "4GiB" + written},
           Row{{"--streams-max=-1"}, {}, 64, "--streams-max is '-1', allowed are 1 to 4096"},
           Row{{"--fold-interval=7"}, {}, 64, "--fold-interval is '7', " + duration},
           Row{{"--fold-interval", "1h"}, {}, 64, "--fold-interval is '1h', " + duration},
           Row{{"--insecure-allow-remote=maybe"},
               {},
               64,
               "--insecure-allow-remote is 'maybe', allowed are true, false"},
           Row{{"--log-level=loud"},
               {},
               64,
               "--log-level is 'loud', allowed are debug, info, warning, error"},
           Row{{"--grpc-listen=nohost"},
               {},
               64,
               "--grpc-listen: 'nohost' is not HOST:PORT with a port of 0 to 65535, as in"
               " 127.0.0.1:7817 or [::1]:0"},
           Row{{"--http-listen=127.0.0.1:99999"},
               {},
               64,
               "--http-listen: '127.0.0.1:99999' is not HOST:PORT with a port of 0 to 65535, as in"
               " 127.0.0.1:7817 or [::1]:0"},
           Row{{"--ready-file"},
               {},
               64,
               "--ready-file needs a value: JSON with grpc, http, database_url and pid, written"
               " once ready; one in the data directory is written anyway"},
           Row{{"extra"},
               {},
               64,
               "unexpected argument 'extra'; settings are given as --name value"},
           Row{{},
               {{"STEPWELL_QUEUE_BYTES", "7"}},
               78,
               "STEPWELL_QUEUE_BYTES is '7', " + bytes + "4GiB" + written},
           Row{{"--config", scratch_ / "conf"},
               {},
               78,
               (scratch_ / "conf") + ":2: fold-bytes is '7', " + bytes + "256MiB" + written},
           Row{{"--memory-bytes=511MiB"},
               {},
               64,
               "--memory-bytes is '511MiB', allowed are bytes from 512MiB to 1TiB" + written},
           Row{{"--memory-bytes=512MiB", "--queue-bytes=256MiB", "--data-dir", scratch_ / "data"},
               {},
               78,
               "memory-bytes is 512MiB, allowed are at least 559MiB beside queue-bytes 256MiB, "
               "streams-max 256"},
           Row{{"--config", scratch_ / "none"},
               {},
               78,
               "--config: " + (scratch_ / "none") + ": No such file or directory"},
       }) {
    SCOPED_TRACE(row.message);
    EXPECT_EQ(Serve(row.flags, row.environment), absl::StrCat("exit ", row.exit_code));
    EXPECT_EQ(said_, "stepwell serve: " + row.message + "\n" +
                         (row.exit_code == 64 ? "Try: stepwell serve --help\n" : ""));
  }
}

TEST_F(StartupTest, PortInUse) {
  const auto held = ListenSocket::Open("127.0.0.1", 0);
  ASSERT_TRUE(held.ok());
  const std::string address = HostPortText("127.0.0.1", held->port());
  for (const std::string flag : {"--grpc-listen", "--http-listen"}) {
    const std::string other = flag == "--grpc-listen" ? "--http-listen" : "--grpc-listen";
    EXPECT_EQ(
        Serve({flag + "=" + address, other + "=127.0.0.1:0", "--data-dir=" + (scratch_ / "data")}),
        "exit 78");
    EXPECT_EQ(said_, "stepwell serve: " + flag + ": cannot listen on " + address +
                         ": the port is in use by another process; choose another, or 0\n");
    EXPECT_NE(access((scratch_ / "data").c_str(), F_OK), 0) << "nothing was begun";
  }
}

TEST_F(StartupTest, DataDirectoryThatIsAFile) {
  std::ofstream(scratch_ / "file") << "x";
  EXPECT_EQ(Serve(Anywhere("--data-dir=" + (scratch_ / "file"))), "exit 78");
  EXPECT_EQ(said_, "stepwell serve: --data-dir " + (scratch_ / "file") +
                       ": Not a directory; allowed is a directory that user id " +
                       absl::StrCat(geteuid()) + " may read and write, or one that it may make\n");
}

TEST_F(StartupTest, DataDirectoryOfSomebodyElse) {
  const std::string directory = scratch_ / "etc";
  ASSERT_EQ(mkdir(directory.c_str(), 0755), 0);
  std::ofstream(directory + "/hosts") << "x";
  EXPECT_EQ(Serve(Anywhere("--data-dir=" + directory)), "exit 78");
  EXPECT_EQ(said_, "stepwell serve: --data-dir " + directory +
                       ": is no master's, it has hosts; allowed is a new or empty directory, or one"
                       " that a master made\n");
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(directory), {}), 1)
      << "nothing was begun";
  // Nor a token made, within TLS.
  const absl::Time now = absl::Now();
  const auto own = TlsAuthority::Make("ca", now, now + absl::Hours(1))
                       ->Sign({TlsSide::kServer, "s", {"localhost"}, now, now + absl::Hours(1)});
  std::ofstream(scratch_ / "server.pem") << own->cert_pem;
  std::ofstream(scratch_ / "server.key") << own->key_pem;
  std::vector<std::string> flags = Anywhere("--data-dir=" + directory);
  flags.insert(flags.end(),
               {"--tls-cert", scratch_ / "server.pem", "--tls-key", scratch_ / "server.key"});
  EXPECT_EQ(Serve(flags), "exit 78");
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(directory), {}), 1);
}

// A database that was moved aside, as we advise at times, and what lies there before a first start.
TEST_F(StartupTest, DataDirectoryWithAMastersOwnThings) {
  const std::string directory = scratch_ / "data";
  const auto dry_run = [&] { return Serve({"--dry-run", "--data-dir=" + directory}); };
  for (const char* name : {"pg.15", "certs", "log"}) {
    std::filesystem::create_directories(directory + "/" + name);
    std::ofstream(directory + "/master.log") << "x";
    EXPECT_EQ(dry_run(), "exit 0") << said_;
    std::filesystem::remove_all(directory);
  }
  std::filesystem::create_directories(directory);
  std::ofstream(directory + "/master-id") << "x";
  std::ofstream(directory + "/notes.txt") << "x";
  EXPECT_EQ(dry_run(), "exit 0") << said_;
}

TEST_F(StartupTest, DataDirectoryThatMayNotBeRead) {
  const std::string locked = scratch_ / "locked";
  ASSERT_EQ(mkdir(locked.c_str(), 0000), 0);
  uid_t uid = geteuid();
  if (uid == 0) {
    // Root may read everything: as somebody else, with a program that he reaches.
    uid = 65534;
    program_ = scratch_ / "stepwell";
    std::filesystem::copy_file(BuiltProgram("stepwell"), program_);
    prefix_ = {"/usr/bin/setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"};
    if (access(prefix_[0].c_str(), X_OK) != 0) GTEST_SKIP() << "no setpriv here";
  }
  const std::string allowed =
      absl::StrCat(": Permission denied; allowed is a directory that user id ", uid,
                   " may read and write, or one that it may make\n");
  EXPECT_EQ(Serve(Anywhere("--data-dir=" + locked)), "exit 78");
  EXPECT_EQ(said_, "stepwell serve: --data-dir " + locked + allowed);
  EXPECT_EQ(Serve(Anywhere("--data-dir=" + locked + "/within")), "exit 78");
  EXPECT_EQ(said_, "stepwell serve: --data-dir " + locked + "/within" + allowed);
}

TEST_F(StartupTest, DataDirectoryInUse) {
  StartMaster();
  EXPECT_EQ(Serve(Anywhere("--data-dir=" + master_->data_directory())), "exit 78");
  const auto ready = nlohmann::json::parse(ReadAll(scratch_ / "master.ready"));
  EXPECT_EQ(said_, absl::StrCat("stepwell serve: data directory ", master_->data_directory(),
                                " is in use by process ", ready.value("pid", 0),
                                "; stop that one, or choose another --data-dir\n"));
  EXPECT_THAT(master_->Get("/readyz"), StartsWith("HTTP/1.1 200")) << "and the first goes on";
}

TEST_F(StartupTest, PrintConfigAndHelp) {
  EXPECT_EQ(Serve({"--print-config", "--fold-interval=7s"}), "exit 0");
  EXPECT_NE(said_.find("fold-interval = \"7s\""), std::string::npos) << said_;
  EXPECT_EQ(Serve({"--help"}), "exit 0");
  EXPECT_NE(said_.find("Examples:"), std::string::npos);
}

}  // namespace
}  // namespace stepwell::testing
