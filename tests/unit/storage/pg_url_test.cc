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

TEST(PgUrlTest, EachHostHasItsOwn) {
  const struct {
    const char* name;
    const char* url;
    std::vector<std::string> expected;
  } rows[] = {
      {"none", "dbname=x", {"dbname='x'"}},
      {"one", "host=a port=1", {"host='a' port='1'"}},
      {"two, each with a port",
       "postgresql://a:1,b:2/x",
       {"dbname='x' host='a' port='1'", "dbname='x' host='b' port='2'"}},
      {"two with one port", "host=a,b port=1", {"host='a' port='1'", "host='b' port='1'"}},
      {"two addresses of one name each",
       "host=a,b hostaddr=::1,::2",
       {"host='a' hostaddr='::1'", "host='b' hostaddr='::2'"}},
      {"addresses alone", "hostaddr=::1,::2", {"hostaddr='::1'", "hostaddr='::2'"}},
      {"one of them the default", "host=,b", {"host=''", "host='b'"}},
      {"lists that do not fit", "host=a,b,c port=1,2", {"host='a,b,c' port='1,2'"}},
      {"all at once",
       "host=a,b target_session_attrs=prefer-standby",
       {"host='a,b' target_session_attrs='prefer-standby'"}},
  };
  for (const auto& row : rows) {
    SCOPED_TRACE(row.name);
    const auto each = PgConninfoOfEachHost(row.url, {});
    ASSERT_TRUE(each.ok()) << each.status();
    EXPECT_EQ(*each, row.expected);
  }
  EXPECT_THAT(PgConninfoOfEachHost("host=a,b", {{"user", "u"}})->back(), HasSubstr("user='u'"));
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
