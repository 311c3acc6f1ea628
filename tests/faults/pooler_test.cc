// PgBouncer, pooling by transaction, between the master and its PostgreSQL: consecutive transactions of one
// connection are another server's each, names of statements are lost. The master is killed wherever the first rows of the
// fault matrix kill it, the pooler in whatever passes; the same must hold as without.
#include <gtest/gtest.h>
#include <libpq-fe.h>
#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "tests/faults/database_text.h"
#include "tests/faults/master_client.h"
#include "tests/faults/scene.h"
#include "tests/support/postgres.h"

namespace stepwell::faults {
namespace {

// "" where there is none.
std::string FindPgBouncer() {
  const char* path = std::getenv("PATH");
  std::vector<std::string> folders = absl::StrSplit(path == nullptr ? "" : path, ':');
  folders.push_back("/usr/sbin");
  for (const std::string& folder : folders) {
    const std::string program = folder + "/pgbouncer";
    if (access(program.c_str(), X_OK) == 0) return program;
  }
  return "";
}

std::map<std::string, std::string> PartsOf(const std::string& url) {
  std::map<std::string, std::string> parts;
  PQconninfoOption* options = PQconninfoParse(url.c_str(), nullptr);
  for (const PQconninfoOption* option = options; option != nullptr && option->keyword != nullptr;
       ++option) {
    if (option->val != nullptr) parts[option->keyword] = option->val;
  }
  PQconninfoFree(options);
  return parts;
}

class Pooler {
 public:
  // `folder` is made. The pooler runs as the server's own account: as root it would not.
  Pooler(std::string program, const std::string& url, std::string folder)
      : program_(std::move(program)), folder_(std::move(folder)), parts_(PartsOf(url)) {
    struct stat server {};
    mkdir(folder_.c_str(), 0755);
    if (stat(parts_["host"].c_str(), &server) == 0) account_ = server.st_uid;
    EXPECT_EQ(chown(folder_.c_str(), account_, static_cast<gid_t>(-1)), 0);
    const std::string port = parts_["port"].empty() ? "5432" : parts_["port"];
    std::ofstream(folder_ + "/pooler.ini")
        << "[databases]\n* = host=" << parts_["host"] << " port=" << port
        << " user=" << parts_["user"] << "\n[pgbouncer]\npool_mode = transaction\nauth_type = any\n"
        << "listen_addr =\nlisten_port = 6432\nunix_socket_dir = " << folder_
        << "\nmax_client_conn = 200\ndefault_pool_size = 15\n";
  }
  void Start() {
    std::vector<std::string> words;
    if (geteuid() == 0) {
      words = {"/usr/bin/setpriv", absl::StrCat("--reuid=", account_), "--clear-groups",
               "--pdeathsig=KILL"};
    }
    words.insert(words.end(), {program_, folder_ + "/pooler.ini"});
    child_.Start(words, {}, folder_ + ".log");
  }
  void Kill() { child_.Kill(); }
  std::string url() const {
    return absl::StrCat("postgresql://", parts_.at("user"), "@/", parts_.at("dbname"),
                        "?host=", folder_, "&port=6432");
  }
  std::string log() const {
    std::ifstream file(folder_ + ".log");
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    return text.substr(text.size() - std::min<std::size_t>(text.size(), 3000));
  }

