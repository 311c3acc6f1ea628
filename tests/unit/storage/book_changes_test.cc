#include "storage/book_changes.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "storage/pg_book_change.h"
#include "storage/pg_error.h"

namespace stepwell {
namespace {

using Outcome = BookChanges::Outcome;

TEST(BookChangesTest, AMomentHoldsUntilAChangeBegins) {
  BookChanges changes;
  const auto moment = changes.Now();
  ASSERT_TRUE(moment);
  EXPECT_TRUE(changes.NoneSince(*moment));
  changes.Begin();
  EXPECT_FALSE(changes.NoneSince(*moment)) << "it may have been committed";
  EXPECT_FALSE(changes.Now());
  changes.End(Outcome::kChanged);
  EXPECT_FALSE(changes.NoneSince(*moment));
  ASSERT_TRUE(changes.Now());
  EXPECT_TRUE(changes.NoneSince(*changes.Now()));
}

TEST(BookChangesTest, AMomentHoldsAgainAfterAChangeThatDidNothing) {
  BookChanges changes;
  const auto moment = changes.Now();
  changes.Begin();
  changes.Begin();
  changes.End(Outcome::kNothing);
  EXPECT_FALSE(changes.NoneSince(*moment)) << "another is under way";
  changes.End(Outcome::kNothing);
  EXPECT_TRUE(changes.NoneSince(*moment));
}

TEST(BookChangesTest, NothingHoldsForAWhileAfterAChangeInDoubt) {
  FakeClock clock;
  BookChanges changes(clock);
  const auto moment = changes.Now();
  changes.Begin();
  changes.End(Outcome::kInDoubt);
  EXPECT_FALSE(changes.Now());
  clock.Advance(BookChanges::kDoubtRest - absl::Seconds(1));
  EXPECT_FALSE(changes.Now());
  clock.Advance(absl::Seconds(1));
  EXPECT_TRUE(changes.Now());
  EXPECT_FALSE(changes.NoneSince(*moment));
}

TEST(BookChangesTest, OnlyAnAnswerOfTheServerSettlesAFailedTransaction) {
  struct Row {
    std::string name;
    absl::Status status;
    Outcome outcome;
  };
  const std::vector<Row> rows = {
      {"done", absl::OkStatus(), Outcome::kChanged},
      {"refused by us", absl::NotFoundError("no trial"), Outcome::kChanged},
      {"another owner", absl::AbortedError("another master"), Outcome::kChanged},
      {"a constraint", PgError("23505", "duplicate"), Outcome::kChanged},
      {"a deadlock", PgError("40P01", "deadlock"), Outcome::kChanged},
      {"a statement's timeout", PgError("57014", "canceled"), Outcome::kChanged},
      {"ended by a person", PgError("57P01", "terminated"), Outcome::kInDoubt},
      {"no connection", PgError("08006", "gone"), Outcome::kInDoubt},
      {"no answer", PgError("", "server closed the connection"), Outcome::kInDoubt},
      {"an unknown COMMIT", CommitUnknown("no answer"), Outcome::kInDoubt},
      {"cut off", absl::UnavailableError("stopping"), Outcome::kInDoubt},
      {"too late", absl::DeadlineExceededError("no reply"), Outcome::kInDoubt},
  };
  for (const Row& row : rows) EXPECT_EQ(ChangeOutcome(row.status), row.outcome) << row.name;
}

TEST(BookChangesTest, WorkIsTold) {
  BookChanges changes;
  const auto moment = changes.Now();
  const auto done = ChangeBook(&changes, [&]() -> absl::StatusOr<int> {
    EXPECT_FALSE(changes.Now());
    return 3;
  });
  EXPECT_EQ(*done, 3);
  EXPECT_FALSE(changes.NoneSince(*moment));
  EXPECT_TRUE(ChangeBook(nullptr, [] { return absl::OkStatus(); }).ok());
}

}  // namespace
}  // namespace stepwell
