// The private server on the real PostgreSQL of this machine: start, settings, crashes, orphans, and
// each refusal with its remedy.
#include "storage/private_postgres.h"
#include "base/steady_time.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pwd.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "storage/pg_connection.h"
#include "storage/private_postgres_binaries.h"
#include "storage/private_postgres_cluster.h"
#include "storage/private_postgres_files.h"
#include "storage/private_postgres_process.h"
#include "tests/support/postgres.h"
#include "tests/support/scratch_directory.h"
#include "tests/support/sql_of.h"

namespace stepwell {
namespace {

using ::testing::AllOf;
using testing::Connect;
using ::testing::HasSubstr;
using testing::ScratchDirectory;
using Phase = PrivatePostgres::Phase;

constexpr absl::Duration kPatience = absl::Seconds(60);

PrivatePostgres::Options SmallOptions(const std::string& directory) {
  return {.directory = directory,
          .shared_buffers_bytes = 16 << 20,
          .durability = PrivatePostgres::Options::Durability::kForTests,
          .settings = {{"max_connections", "20"}}};
}

absl::StatusOr<std::unique_ptr<PrivatePostgres>> TryOpen(const std::string& directory) {
  return PrivatePostgres::Open(SmallOptions(directory));
}

std::unique_ptr<PrivatePostgres> Open(const std::string& directory) {
  auto postgres = TryOpen(directory);
  EXPECT_TRUE(postgres.ok()) << postgres.status();
  return *std::move(postgres);
}

std::string Value(const std::string& url, const char* sql) {
  const auto result = Connect(url)->Exec(SqlOf(sql));
  EXPECT_TRUE(result.ok()) << sql << ": " << result.status();
  return result.ok() ? std::string(result->Text(0, 0)) : "";
}

template <typename Condition>
bool EventuallyWithin(absl::Duration patience, Condition condition) {
  const SteadyTime deadline = SteadyTime::Now() + patience;
  while (!deadline.HasPassed()) {
    if (condition()) return true;
    absl::SleepFor(absl::Milliseconds(5));
  }
  return false;
}

template <typename Condition>
bool Eventually(Condition condition) {
  return EventuallyWithin(kPatience, condition);
}

// A zombie, which its parent has not fetched yet, is dead.
bool IsAlive(int pid) {
  std::ifstream file(absl::StrCat("/proc/", pid, "/stat"));
  std::string number, name;
  char state = 'X';
  return file >> number >> name >> state && state != 'Z' && state != 'X';
}

mode_t ModeOf(const std::string& path) {
  struct stat found {};
  EXPECT_EQ(stat(path.c_str(), &found), 0) << path;
  return found.st_mode & 0777;
}

class PrivatePostgresTest : public ::testing::Test {
 protected:
  static void TearDownTestSuite() { ready_.reset(); }

  // Puts a data directory in place that a server has run on; initdb, the dear part of a start, runs
  // once for all tests that are about something else.
  void UseReadyData() {
    if (ready_ == nullptr) {
      ready_ = std::make_unique<ScratchDirectory>();
      Open(*ready_ / "data")->Stop();
    }
    std::filesystem::create_directory(directory_);
    std::filesystem::permissions(directory_, std::filesystem::perms(0711));
    const auto copied = RunProgram({"cp", "-a", *ready_ / "data/pg", directory_}, {});
    ASSERT_TRUE(copied.ok()) << copied.status();
  }

