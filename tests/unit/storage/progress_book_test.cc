#include "storage/progress_book.h"

#include <gtest/gtest.h>

namespace stepwell {
namespace {

constexpr ProgressBook::Key kFirst{TrialId{7}, WriterNo{1}};
constexpr ProgressBook::Key kSecond{TrialId{7}, WriterNo{2}};

TEST(ProgressBookTest, TellsWhereAWriterOfThisGenerationStands) {
  ProgressBook book;
  book.Begin(3);
  book.Note(kFirst, 2, 41);
  EXPECT_EQ(book.Find(kFirst, 2), 41U);
  EXPECT_EQ(book.Find(kFirst, 3), std::nullopt) << "it was opened again, and is read again";
  EXPECT_EQ(book.Find(kSecond, 2), std::nullopt);
  book.Note(kFirst, 2, 42);
  EXPECT_EQ(book.Find(kFirst, 2), 42U);
  book.Forget(kFirst);
  EXPECT_EQ(book.Find(kFirst, 2), std::nullopt);
}

TEST(ProgressBookTest, CountsOnlyAsLongAsItIsTheNewest) {
  ProgressBook book;
  EXPECT_FALSE(book.Holds(0)) << "none was begun";
  book.Begin(3);
  book.Note(kFirst, 2, 41);
  EXPECT_TRUE(book.Holds(3));
  EXPECT_EQ(book.Find(kFirst, 2), 41U);
  EXPECT_FALSE(book.Holds(4));
  EXPECT_FALSE(book.is_open());
  EXPECT_EQ(book.Find(kFirst, 2), std::nullopt);
  book.Note(kFirst, 2, 42);
  EXPECT_EQ(book.writer_count(), 0U) << "what follows may have been passed by others";
  book.Begin(5);
  EXPECT_TRUE(book.Holds(5));
  EXPECT_EQ(book.Find(kFirst, 2), std::nullopt);
  book.End();
  EXPECT_FALSE(book.Holds(5));
}

TEST(ProgressBookTest, IsBounded) {
  ProgressBook book(2);
  book.Begin(1);
  book.Note(kFirst, 1, 1);
  book.Note(kSecond, 1, 1);
  book.Note(kSecond, 1, 2);
  EXPECT_EQ(book.writer_count(), 2U);
  book.Note({TrialId{8}, WriterNo{1}}, 1, 5);
  EXPECT_EQ(book.writer_count(), 1U);
  EXPECT_EQ(book.Find({TrialId{8}, WriterNo{1}}, 1), 5U);
}

}  // namespace
}  // namespace stepwell
