#include "storage/pg_error.h"

#include <gtest/gtest.h>

#include <vector>

namespace stepwell {
namespace {

TEST(PgErrorTest, TheCodeTellsTheCallerWhatToDo) {
  struct Row {
    const char* name;
    const char* sqlstate;
    absl::StatusCode code;
  };
  const std::vector<Row> rows = {
      {"connection lost", "", absl::StatusCode::kUnavailable},
      {"connection failure", "08006", absl::StatusCode::kUnavailable},
      {"deadlock", "40P01", absl::StatusCode::kUnavailable},
      {"serialization", "40001", absl::StatusCode::kUnavailable},
      {"disk full", "53100", absl::StatusCode::kUnavailable},
      {"too many connections", "53300", absl::StatusCode::kUnavailable},
      {"admin shutdown", "57P01", absl::StatusCode::kUnavailable},
      {"starting up", "57P03", absl::StatusCode::kUnavailable},
      {"I/O error", "58030", absl::StatusCode::kUnavailable},
      {"read only", "25006", absl::StatusCode::kUnavailable},
      {"idle in transaction", "25P03", absl::StatusCode::kUnavailable},
      {"lock timeout", "55P03", absl::StatusCode::kUnavailable},
      {"statement timeout", "57014", absl::StatusCode::kDeadlineExceeded},
      {"not UTF-8", "22021", absl::StatusCode::kInvalidArgument},
      {"time out of range", "22008", absl::StatusCode::kInvalidArgument},
      {"unique", "23505", absl::StatusCode::kInvalidArgument},
      {"no table", "42P01", absl::StatusCode::kFailedPrecondition},
      {"no column", "42703", absl::StatusCode::kFailedPrecondition},
      {"no schema", "3F000", absl::StatusCode::kFailedPrecondition},
      {"no database", "3D000", absl::StatusCode::kFailedPrecondition},
      {"no right", "42501", absl::StatusCode::kPermissionDenied},
      {"password", "28P01", absl::StatusCode::kPermissionDenied},
      {"corruption", "XX001", absl::StatusCode::kDataLoss},
      {"internal", "XX000", absl::StatusCode::kInternal},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.name);
    const absl::Status status = PgError(row.sqlstate, "text");
    EXPECT_EQ(status.code(), row.code);
    EXPECT_EQ(SqlState(status), row.sqlstate);
    EXPECT_EQ(IsRetryable(status), row.code == absl::StatusCode::kUnavailable);
    EXPECT_FALSE(IsCommitUnknown(status));
  }
}

TEST(PgErrorTest, OnlyTheFirstLineIsTold) {
  EXPECT_EQ(PgError("22012", "division by zero\nDETAIL: select secret from t").message(),
            "PostgreSQL 22012: division by zero");
}

TEST(PgErrorTest, LongMessagesAreCutBetweenCharacters) {
  std::string text = "x";
  for (int i = 0; i < 1000000; ++i) text += "\xc3\xa9";
  const absl::Status status = PgError("22P02", text);
  EXPECT_LT(status.message().size(), 600u);
  EXPECT_EQ(std::string(status.message().substr(status.message().size() - 5)), "\xc3\xa9...");
}

TEST(PgErrorTest, AnUnknownCommitIsItsOwnOutcome) {
  const absl::Status status = CommitUnknown("server closed the connection");
  EXPECT_TRUE(IsCommitUnknown(status));
  EXPECT_FALSE(IsRetryable(status));
  EXPECT_FALSE(IsCommitUnknown(absl::UnknownError("something else")));
  EXPECT_FALSE(IsCommitUnknown(absl::OkStatus()));
}

TEST(PgErrorTest, PasswordsNeverPass) {
  struct Row {
    const char* text;
    const char* redacted;
  };
  const std::vector<Row> rows = {
      {"postgresql://u:geheim@db:5432/x", "postgresql://u:***@db:5432/x"},
      {"to postgres://u:p@ss:w@db/x failed", "to postgres://u:***@db/x failed"},
      {"postgresql://:geheim@/x", "postgresql://:***@/x"},
      {"host=db password=geheim dbname=x", "host=db password=*** dbname=x"},
      {"host=db password = 'ge\\'heim' dbname=x", "host=db password = *** dbname=x"},
      {"postgresql://u@db/x?password=geheim&sslmode=require",
       "postgresql://u@db/x?password=***&sslmode=require"},
      {"postgresql://u@db/x?sslpassword=geheim", "postgresql://u@db/x?sslpassword=***"},
      {"password authentication failed for user \"u\"",
       "password authentication failed for user \"u\""},
      {"postgresql://db:5432/x", "postgresql://db:5432/x"},
      {"mail to a:b@c is not a URL", "mail to a:b@c is not a URL"},
  };
  for (const Row& row : rows) EXPECT_EQ(RedactPasswords(row.text), row.redacted);
}

}  // namespace
}  // namespace stepwell
