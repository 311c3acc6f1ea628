#include "storage/pg_url.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace stepwell {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(PgUrlTest, SettingsWinOverTheUrl) {
  const auto conninfo =
      PgConninfo("postgresql://u:p%27%5C@db:6543/x?connect_timeout=9&sslmode=disable",
                 {{"connect_timeout", "2"}, {"application_name", "a b"}});
  ASSERT_TRUE(conninfo.ok()) << conninfo.status();
  EXPECT_THAT(*conninfo,
              AllOf(HasSubstr("application_name='a b'"), HasSubstr("connect_timeout='2'"),
                    HasSubstr("host='db'"), HasSubstr("port='6543'"), HasSubstr("dbname='x'"),
                    HasSubstr("sslmode='disable'"), HasSubstr(R"(password='p\'\\')")));
  // What comes out goes in again unchanged.
  EXPECT_EQ(*PgConninfo(*conninfo, {}), *conninfo);
}

TEST(PgUrlTest, KeyValueFormAndDefaults) {
  EXPECT_EQ(*PgConninfo("host=/run/x dbname=y", {}), "dbname='y' host='/run/x'");
  EXPECT_EQ(*PgConninfo("", {}), "");
}

TEST(PgUrlTest, ABadUrlIsRefusedWithoutRepeatingIt) {
  for (const char* url : {"postgresql://u:ge%zzheim@db/x", "postgresql://u:geheim@db/x?geheim",
                          "geheim", "host=db geheim", "postgresql://u@[geheim/x"}) {
    SCOPED_TRACE(url);
    const absl::Status status = PgConninfo(url, {}).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(status.message()),
                AllOf(HasSubstr("allowed: postgresql://"), Not(HasSubstr("heim"))));
  }
}

}  // namespace
}  // namespace stepwell