  static std::unique_ptr<ScratchDirectory> ready_;
  ScratchDirectory scratch_;
  const std::string directory_ = scratch_ / "data";
};

std::unique_ptr<ScratchDirectory> PrivatePostgresTest::ready_;

TEST_F(PrivatePostgresTest, StartsFromAnEmptyDirectoryDurableAndPrivate) {
  const SteadyTime start = SteadyTime::Now();
  PrivatePostgres::Options options = SmallOptions(directory_);
  options.durability = PrivatePostgres::Options::Durability::kFull;
  const auto opened = PrivatePostgres::Open(options);
  ASSERT_TRUE(opened.ok()) << opened.status();
  const auto& postgres = *opened;
  RecordProperty("ready_ms",
                 static_cast<int>(absl::ToInt64Milliseconds(SteadyTime::Now() - start)));
  const std::vector<std::pair<std::string, std::string>> settings = {
      {"fsync", "on"},
      {"synchronous_commit", "on"},
      {"full_page_writes", "on"},
      {"data_checksums", "on"},
      {"jit", "off"},
      {"listen_addresses", ""},
      {"wal_compression", "lz4"},
      {"server_encoding", "UTF8"},
      {"unix_socket_permissions", "0700"},
      {"shared_buffers", "16MB"},
      {"max_connections", "20"}};
  for (const auto& [name, value] : settings) {
    SCOPED_TRACE(name);
    EXPECT_EQ(Value(postgres->url(), absl::StrCat("show ", name).c_str()), value);
  }
  EXPECT_EQ(Value(postgres->url(), "select current_database()::text"), "stepwell");
  EXPECT_EQ(ModeOf(directory_ + "/pg"), 0700u);
  EXPECT_EQ(ModeOf(directory_ + "/socket"), 0700u);
  EXPECT_EQ(postgres->state().phase, Phase::kReady);
  struct stat process {};
  ASSERT_EQ(stat(absl::StrCat("/proc/", postgres->state().pid).c_str(), &process), 0);
  EXPECT_NE(process.st_uid, 0u);
}

TEST_F(PrivatePostgresTest, KeepsItsDataAcrossStopAndStart) {
  UseReadyData();
  auto postgres = Open(directory_);
  ASSERT_TRUE(Connect(postgres->url())->ExecScript("create table t as select 7 as n").ok());
  postgres->Stop();
  postgres->Stop();
  EXPECT_EQ(postgres->state().phase, Phase::kStopped);
  EXPECT_FALSE(std::filesystem::exists(directory_ + "/pg/postmaster.pid"));
  postgres = Open(directory_);
  EXPECT_EQ(Value(postgres->url(), "select n::text from t"), "7");
}

TEST_F(PrivatePostgresTest, StartsAgainAfterBeingKilledWithABusyBackend) {
  UseReadyData();
  const auto postgres = Open(directory_);
  const auto busy = Connect(postgres->url());
  ASSERT_TRUE(busy->ExecScript("create table t as select 7 as n").ok());
  const int first_pid = postgres->state().pid;
  ASSERT_TRUE(busy->Begin().ok());
  const SteadyTime start = SteadyTime::Now();
  ASSERT_EQ(kill(first_pid, SIGKILL), 0);
  ASSERT_TRUE(Eventually([&] {
    return postgres->state().phase == Phase::kReady && postgres->state().pid != first_pid;
  })) << postgres->state().reason;
  RecordProperty("again_ms",
                 static_cast<int>(absl::ToInt64Milliseconds(SteadyTime::Now() - start)));
  EXPECT_EQ(postgres->state().restart_count, 1);
  EXPECT_EQ(Value(postgres->url(), "select n::text from t"), "7");
  EXPECT_FALSE(busy->Exec("select 1").ok());
}

TEST_F(PrivatePostgresTest, WaitsForTheSharedMemoryOfAKilledServer) {
  UseReadyData();
  const auto postgres = Open(directory_);
  const auto connection = Connect(postgres->url());
  const int backend = connection->backend_pid();
  // A backend that cannot notice the death of its server goes on holding the memory.
  ASSERT_EQ(kill(backend, SIGSTOP), 0);
  ASSERT_EQ(kill(postgres->state().pid, SIGKILL), 0);
  EXPECT_FALSE(EventuallyWithin(absl::Milliseconds(500), [&] {
    return postgres->state().phase == Phase::kReady && postgres->state().restart_count > 0;
  }));
  ASSERT_EQ(kill(backend, SIGCONT), 0);
  ASSERT_TRUE(Eventually([&] {
    return postgres->state().phase == Phase::kReady && postgres->state().restart_count > 0;
  })) << postgres->state().reason;
  // Once: no start was tried in vain.
  EXPECT_EQ(postgres->state().restart_count, 1);
}

TEST_F(PrivatePostgresTest, AFullDiskIsNamedAndOvercome) {
  if (geteuid() != 0) GTEST_SKIP() << "only root mounts";
  UseReadyData();
  // The data moves onto a small disk of its own.
  const std::string disk = scratch_ / "disk";
  std::filesystem::create_directory(disk);
  if (!RunProgram({"mount", "-t", "tmpfs", "-o", "size=160m,mode=0711", "tmpfs", disk}, {}).ok()) {
    GTEST_SKIP() << "this container may not mount";
  }
  const auto unmount = absl::MakeCleanup([&] { RunProgram({"umount", disk}, {}).IgnoreError(); });
  ASSERT_TRUE(RunProgram({"cp", "-a", directory_, disk + "/data"}, {}).ok());
  auto postgres = Open(disk + "/data");
  const auto connection = Connect(postgres->url());
  ASSERT_TRUE(connection->ExecScript("create table t (v text)").ok());
  const std::string ballast = disk + "/ballast";
  // Fill the rest, leaving nothing for the next WAL file.
  EXPECT_FALSE(
      RunProgram({"dd", "if=/dev/zero", "of=" + ballast, "bs=65536", "status=none"}, {}).ok());
  absl::Status failure;
  for (int i = 0; i < 1000 && failure.ok(); ++i) {
    failure = connection->ExecScript(
        "insert into t select repeat(md5(n::text), 30) from generate_series(1, 2000) n");
  }
  EXPECT_EQ(failure.code(), absl::StatusCode::kUnavailable) << failure;
  // Either the insert was refused (53100) or the server panicked over its WAL; provoke the latter.
  ASSERT_TRUE(Eventually([&] {
    if (connection->usable()) {
      connection->ExecScript("select pg_switch_wal(); insert into t values ('x')").IgnoreError();
    }
    return postgres->state().reason.find("is full") != std::string::npos;
  })) << postgres->state().reason;
  std::filesystem::remove(ballast);
  ASSERT_TRUE(Eventually([&] { return postgres->state().phase == Phase::kReady; }))
      << postgres->state().reason;
  EXPECT_TRUE(Connect(postgres->url())->ExecScript("insert into t values ('y')").ok());
  postgres.reset();
}

TEST_F(PrivatePostgresTest, TellsWhyItIsDown) {
  UseReadyData();
  const auto postgres = Open(directory_);
  ASSERT_TRUE(Connect(postgres->url())
                  ->ExecScript("alter system set shared_preload_libraries = 'no_such_library'")
                  .ok());
  ASSERT_EQ(kill(postgres->state().pid, SIGKILL), 0);
  ASSERT_TRUE(Eventually([&] {
    return postgres->state().phase == Phase::kDown &&
           postgres->state().reason.find("no_such_library") != std::string::npos;
  })) << postgres->state().reason;
  EXPECT_THAT(std::string(postgres->WaitReady(SteadyTime::Now()).message()),
              HasSubstr("no_such_library"));
}

TEST_F(PrivatePostgresTest, AnImpossibleSettingFailsTheStartWithTheServersWords) {
  UseReadyData();
  PrivatePostgres::Options options = SmallOptions(directory_);
  options.settings = {{"shared_preload_libraries", "no_such_library"}};
  const absl::Status status = PrivatePostgres::Open(options).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr("no_such_library"), HasSubstr("postgres.log")));
}