 private:
  const std::string program_;
  const std::string folder_;
  std::map<std::string, std::string> parts_;
  uid_t account_ = geteuid();
  ChildProcess child_;
};

// Where the master dies, under load.
struct Point {
  const char* name;
  // So many passes are let through before.
  int skip = 1;
  // A writer comes with series that nobody has defined.
  bool has_newcomer = false;
  // A day goes by before: there are leaves to make.
  bool is_next_day = false;
};
constexpr Point kPoints[] = {{"commit_before_begin"},
                             {"commit_after_guard"},
                             {"commit_mid_copy"},
                             {"commit_before_commit"},
                             {"commit_after_commit"},
                             {"after_commit_before_ack"},
                             {"open_before_commit"},
                             {"open_after_commit"},
                             {"define_before_commit", 0, true},
                             {"define_after_commit", 0, true},
                             {"attach_before_commit", 1, false, true},
                             {"attach_after_commit", 1, false, true}};

// It dies in and after migrations of an empty database until all are applied. How often.
int DieInMigrations(Scene& scene, MasterProcess& master) {
  int kills = 0;
  for (;; ++kills) {
    const char* point = kills % 2 == 0 ? "migration_before_commit" : "migration_after_commit";
    const bool is_ready = master.StartAndWait({absl::StrCat(point, "=exit@", scene.Random(2, 8))});
    if (is_ready || master.Ending() != "killed by signal 9" || kills == 100) break;
  }
  scene.Say(absl::StrCat(kills, " deaths in migrations"));
  return kills;
}

TEST(PoolerTest, BehindPgBouncerKillsOfMasterAndPoolerLoseAndDoubleNothing) {
  const std::string program = FindPgBouncer();
  if (program.empty()) {
    GTEST_SKIP() << "there is no pgbouncer on PATH: tests/run.sh fetches it, docs/reliability.md "
                    "(Seen) says how by hand";
  }
  Scene scene("pooler");
  const std::string url = testing::TestPostgres::Get().Durable().FreshDatabase();
  Pooler pooler(program, url, scene.path("pooler"));
  pooler.Start();
  ASSERT_TRUE(scene.Await("PgBouncer answers", absl::Seconds(60), [&] {
    return DatabaseText(pooler.url(), "select 7") == "7";
  })) << pooler.log();
  MasterProcess master({scene.path(""), "master", pooler.url(), {"--fold-interval", "500ms"}});
  MasterClient client(master.grpc_address());
  const auto committed = [&] {
    const auto status = client.Status();
    return status ? status->chunks_committed() : 0;
  };
  const auto await_commits = [&] {
    const std::uint64_t first = committed();
    ASSERT_TRUE(
        scene.Await("20 chunks", absl::Seconds(60), [&] { return committed() >= first + 20; }))
        << scene.Logs() << master.LogTail() << pooler.log();
  };
  EXPECT_GE(DieInMigrations(scene, master), 2);
  ASSERT_TRUE(master.running()) << master.LogTail() << pooler.log();
  scene.StartAgent(master.grpc_address());
  for (const int rank : {0, 1}) scene.StartTrainer(rank, {{"--world-size", "2"}});
  scene.StartRawWriter(10, master.grpc_address());
  ASSERT_NO_FATAL_FAILURE(await_commits());
  master.Kill();  // whatever it has acked
  int rank = 40;
  for (const Point& point : kPoints) {
    if (point.has_newcomer) {
      scene.StartRawWriter(rank, master.grpc_address(),
                           {{"--chunks", "3"}, {"--series", absl::StrCat(rank - 38)}});
      ++rank;
    }
    if (point.is_next_day) {
      ASSERT_EQ(MakeOlder(url, {.days = 1}), "");
    }
    // It may be over before it is known to be ready.
    master.Start({.failpoints = absl::StrCat(point.name, "=exit@", point.skip)});
    ASSERT_TRUE(scene.Await(absl::StrCat("death at ", point.name), absl::Seconds(90), [&] {
      return !master.running();
    })) << master.LogTail();
    EXPECT_GT(master.CountInLog(absl::StrCat("failpoint ", point.name, " exit")), 0);
  }
  ASSERT_TRUE(master.StartAndWait()) << master.LogTail() << pooler.log();
  for (int i = 0; i < 2; ++i) {
    ASSERT_NO_FATAL_FAILURE(await_commits());
    pooler.Kill();
    scene.Say("PgBouncer is killed");
    pooler.Start();
  }
  ASSERT_NO_FATAL_FAILURE(await_commits());
  scene.StopProducers(absl::Seconds(60));
  const auto status = client.Status();
  ASSERT_TRUE(status);
  EXPECT_EQ(status->chunks_rejected(), 0U);
  const Verdict verdict = scene.ExpectExact(master, Demand::kRecorded);
  EXPECT_EQ(verdict.declared_count, 0U);
  EXPECT_EQ(master.Stop(), "exit 0") << master.LogTail();
}

}  // namespace
}  // namespace stepwell::faults
