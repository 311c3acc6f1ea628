// Others use up all connections of a PostgreSQL that is not the master's own. While it has its sessions, the master goes on by
// them. Then they end these, too: it gets in no more (53300). Nothing may be rejected for it; with free places all goes on.
#include <gtest/gtest.h>
#include <libpq-fe.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "tests/faults/master_client.h"
#include "tests/faults/scene.h"
#include "tests/support/postgres.h"

namespace stepwell::faults {
namespace {

struct Finish {
  void operator()(PGconn* connection) const { PQfinish(connection); }
  void operator()(PGresult* result) const { PQclear(result); }
};
using Session = std::unique_ptr<PGconn, Finish>;

// The sessions of whoever takes all that there are.
class Crowd {
 public:
  explicit Crowd(const std::string& url)
      : url_(absl::StrCat(url, absl::StrContains(url, '?') ? "&" : "?", "application_name=crowd")),
        first_(PQconnectdb(url_.c_str())) {}

  // Ends the sessions of others and takes their places. Whether none of them is left and all places are taken: one that
  // ends has its place for a moment longer, which a master may get behind it.
  bool TakeAll() {
    (void)Ask(
        "select pg_terminate_backend(pid) from pg_stat_activity where "
        "backend_type = 'client backend' and application_name <> 'crowd'");
    TakeFree();
    return Ask("select count(*) from pg_stat_activity where backend_type = 'client backend' "
               "and application_name <> 'crowd'") == "0" &&
           Ask("show max_connections") == absl::StrCat(sessions_.size() + 1);
  }
  // All places that nobody has.
  void TakeFree() {
    while (true) {
      Session session(PQconnectdb(url_.c_str()));
      if (PQstatus(session.get()) != CONNECTION_OK) {
        refusal_ = PQerrorMessage(session.get());
        return;
      }
      sessions_.push_back(std::move(session));
    }
  }
  void Leave() { sessions_.clear(); }
  std::size_t size() const { return sessions_.size(); }
  const std::string& refusal() const { return refusal_; }

 private:
  std::string Ask(const char* sql) {
    const std::unique_ptr<PGresult, Finish> result(PQexec(first_.get(), sql));
    return PQntuples(result.get()) > 0 ? PQgetvalue(result.get(), 0, 0) : "";
  }

  const std::string url_;
  const Session first_;
  std::vector<Session> sessions_;
  std::string refusal_;
};

bool HasAckOf(const Ledger& ledger, int rank) {
  return std::any_of(ledger.samples.begin(), ledger.samples.end(), [&](const LoggedSample& sample) {
    return sample.rank == rank && sample.acked;
  });
}

TEST(UsedUpConnectionsTest, AreAnOutageAndAllGoesOnAfterwards) {
  Scene scene("used up connections");
  const std::string url = testing::TestPostgres::Get().Durable().FreshDatabase();
  MasterProcess master({scene.path(""), "master", url});
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
  Crowd crowd(url);
  crowd.TakeFree();
  scene.Say(absl::StrCat(crowd.size(), " sessions beside the master's; ", crowd.refusal()));
  scene.StartRawWriter(11, master.grpc_address());
  const std::uint64_t beside = committed();
  EXPECT_TRUE(
      scene.Await("40 chunks, of one more writer, too", absl::Seconds(60),
                  [&] { return committed() >= beside + 40 && HasAckOf(scene.ReadLedgers(), 11); }))
      << scene.Logs() << master.LogTail();
  EXPECT_EQ(client.Flush(), "");
  // Who reads for the first time wants a place that there is not.
  EXPECT_FALSE(client.Trial("faults"));
  ASSERT_TRUE(scene.Await("no place is left", absl::Seconds(60), [&] { return crowd.TakeAll(); }))
      << crowd.refusal();
  scene.Say(absl::StrCat(crowd.size(), " sessions; ", crowd.refusal()));
  const std::uint64_t stopped_at = committed();
  const std::size_t recorded = scene.ReadLedgers().samples.size();
  EXPECT_TRUE(scene.Await("3000 samples more", absl::Seconds(60),
                          [&] { return scene.ReadLedgers().samples.size() >= recorded + 3000; }));
  EXPECT_TRUE(crowd.TakeAll());
  EXPECT_TRUE(master.running()) << master.LogTail();
  // It was sent away itself, all the while.
  EXPECT_EQ(committed(), stopped_at) << master.LogTail();
  crowd.Leave();
  scene.Say("there are places again");
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