TEST_F(PrivatePostgresTest, ADirectoryInUseIsRefusedByNamingTheProcess) {
  UseReadyData();
  const auto postgres = Open(directory_);
  const absl::Status second = TryOpen(directory_).status();
  EXPECT_EQ(second.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(
      std::string(second.message()),
      AllOf(HasSubstr(absl::StrCat("in use by process ", getpid())), HasSubstr("--data-dir")));
}

TEST_F(PrivatePostgresTest, MissingBinariesNameTheRemedy) {
  PrivatePostgres::Options options = SmallOptions(directory_);
  options.binary_directory = scratch_.path();
  const absl::Status status = PrivatePostgres::Open(options).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr(scratch_.path()), HasSubstr("apt-get install postgresql"),
                    HasSubstr("--database-url")));
}

TEST_F(PrivatePostgresTest, DataOfAnotherVersionNamesTheRemedy) {
  std::filesystem::create_directories(directory_ + "/pg");
  std::ofstream(directory_ + "/pg/PG_VERSION") << "9\n";
  const absl::Status status = TryOpen(directory_).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr("was made by PostgreSQL 9"), HasSubstr("pg_upgrade")));
}

TEST_F(PrivatePostgresTest, AForeignFolderIsNotOverwritten) {
  std::filesystem::create_directories(directory_ + "/pg");
  std::ofstream(directory_ + "/pg/precious") << "x";
  const absl::Status status = TryOpen(directory_).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), HasSubstr("not a PostgreSQL data directory"));
  EXPECT_TRUE(std::filesystem::exists(directory_ + "/pg/precious"));
}

TEST_F(PrivatePostgresTest, AHalfMadeDataDirectoryIsMadeAnew) {
  std::filesystem::create_directories(directory_ + "/pg.partial/base");
  chmod(directory_.c_str(), 0711);
  const auto postgres = Open(directory_);
  EXPECT_EQ(postgres->state().phase, Phase::kReady);
  EXPECT_FALSE(std::filesystem::exists(directory_ + "/pg.partial"));
}

TEST_F(PrivatePostgresTest, APathTooLongForASocketGetsAShortOne) {
  const std::string deep = scratch_ / std::string(60, 'a') + "/" + std::string(60, 'b');
  std::filesystem::create_directories(deep);
  const auto postgres = Open(deep + "/it's 100% \"data\"");
  EXPECT_EQ(Value(postgres->url(), "select 'x'"), "x");
}

