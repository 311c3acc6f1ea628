#include "storage/book_changes.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "storage/pg_book_change.h"
#include "storage/pg_error.h"

namespace stepwell {
namespace {

using Outcome = BookChanges::Outcome;

constexpr TrialId kTrial{7};
constexpr TrialId kOther{8};

TEST(BookChangesTest, AMomentHoldsUntilAChangeBegins) {
  for (const BookScope& scope : {BookScope::All(), BookScope::Of(kTrial)}) {
    BookChanges changes;
    const auto moment = changes.Now(kTrial);
    ASSERT_TRUE(moment);
    EXPECT_TRUE(changes.NoneSince(kTrial, *moment));
    changes.Begin(scope);
    EXPECT_FALSE(changes.NoneSince(kTrial, *moment)) << "it may have been committed";
    EXPECT_FALSE(changes.Now(kTrial));
    changes.End(scope, Outcome::kChanged);
    EXPECT_FALSE(changes.NoneSince(kTrial, *moment));
    ASSERT_TRUE(changes.Now(kTrial));
    EXPECT_TRUE(changes.NoneSince(kTrial, *changes.Now(kTrial)));
  }
}

TEST(BookChangesTest, AMomentHoldsAgainAfterAChangeThatDidNothing) {
  BookChanges changes;
  const auto moment = changes.Now(kTrial);
  changes.Begin(BookScope::All());
  changes.Begin(BookScope::Of(kTrial));
  changes.End(BookScope::All(), Outcome::kNothing);
  EXPECT_FALSE(changes.NoneSince(kTrial, *moment)) << "another is under way";
  changes.End(BookScope::Of(kTrial), Outcome::kNothing);
  EXPECT_TRUE(changes.NoneSince(kTrial, *moment));
}

TEST(BookChangesTest, ChangesOfOtherTrialsEndNoMoment) {
  BookChanges changes;
  const auto moment = changes.Now(kTrial);
  const BookScope others = BookScope::Of({kOther, TrialId{9}, kOther});
  changes.Begin(others);
  EXPECT_TRUE(changes.NoneSince(kTrial, *moment));
  EXPECT_FALSE(changes.Now(kOther));
  changes.End(others, Outcome::kChanged);
  EXPECT_TRUE(changes.NoneSince(kTrial, *moment));
  EXPECT_FALSE(changes.NoneSince(kOther, *moment));
  // What was begun as anybody's turns out to be one trial's.
  changes.Begin(BookScope::All());
  EXPECT_FALSE(changes.Now(kTrial));
  const auto of_other = changes.Now(kOther);
  changes.End(BookScope::All(), Outcome::kChanged, BookScope::Of(kOther));
  EXPECT_TRUE(changes.NoneSince(kTrial, *moment));
  EXPECT_NE(changes.Now(kOther), of_other);
}

TEST(BookChangesTest, ManyTrialsAreForgottenAsChanged) {
  BookChanges changes;
  const auto moment = changes.Now(kTrial);
  changes.Begin(BookScope::Of(kOther));
  std::vector<TrialId> trials;
  for (std::size_t i = 0; i <= BookChanges::kTrialsMax; ++i) {
    trials.push_back(TrialId{static_cast<std::int64_t>(100 + i)});
  }
  changes.Begin(BookScope::Of(trials));
  const auto before = changes.Now(kTrial);
  EXPECT_EQ(before, moment);
  changes.End(BookScope::Of(trials), Outcome::kChanged);
  EXPECT_FALSE(changes.NoneSince(kTrial, *moment));
  EXPECT_TRUE(changes.Now(kTrial));
  EXPECT_FALSE(changes.Now(kOther)) << "its own is still under way";
  changes.End(BookScope::Of(kOther), Outcome::kNothing);
  EXPECT_TRUE(changes.Now(kOther));
  EXPECT_FALSE(changes.NoneSince(trials.front(), *moment));
}

TEST(BookChangesTest, NothingHoldsForAWhileAfterAChangeInDoubt) {
  FakeClock clock;
  BookChanges changes(clock);
  const auto moment = changes.Now(kTrial);
  changes.Begin(BookScope::Of(kOther));
  changes.End(BookScope::Of(kOther), Outcome::kInDoubt);
  EXPECT_FALSE(changes.Now(kTrial));
  EXPECT_FALSE(changes.NoneSince(kTrial, *moment));
  clock.Advance(BookChanges::kDoubtRest - absl::Seconds(1));
  EXPECT_FALSE(changes.Now(kOther));
  clock.Advance(absl::Seconds(1));
  EXPECT_TRUE(changes.Now(kOther));
  EXPECT_FALSE(changes.NoneSince(kOther, *moment));
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
  const auto moment = changes.Now(kTrial);
  const auto done = ChangeBook(&changes, BookScope::Of(kTrial), [&]() -> absl::StatusOr<int> {
    EXPECT_FALSE(changes.Now(kTrial));
    return 3;
  });
  EXPECT_EQ(*done, 3);
  EXPECT_FALSE(changes.NoneSince(kTrial, *moment));
  EXPECT_TRUE(ChangeBook(nullptr, BookScope::All(), [] { return absl::OkStatus(); }).ok());
}

}  // namespace
}  // namespace stepwell
