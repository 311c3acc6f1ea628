// Somebody locks each of our tables, for longer than our statements wait: a person's ALTER TABLE, a backup that
// went wrong. Nothing is rejected for it, nobody waits for ever, and with the locks gone all goes on.
#include <gtest/gtest.h>
#include <libpq-fe.h>

#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "tests/faults/master_client.h"
#include "tests/faults/scene.h"
#include "tests/support/postgres.h"

namespace stepwell::faults {
namespace {

// Longer than a statement of a commit waits, which are 10 s.
constexpr absl::Duration kHeld = absl::Seconds(15);

constexpr char kLockAll[] = R"(
begin;
set local lock_timeout = '2s';
do $do$
declare
  name text;
begin
  for name in select c.relname from pg_class c join pg_namespace n on n.oid = c.relnamespace
              where n.nspname = 'stepwell' and c.relkind in ('r', 'p') and not c.relispartition
              order by c.relname loop
    execute format('lock table stepwell.%I in access exclusive mode', name);
  end loop;
end $do$;
)";

class Locks {
 public:
  explicit Locks(const std::string& database_url)
      : connection_(PQconnectdb(database_url.c_str())) {}
  // Whether it has all of them now.
  bool TakeAll() {
    const std::unique_ptr<PGresult, Finish> result(PQexec(connection_.get(), kLockAll));
    if (PQresultStatus(result.get()) == PGRES_COMMAND_OK) return true;
    why_ = PQerrorMessage(connection_.get());
    GiveBack();
    return false;
  }
  void GiveBack() {
    const std::unique_ptr<PGresult, Finish> result(PQexec(connection_.get(), "rollback"));
  }
  const std::string& why() const { return why_; }

 private:
  struct Finish {
    void operator()(PGconn* connection) const { PQfinish(connection); }
    void operator()(PGresult* result) const { PQclear(result); }
  };
  const std::unique_ptr<PGconn, Finish> connection_;
  std::string why_;
};

TEST(HeldLocksTest, AreAnOutageAndAllGoesOnAfterwards) {
  Scene scene("held locks");
  const std::string url = testing::TestPostgres::Get().Durable().FreshDatabase();
  MasterProcess master({scene.path(""), "master", url, {"--fold-interval", "500ms"}});
  MasterClient client(master.grpc_address());
  const auto committed = [&] {
    const auto status = client.Status();
    return status ? status->chunks_committed() : 0;
  };
  ASSERT_TRUE(master.StartAndWait()) << master.LogTail();
  scene.StartAgent(master.grpc_address());
  for (const int rank : {0, 1}) scene.StartTrainer(rank, {{"--world-size", "2"}});
  scene.StartRawWriter(10, master.grpc_address());
  ASSERT_TRUE(scene.Await("20 chunks", absl::Seconds(60), [&] { return committed() >= 20; }))
      << scene.Logs() << master.LogTail();
  Locks locks(url);
  ASSERT_TRUE(scene.Await("all tables are locked", absl::Seconds(60), [&] {
    return locks.TakeAll();
  })) << locks.why();
  const std::size_t recorded = scene.ReadLedgers().samples.size();
  const absl::Duration end = scene.Elapsed() + kHeld;
  const auto wait_until = [&](const char* what, absl::Duration until) {
    scene.Await(what, kHeld + absl::Seconds(30), [&] { return scene.Elapsed() >= until; });
  };
  // What was committed as they were taken is counted a moment later.
  wait_until("they are held", end - kHeld + absl::Seconds(2));
  std::uint64_t stopped_at = 0;
  ASSERT_TRUE(Eventually([&] { return (stopped_at = committed()) > 0; }, absl::Seconds(10)));
  wait_until("they are held to the end", end);
  EXPECT_GT(scene.ReadLedgers().samples.size(), recorded);
  std::uint64_t still_at = 0;
  EXPECT_TRUE(Eventually([&] { return (still_at = committed()) > 0; }, absl::Seconds(10)));
  EXPECT_EQ(still_at, stopped_at) << "nothing stopped: this proves nothing";
  EXPECT_GT(master.CountInLog("commit_failed"), 0) << "no statement gave up: " << master.LogTail();
  EXPECT_TRUE(master.running()) << master.LogTail();
  locks.GiveBack();
  scene.Say("nothing is locked any more");
  const std::uint64_t before = committed();
  EXPECT_TRUE(
      scene.Await("20 chunks more", absl::Seconds(60), [&] { return committed() >= before + 20; }))
      << scene.Logs() << master.LogTail();
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