TEST_F(PrivatePostgresTest, RootMustBeAbleToGiveTheServerItsDirectory) {
  if (geteuid() != 0) GTEST_SKIP() << "only root switches users";
  const std::string closed = scratch_ / "closed";
  std::filesystem::create_directories(closed);
  ASSERT_EQ(chmod(closed.c_str(), 0700), 0);
  const absl::Status status = TryOpen(closed + "/data").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr(absl::StrCat("cannot pass through ", closed, ";")),
                    HasSubstr(absl::StrCat("chmod o+x ", closed))));
}

TEST_F(PrivatePostgresTest, OtherUsersAreRefused) {
  if (geteuid() != 0) GTEST_SKIP() << "only root switches users";
  UseReadyData();
  const auto postgres = Open(directory_);
  const passwd* const nobody = getpwnam("nobody");
  ASSERT_NE(nobody, nullptr);
  const PostgresAccount account{
      .uid = nobody->pw_uid, .gid = nobody->pw_gid, .name = "nobody", .switch_user = true};
  // Even if somebody opens the folder and the socket, peer authentication holds.
  ASSERT_EQ(chmod((directory_ + "/socket").c_str(), 0755), 0);
  ASSERT_EQ(chmod((directory_ + "/socket/.s.PGSQL.5432").c_str(), 0777), 0);
  const auto psql = [&](const PostgresAccount& as) {
    return RunProgram({"psql", postgres->url(), "-Atc", "select 'in'"}, as);
  };
  EXPECT_THAT(std::string(psql(account).status().message()),
              HasSubstr("Peer authentication failed"));
  EXPECT_EQ(psql({}).value_or("refused"), "in\n");
  const passwd* const owner = getpwnam("postgres");
  EXPECT_EQ(
      psql({.uid = owner->pw_uid, .gid = owner->pw_gid, .switch_user = true}).value_or("refused"),
      "in\n");
}

// Starts the server of `directory` as nobody's child.
int StartOrphan(const std::string& directory) {
  const auto cluster = PostgresCluster::Prepare(SmallOptions(directory));
  EXPECT_TRUE(cluster.ok()) << cluster.status();
  const std::string pg_ctl =
      std::filesystem::path((*cluster)->binaries.postgres).parent_path().string() + "/pg_ctl";
  const auto started = RunProgram({pg_ctl, "-D", (*cluster)->data_directory, "-w", "-l",
                                   (*cluster)->data_directory + "/orphan.log", "start"},
                                  (*cluster)->account);
  EXPECT_TRUE(started.ok()) << started.status();
  return ReadPidFile((*cluster)->data_directory).pid;
}

TEST_F(PrivatePostgresTest, AServerThatOutlivedItsMasterIsAdopted) {
  UseReadyData();
  const int orphan = StartOrphan(directory_);
  const auto postgres = Open(directory_);
  EXPECT_EQ(postgres->state().pid, orphan);
  EXPECT_EQ(Value(postgres->url(), "select 'x'"), "x");
  postgres->Stop();
  EXPECT_FALSE(IsAlive(orphan));
}

TEST_F(PrivatePostgresTest, AnAdoptedServerThatDiesIsReplaced) {
  UseReadyData();
  const int orphan = StartOrphan(directory_);
  const auto postgres = Open(directory_);
  ASSERT_EQ(kill(orphan, SIGKILL), 0);
  ASSERT_TRUE(Eventually([&] {
    return postgres->state().phase == Phase::kReady && postgres->state().pid != orphan;
  })) << postgres->state().reason;
  EXPECT_EQ(Value(postgres->url(), "select 'x'"), "x");
}

TEST_F(PrivatePostgresTest, AnOrphanThatDoesNotAnswerIsStoppedAndReplaced) {
  UseReadyData();
  const int orphan = StartOrphan(directory_);
  ASSERT_EQ(kill(orphan, SIGSTOP), 0);
  const auto postgres = Open(directory_);
  EXPECT_NE(postgres->state().pid, orphan);
  EXPECT_FALSE(IsAlive(orphan));
  EXPECT_EQ(Value(postgres->url(), "select 'x'"), "x");
}

