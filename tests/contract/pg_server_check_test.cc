#include "storage/pg_server_check.h"

#include <gtest/gtest.h>

#include "tests/support/postgres.h"

namespace stepwell {
namespace {

using testing::Connect;
using testing::TestPostgres;

// The server of these tests runs without fsync: it must never be taken for a durable one.
TEST(PgServerCheckTest, AServerWithoutFsyncIsRefused) {
  const auto connection = Connect(TestPostgres::Get().FreshDatabase());
  EXPECT_EQ(CheckServer(*connection).ToString(),
            "FAILED_PRECONDITION: the PostgreSQL server has fsync = off: a power cut would lose "
            "samples that were acked. Mend it: alter system set fsync = on; select "
            "pg_reload_conf();");
}

// Whatever a person set for the role or the database, a COMMIT of ours waits for the disk.
TEST(PgServerCheckTest, TransactionsAreSynchronousWhateverTheRoleSays) {
  const std::string url = TestPostgres::Get().FreshDatabase();
  ASSERT_TRUE(Connect(url)
                  ->ExecScript("do $$ begin execute format('alter database %I set "
                               "synchronous_commit = off', current_database()); end $$")
                  .ok());
  const auto connection = Connect(url);
  const auto setting = [&] {
    const auto result = connection->Exec("show synchronous_commit");
    return result.ok() ? std::string(result->Text(0, 0)) : result.status().ToString();
  };
  EXPECT_EQ(setting(), "off");
  ASSERT_TRUE(connection
                  ->InTransaction([&] {
                    EXPECT_EQ(setting(), "on");
                    return absl::OkStatus();
                  })
                  .ok());
}

}  // namespace
}  // namespace stepwell
