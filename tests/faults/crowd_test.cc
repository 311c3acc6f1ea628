// Many agents, made of the agent's own parts, lose one master or its database at once and come back at
// once: each resumes, nothing is lost or doubled, and the load goes on as before. How long it takes until
// each writer has an ack again, and until nobody is behind, is printed; of 10,000 writers the first is held to the
// minute that is promised, and so is the second where the outage was short. Of 300 both are held to nothing but
// patience: the machine may be busy.
#include <gtest/gtest.h>
#include <libpq-fe.h>
#include <signal.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/faults/child_pids.h"
#include "tests/faults/master_client.h"
#include "tests/faults/scene.h"

namespace stepwell::faults {
namespace {

// The last lines of a file that grows by some each second: it is read at each look.
std::string ReadTail(const std::string& path) {
  constexpr std::streamoff kTailBytes = 1 << 14;
  std::ifstream file(path, std::ios::ate);
  file.seekg(std::max<std::streamoff>(file.tellg() - kTailBytes, 0));
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

// The postmaster and its children.
class Postgres {
 public:
  explicit Postgres(pid_t postmaster) : pids_(ChildPids(postmaster)) {
    pids_.insert(pids_.begin(), postmaster);
  }
  void Signal(int signal) const {
    for (const pid_t pid : pids_) kill(pid, signal);
  }

 private:
  std::vector<pid_t> pids_;
};

// A transaction that began when this did, and lasts as long.
class Snapshot {
 public:
  explicit Snapshot(const std::string& database_url)
      : connection_(PQconnectdb(database_url.c_str())) {
    (void)Ask("begin isolation level repeatable read");
  }
  // The first column of the first row, "" where there is none.
  std::string Ask(const char* sql) const {
    const std::unique_ptr<PGresult, Finish> result(PQexec(connection_.get(), sql));
    return PQntuples(result.get()) > 0 ? PQgetvalue(result.get(), 0, 0) : "";
  }

 private:
  struct Finish {
    void operator()(PGconn* connection) const { PQfinish(connection); }
    void operator()(PGresult* result) const { PQclear(result); }
  };
  const std::unique_ptr<PGconn, Finish> connection_;
};

class CrowdTest : public ::testing::Test {
 protected:
  struct Size {
    int processes;
    int streams;  // of each
    int writers;  // of each stream
    absl::Duration outage;
    absl::Duration steady;  // afterwards
    // Of all waits together, so that what hangs is told before ctest's timeout ends the test: 400 s, or
    // 1800 s of long ones. The last flush and the end of the master come on top, a minute each at most.
    absl::Duration patience;
    // Each has an ack again, and nobody is behind any more.
    absl::Duration resumed_max = absl::InfiniteDuration();
    absl::Duration caught_up_max = absl::InfiniteDuration();
  };

  void Start(const Size& size) {
    ASSERT_TRUE(master_.StartAndWait()) << master_.LogTail();
    Load(size);
  }
  void Load(const Size& size) {
    patience_ = size.patience;
    const int of_each = size.streams * size.writers;
    for (int i = 0; i < size.processes; ++i) {
      ranks_.push_back(i * of_each);
      crowds_.push_back(
          &scene_.StartCrowd(ranks_.back(), master_.grpc_address(),
                             {{"--streams", absl::StrCat(size.streams)},
                              {"--writers", absl::StrCat(size.writers)},
                              {"--close-wait-ms", "300000"},
                              {"--world-size", absl::StrCat(size.processes * of_each)}}));
    }
    ASSERT_TRUE(AwaitNoneBehind("all are open")) << scene_.Logs() << master_.LogTail();
  }
  // The outage is over: each has an ack again, nobody is behind, and the load goes on.
  void ExpectResumed(const Size& size) {
    const absl::Duration begin = scene_.Elapsed();
    ++mark_count_;
    for (ChildProcess* crowd : crowds_) crowd->Signal(SIGUSR1);
    const auto are_acked = [&] {
      const Told told = ReadTold();
      return told.marks == mark_count_ && told.waiting == 0;
    };
    EXPECT_TRUE(scene_.Await("all resumed", left(), are_acked))
        << scene_.Logs() << master_.LogTail();
    EXPECT_LE(scene_.Elapsed() - begin, size.resumed_max);
    EXPECT_TRUE(AwaitNoneBehind("nobody is behind")) << scene_.Logs() << master_.LogTail();
    EXPECT_LE(scene_.Elapsed() - begin, size.caught_up_max);
    const std::uint64_t before = acked();
    const auto more =
        static_cast<std::uint64_t>(WriterCount(size) * absl::ToInt64Seconds(size.steady));
    // A minute of it may take a minute and a half; a few seconds may meet a busy machine.
    const bool is_long = size.steady >= absl::Seconds(30);
    EXPECT_TRUE(scene_.Await("steady", is_long ? size.steady * 1.5 : left(), [&] {
      return acked() >= before + more;
    })) << scene_.Logs();
    if (is_long) {
      EXPECT_TRUE(scene_.Await("nobody is behind still", absl::Seconds(10),
                               [&] { return ReadTold().behind == 0; }));
    }
    scene_.StopProducers(left());
    const Verdict verdict = scene_.ExpectExact(master_, Demand::kRecorded);
    EXPECT_EQ(verdict.declared_count, 0U);
    EXPECT_EQ(master_.Stop(), "exit 0") << master_.LogTail();
  }
  void MasterDies(const Size& size) {
    Start(size);
    master_.Kill();
    scene_.Say("the master is killed");
    ASSERT_TRUE(AwaitAnyBehind());
    WaitOut(size.outage);
    ASSERT_TRUE(master_.StartAndWait()) << master_.LogTail();
    scene_.Say("the master is back");
    ExpectResumed(size);
  }
  void DatabaseHangs(const Size& size) {
    Start(size);
    const Postgres postgres(master_.PostmasterPid());
    postgres.Signal(SIGSTOP);
    scene_.Say("the database answers no more");
    EXPECT_TRUE(AwaitAnyBehind());
    WaitOut(size.outage);
    EXPECT_TRUE(master_.running()) << master_.LogTail();
    postgres.Signal(SIGCONT);
    scene_.Say("it does again");
    ExpectResumed(size);
  }
  // What was open before the load began sees none of it, and keeps all that it could see.
  void SnapshotStays(const Size& size) {
    ASSERT_TRUE(master_.StartAndWait()) << master_.LogTail();
    const Snapshot snapshot(master_.database_url());
    ASSERT_EQ(snapshot.Ask("select count(*) from stepwell.writers"), "0");
    Load(size);
    scene_.Say("all write beside an old snapshot");
    ExpectNobodyWaits(size);
    EXPECT_EQ(snapshot.Ask("select count(*) from stepwell.writers"), "0");
    ExpectResumed(size);
  }

 private:
  struct Told {
    std::uint64_t acked = 0;
    int behind = -1;  // nothing told yet
    int marks = 0;    // the fewest of any crowd
    int waiting = 0;
  };
  static std::int64_t WriterCount(const Size& size) {
    return std::int64_t{size.processes} * size.streams * size.writers;
  }
  // For as long as the outage of `size`, looked at every two seconds: what is acked keeps pace with what is
  // written, a frame a second of each, but for the five seconds after which one is behind.
  void ExpectNobodyWaits(const Size& size) {
    const std::uint64_t before = acked();
    std::uint64_t more = 0;
    const absl::Duration begin = scene_.Elapsed();
    int look_count = 0;
    for (absl::Duration next = begin; scene_.Elapsed() < begin + size.outage; ++look_count) {
      next += absl::Seconds(2);
      ASSERT_TRUE(Eventually([&] { return scene_.Elapsed() >= next; }, absl::Seconds(60)));
      const double seconds = absl::ToDoubleSeconds(scene_.Elapsed() - begin);
      const Told told = AwaitTold();
      EXPECT_EQ(told.behind, 0) << "after " << seconds << " s\n" << master_.LogTail();
      more = told.acked - before;
      const double due = 0.9 * static_cast<double>(WriterCount(size)) * (seconds - 5);
      EXPECT_GE(static_cast<double>(more), due) << "after " << seconds << " s";
      if (HasFailure()) return;
    }
    scene_.Say(absl::StrCat("nobody was behind at any of ", look_count, " looks, ", more,
                            " samples were acked meanwhile"));
  }
  // What the last line of each crowd says, together.
  Told ReadTold() const {
    const std::string text = ReadTail(scene_.path("producers.log"));
    Told all{.acked = 0, .behind = 0, .marks = mark_count_};
    for (const int rank : ranks_) {
      const std::size_t line = text.rfind(absl::StrCat("crowd ", rank, ", "));
      const std::size_t acked = line == std::string::npos ? line : text.find("acked ", line);
      unsigned long long count = 0;
      int behind = 0;
      int marks = 0;
      int waiting = 0;
      if (acked == std::string::npos || text.find('\n', acked) == std::string::npos ||
          std::sscanf(text.c_str() + acked, "acked %llu, behind %d, marks %d, waiting %d", &count,
                      &behind, &marks, &waiting) != 4) {
        return {};
      }
      all.acked += count;
      all.behind += behind;
      all.marks = std::min(all.marks, marks);
      all.waiting += waiting;
    }
    return all;
  }
  // A line may be half written at a look.
  Told AwaitTold() const {
    Told told;
    EXPECT_TRUE(Eventually([&] { return (told = ReadTold()).behind >= 0; }, absl::Seconds(10)));
    return told;
  }
  std::uint64_t acked() const { return AwaitTold().acked; }
  absl::Duration left() const { return patience_ - scene_.Elapsed(); }
  bool AwaitNoneBehind(const std::string& what) {
    return scene_.Await(what, left(), [&] {
      const Told told = ReadTold();
      return told.behind == 0 && told.acked > 0;
    });
  }
  bool AwaitAnyBehind() {
    return scene_.Await("some are behind", left(), [&] { return ReadTold().behind > 0; });
  }
  void WaitOut(absl::Duration outage) const {
    scene_.Await("outage", outage + absl::Seconds(30),
                 [&, end = scene_.Elapsed() + outage] { return scene_.Elapsed() >= end; });
  }

  Scene scene_{::testing::UnitTest::GetInstance()->current_test_info()->name()};
  // As by default, and told so that it is the bound that its memory is held to (bounds_watch.cc).
  MasterProcess master_{{.scratch = scene_.path(""), .flags = {"--memory-bytes=1024MiB"}}};
  std::vector<int> ranks_;
  std::vector<ChildProcess*> crowds_;  // the scene's
  int mark_count_ = 0;
  absl::Duration patience_;
};

constexpr int kShort = 2;
constexpr absl::Duration kShortPatience = absl::Seconds(220);
constexpr absl::Duration kLongPatience = absl::Seconds(1600);
// Until all that come back at once have resumed.
constexpr absl::Duration kPromised = absl::Seconds(60);

TEST_F(CrowdTest, ResumesAtOnceWhereTheMasterDied) {
  MasterDies({kShort, 10, 15, absl::Seconds(1), absl::Seconds(3), kShortPatience});
}

TEST_F(CrowdTest, ResumesWhereTheDatabaseWasDead) {
  DatabaseHangs({kShort, 10, 15, absl::Seconds(1), absl::Seconds(3), kShortPatience});
}

TEST_F(CrowdTest, AnOldSnapshotHoldsUpNobody) {
  SnapshotStays({kShort, 10, 15, absl::Seconds(12), absl::Seconds(3), kShortPatience});
}

// 10,000 writers on 200 streams; ./tests/run.sh --faults.
TEST_F(CrowdTest, LongTenThousandWritersResumeAtOnceWhereTheMasterDied) {
  MasterDies(
      {4, 50, 50, absl::Seconds(10), absl::Seconds(60), kLongPatience, kPromised, kPromised});
}

TEST_F(CrowdTest, LongTenThousandWritersResumeWhereTheDatabaseWasDeadForTenMinutes) {
  DatabaseHangs({4, 50, 50, absl::Minutes(10), absl::Seconds(60), kLongPatience, kPromised});
}

TEST_F(CrowdTest, LongASnapshotOfTenMinutesHoldsUpNoneOfTenThousandWriters) {
  SnapshotStays({4, 50, 50, absl::Minutes(10), absl::Seconds(60), kLongPatience});
}

}  // namespace
}  // namespace stepwell::faults