TEST_F(PrivatePostgresTest, APidFileThatNamesAnotherProgramIsLeftToPostgres) {
  UseReadyData();
  auto postgres = Open(directory_);
  const int pid = postgres->state().pid;
  ASSERT_EQ(kill(pid, SIGSTOP), 0);  // so that nothing restarts it while we look
  std::ifstream file(directory_ + "/pg/postmaster.pid");
  std::string text((std::istreambuf_iterator<char>(file)), {});
  ASSERT_EQ(kill(pid, SIGCONT), 0);
  postgres.reset();
  // The number now belongs to this test.
  text.replace(0, text.find('\n'), absl::StrCat(getpid()));
  std::ofstream(directory_ + "/pg/postmaster.pid") << text;
  EXPECT_FALSE(IsServerOf(getpid(), directory_ + "/pg"));
  // PostgreSQL takes a live pid of another user's process for stale, of its own for a server.
  if (geteuid() == 0) {
    EXPECT_EQ(Open(directory_)->state().phase, Phase::kReady);
  }
}

TEST_F(PrivatePostgresTest, AKilledMasterTakesItsServerAlong) {
  UseReadyData();
  const std::string program =
      std::filesystem::read_symlink("/proc/self/exe").parent_path().string() + "/hold_postgres";
  const std::string output = scratch_ / "output";
  const auto holder = StartServer({program, directory_}, PostgresAccount{}, output, "/");
  ASSERT_TRUE(holder.ok()) << holder.status();
  int server = 0;
  ASSERT_TRUE(Eventually([&] {
    std::ifstream lines(output);
    for (std::string line; std::getline(lines, line);) {
      if (std::sscanf(line.c_str(), "held %d", &server) == 1) return true;
    }
    return false;
  }));
  ASSERT_TRUE(IsAlive(server));
  ASSERT_EQ(kill(*holder, SIGKILL), 0);
  ASSERT_EQ(waitpid(*holder, nullptr, 0), *holder);
  // Opening at once meets the old server in its shutdown.
  const auto postgres = Open(directory_);
  EXPECT_TRUE(Eventually([&] { return postgres->state().phase == Phase::kReady; }));
  EXPECT_TRUE(Eventually([&] { return !IsAlive(server); }));
  EXPECT_EQ(Value(postgres->url(), "select 'x'"), "x");
}

TEST_F(PrivatePostgresTest, AFirstStartThatMeetsADyingOnesLockIsTriedOnceMore) {
  // What a killed master had just begun to start holds the lock for a moment; here the first start finds it.
  const auto real = FindPostgresBinaries("", 0);
  ASSERT_TRUE(real.ok()) << real.status();
  const std::string binaries = scratch_ / "bin";
  const std::string marks = scratch_ / "marks";
  std::filesystem::create_directories(binaries);
  std::filesystem::create_directories(marks);
  std::filesystem::permissions(marks, std::filesystem::perms::all);
  std::filesystem::create_symlink(real->initdb, binaries + "/initdb");
  std::ofstream(binaries + "/postgres")
      << "#!/bin/sh\nif [ $# -eq 2 ] && [ \"$1\" = -D ] && ! [ -e " << marks
      << "/one ]; then\n  echo >" << marks
      << "/one\n  echo 'FATAL:  lock file \"postmaster.pid\" already exists' >&2\n  exit "
         "1\nfi\nexec "
      << real->postgres << " \"$@\"\n";
  std::filesystem::permissions(binaries + "/postgres", std::filesystem::perms(0755));
  PrivatePostgres::Options options = SmallOptions(directory_);
  options.binary_directory = binaries;
  const auto postgres = PrivatePostgres::Open(options);
  ASSERT_TRUE(postgres.ok()) << postgres.status();
  EXPECT_EQ((*postgres)->state().phase, Phase::kReady);
  EXPECT_EQ((*postgres)->state().restart_count, 1);
  EXPECT_TRUE(std::filesystem::exists(marks + "/one"));
}

TEST_F(PrivatePostgresTest, LastWordsPreferThePanicAndNameTheFullDisk) {
  PostgresCluster cluster;
  cluster.log_file = scratch_ / "postgres.log";
  cluster.data_directory = "/var/lib/stepwell/pg";
  std::ofstream(cluster.log_file)
      << "2026-01-01 10:00:00.000 UTC [1] postmaster FATAL:  of an earlier start\n"
      << "2026-01-01 10:00:01.000 UTC [2] client backend FATAL:  terminating connection\n"
      << "2026-01-01 10:00:02.000 UTC [3] walwriter PANIC:  could not write to file: No space left "
         "on "
         "device\n"
      << "2026-01-01 10:00:03.000 UTC [4] startup FATAL:  in recovery\n";
  EXPECT_EQ(LastWords(cluster, 70),
            "could not write to file: No space left on device (the disk that holds "
            "/var/lib/stepwell/pg is full)");
  EXPECT_EQ(LastWords(cluster, LogBytes(cluster)), "");
}

}  // namespace
}  // namespace stepwell
