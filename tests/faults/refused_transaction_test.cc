// PostgreSQL ends transactions of commits, Opens, folds and merges for reasons of its own: serialization
// failures, deadlocks, cancelled statements, locks that do not come. Triggers of the test's own raise them, at
// any statement of any of them, by chance.
// How it would fail: a reason that passes is taken for bad data, and chunks are rejected or rows given up as a
// gap; a commit that failed in the middle is acked; a retry begins where the first try ended.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "tests/faults/database_text.h"
#include "tests/faults/master_client.h"
#include "tests/faults/scene.h"
#include "tests/support/postgres.h"

namespace stepwell::faults {
namespace {

constexpr int kRefusalCountMin = 40;

// One statement in twenty. What a sequence counts is not rolled back.
constexpr char kRefuse[] = R"(
create sequence public.refusals;
create function public.refuse() returns trigger language plpgsql as $f$
declare
  states text[] := array['40001', '40P01', '57014', '55P03'];
begin
  if random() < 0.05 then
    perform nextval('public.refusals');
    raise exception 'refused by the test' using errcode = states[1 + floor(random() * 4)::integer];
  end if;
  return null;
end $f$;
do $do$
declare
  name text;
begin
  for name in select c.relname from pg_class c join pg_namespace n on n.oid = c.relnamespace
              where n.nspname = 'stepwell' and c.relkind in ('r', 'p') and not c.relispartition
                and c.relname <> 'masters' loop
    execute format('create trigger refuse before insert or update or delete on stepwell.%I '
                   'for each statement execute function public.refuse()', name);
  end loop;
end $do$;
)";

int RefusalCount(const std::string& url) {
  int count = 0;
  (void)absl::SimpleAtoi(
      DatabaseText(url,
                   "select case when is_called then last_value else 0 end from public.refusals"),
      &count);
  return count;
}

TEST(RefusedTransactionTest, IsTriedAgainAndNothingIsLostOrGivenUp) {
  Scene scene("refused transactions");
  const std::string url = testing::TestPostgres::Get().Durable().FreshDatabase();
  MasterProcess master({scene.path(""), "master", url, {"--fold-interval", "100ms"}});
  MasterClient client(master.grpc_address());
  const auto committed = [&] {
    const auto status = client.Status();
    return status ? status->chunks_committed() : 0;
  };
  ASSERT_TRUE(master.StartAndWait()) << master.LogTail();
  ASSERT_EQ(DatabaseText(url, kRefuse), "");
  scene.StartAgent(master.grpc_address());
  for (const int rank : {0, 1}) scene.StartTrainer(rank, {{"--world-size", "2"}});
  scene.StartRawWriter(10, master.grpc_address());
  ASSERT_TRUE(
      scene.Await(absl::StrCat(kRefusalCountMin, " refusals, 100 chunks"), absl::Seconds(120),
                  [&] { return RefusalCount(url) >= kRefusalCountMin && committed() >= 100; }))
      << RefusalCount(url) << " refusals\n"
      << scene.Logs() << master.LogTail();
  scene.Say(absl::StrCat(RefusalCount(url), " transactions were refused"));
  // A transaction of the master's that holds locks the other way round is a deadlock, of which this is one end.
  std::string dropped;
  ASSERT_TRUE(scene.Await("transactions are refused no more", absl::Seconds(60), [&] {
    dropped = DatabaseText(url,
                           "set client_min_messages = warning; "
                           "drop function public.refuse cascade");
    return dropped.empty();
  })) << dropped;
  scene.StopProducers(absl::Seconds(90));
  const auto status = client.Status();
  ASSERT_TRUE(status);
  EXPECT_EQ(status->chunks_rejected(), 0U);
  const Verdict verdict = scene.ExpectExact(master, Demand::kRecorded);
  EXPECT_EQ(verdict.declared_count, 0U);
  EXPECT_TRUE(scene.stored().gaps.empty());
  EXPECT_EQ(master.Stop(), "exit 0") << master.LogTail();
}

}  // namespace
}  // namespace stepwell::faults
