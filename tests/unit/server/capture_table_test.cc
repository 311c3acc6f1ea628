#include "server/capture_table.h"

#include <gtest/gtest.h>

namespace stepwell {
namespace {

constexpr std::uint64_t kNumber = 77;

class CaptureTableTest : public ::testing::Test {
 protected:
  static CaptureTable::Rank Open(std::int32_t rank) {
    return {.rank = rank, .writer_no = WriterNo{rank + 1}, .generation = 3};
  }
  static v1::CaptureReport Ready(std::int32_t first_batch) {
    v1::CaptureReport report;
    report.set_capture(kNumber);
    report.set_progress(v1::CAPTURE_PROGRESS_READY);
    report.set_first_batch(first_batch);
    return report;
  }
  static v1::CaptureReport Recorded(const std::string& name) {
    v1::CaptureReport report;
    report.set_capture(kNumber);
    report.set_progress(v1::CAPTURE_PROGRESS_RECORDED);
    report.set_name(name);
    report.set_step_count(5);
    report.set_span_count(40);
    return report;
  }
  static v1::CaptureReport Failed(const std::string& reason, const std::string& message) {
    v1::CaptureReport report;
    report.set_capture(kNumber);
    report.set_progress(v1::CAPTURE_PROGRESS_FAILED);
    report.set_reason(reason);
    report.set_message(message);
    return report;
  }
  void Report(std::int32_t rank, const v1::CaptureReport& report) {
    table_.Reported(WriterNo{rank + 1}, 3, report);
  }
  v1::CapturedRank Rank(int index) { return table_.Show().answer.ranks(index); }

  CaptureTable table_{
      kNumber, 5, {Open(3), Open(0), {.rank = 9, .reason = "UNKNOWN_RANK", .message = "no 9"}}};
};

TEST_F(CaptureTableTest, TheStepsBeginWhereTheRankThatIsFarthestCanGiveThem) {
  EXPECT_EQ(table_.Decide(), std::nullopt);
  Report(0, Ready(120));
  EXPECT_EQ(table_.Decide(), std::nullopt) << "one has not answered";
  Report(3, Ready(118));
  EXPECT_FALSE(table_.Show().answer.has_first_batch());
  EXPECT_EQ(table_.Decide(), 120);
  EXPECT_EQ(table_.Decide(), std::nullopt) << "once";
  // Too late to change what the others record.
  Report(3, Ready(500));
  EXPECT_EQ(table_.Show().answer.first_batch(), 120);
  EXPECT_EQ(table_.Show().answer.step_count(), 5);
}

TEST_F(CaptureTableTest, RanksComeInOrderAndEndStoredOrWithAReason) {
  EXPECT_EQ(Rank(0).rank(), 0);
  EXPECT_EQ(Rank(1).rank(), 3);
  EXPECT_EQ(Rank(2).reason(), "UNKNOWN_RANK");
  Report(0, Ready(1));
  Report(3, Failed("ALL_USERS_AGENT", "of all"));
  ASSERT_EQ(table_.Decide(), 1);
  Report(0, Recorded("a"));
  EXPECT_EQ(Rank(0).state(), v1::CAPTURE_STATE_UPLOADING);
  EXPECT_FALSE(table_.Show().answer.is_over());
  table_.Uploaded("b", 4);
  EXPECT_EQ(Rank(0).state(), v1::CAPTURE_STATE_UPLOADING);
  table_.Uploaded("a", 5);
  EXPECT_EQ(Rank(0).state(), v1::CAPTURE_STATE_STORED);
  EXPECT_EQ(Rank(0).trace_no(), 5);
  EXPECT_EQ(Rank(0).span_count(), 40);
  EXPECT_EQ(Rank(1).reason(), "ALL_USERS_AGENT");
  EXPECT_TRUE(table_.Show().answer.is_over());
}

TEST_F(CaptureTableTest, ANativeProfileIsARankOfItsOwnToWaitFor) {
  CaptureTable table(kNumber, 5, {Open(0), Open(1), Open(2), {.rank = 9, .reason = "UNKNOWN_RANK"}},
                     true);
  const auto report = [&](int rank, v1::CaptureReport told, bool native = true) {
    told.set_native(native);
    table.Reported(WriterNo{rank + 1}, 3, told);
  };
  const auto native = [&](int index) { return table.Show().answer.ranks(index).native(); };
  EXPECT_EQ(native(3).reason(), "UNKNOWN_RANK");
  for (int rank = 0; rank < 2; ++rank) report(rank, Ready(7), false);
  EXPECT_EQ(native(0).state(), v1::CAPTURE_STATE_RECORDING);
  report(2, Failed("ALL_USERS_AGENT", "of all"), false);
  EXPECT_EQ(native(2).reason(), "ALL_USERS_AGENT") << "its process was not asked";
  report(0, Recorded("early"));
  EXPECT_EQ(native(0).state(), v1::CAPTURE_STATE_RECORDING) << "of steps that nobody told";
  ASSERT_EQ(table.Decide(), 7);
  report(1, Failed("NO_PROFILER", "no torch"));
  for (int rank = 0; rank < 2; ++rank) {
    report(rank, Recorded(rank == 0 ? "a" : "b"), false);
    table.Uploaded(rank == 0 ? "a" : "b", rank + 1);
  }
  EXPECT_EQ(table.Show().answer.ranks(1).state(), v1::CAPTURE_STATE_STORED);
  EXPECT_EQ(native(1).reason(), "NO_PROFILER");
  EXPECT_FALSE(table.Show().answer.is_over()) << "one profile is awaited";
  report(0, Recorded("a.pt"));
  EXPECT_EQ(native(0).state(), v1::CAPTURE_STATE_UPLOADING);
  EXPECT_EQ(native(0).step_count(), 5);
  table.Uploaded("a.pt", 4);
  EXPECT_EQ(native(0).state(), v1::CAPTURE_STATE_STORED);
  EXPECT_EQ(native(0).trace_no(), 4);
  EXPECT_TRUE(table.Show().answer.is_over());
}

TEST_F(CaptureTableTest, ANativeProfileThatDoesNotComeEndsWithAReason) {
  CaptureTable table(kNumber, 5, {Open(0), Open(1), Open(2)}, true);
  const auto native = [&](int index) { return table.Show().answer.ranks(index).native(); };
  for (int rank = 0; rank < 3; ++rank) table.Reported(WriterNo{rank + 1}, 3, Ready(7));
  ASSERT_EQ(table.Decide(), 7);
  table.Fail(WriterNo{1}, v1::CAPTURE_STATE_RECORDING, "STREAM_ENDED", "gone");
  EXPECT_EQ(native(0).reason(), "STREAM_ENDED");
  // That of the rank is refused, and its profile may come.
  table.Reported(WriterNo{2}, 3, Recorded("b"));
  table.NotUploaded("b", absl::ResourceExhaustedError("cap"));
  EXPECT_EQ(table.Show().answer.ranks(1).reason(), "UPLOAD_REFUSED");
  EXPECT_EQ(native(1).state(), v1::CAPTURE_STATE_RECORDING);
  v1::CaptureReport handed_over = Recorded("c.pt");
  handed_over.set_native(true);
  table.Reported(WriterNo{3}, 3, handed_over);
  table.FailNative(v1::CAPTURE_STATE_RECORDING, "PROFILE_MISSING", "late");
  EXPECT_EQ(native(1).reason(), "PROFILE_MISSING");
  EXPECT_EQ(native(2).state(), v1::CAPTURE_STATE_UPLOADING);
  table.NotUploaded("c.pt", absl::ResourceExhaustedError("cap"));
  EXPECT_EQ(native(2).reason(), "UPLOAD_REFUSED");
}

TEST_F(CaptureTableTest, AnUploadThatIsOverBeforeItsReportCounts) {
  Report(0, Ready(1));
  Report(3, Ready(1));
  ASSERT_EQ(table_.Decide(), 1);
  table_.Uploaded("a", 5);
  table_.NotUploaded("b", absl::ResourceExhaustedError("1 GiB are kept already"));
  Report(0, Recorded("a"));
  Report(3, Recorded("b"));
  EXPECT_EQ(Rank(0).trace_no(), 5);
  EXPECT_EQ(Rank(1).reason(), "UPLOAD_REFUSED");
  EXPECT_EQ(Rank(1).message(), "1 GiB are kept already");
}

TEST_F(CaptureTableTest, WhatIsNotOfThisCaptureChangesNothing) {
  const std::uint64_t version = table_.Show().version;
  v1::CaptureReport of_another = Ready(7);
  of_another.set_capture(kNumber + 1);
  Report(0, of_another);
  table_.Reported(WriterNo{1}, 2, Ready(7));   // of the stream before
  table_.Reported(WriterNo{44}, 3, Ready(7));  // of nobody's
  Report(0, Recorded("early"));                // without steps
  v1::CaptureReport unknown = Ready(7);
  unknown.set_progress(static_cast<v1::CaptureProgress>(99));
  Report(0, unknown);
  EXPECT_EQ(table_.Show().version, version);
  EXPECT_EQ(table_.In(v1::CAPTURE_STATE_ASKED).size(), 2U);
}

TEST_F(CaptureTableTest, NonsenseOfAnAgentIsTamed) {
  Report(0, Ready(-5));
  Report(3, Failed("no\nreason", std::string(5000, 'x') + "\x1b[2J"));
  ASSERT_EQ(table_.Decide(), 0);
  v1::CaptureReport recorded = Recorded("a\x07");
  recorded.set_step_count(-3);
  recorded.set_span_count(-3);
  Report(0, recorded);
  EXPECT_EQ(Rank(0).name(), "a?");
  EXPECT_EQ(Rank(0).step_count(), 0);
  EXPECT_EQ(Rank(0).span_count(), 0);
  EXPECT_EQ(Rank(1).reason(), "UNKNOWN");
  EXPECT_LE(Rank(1).message().size(), 512U);
}

TEST_F(CaptureTableTest, ARankFailsNoFurtherThanItWasMeantTo) {
  Report(0, Ready(1));
  Report(3, Ready(1));
  ASSERT_EQ(table_.Decide(), 1);
  Report(0, Recorded("a"));
  // Its stream ended; what it recorded comes by another way.
  table_.Fail(WriterNo{1}, v1::CAPTURE_STATE_RECORDING, "STREAM_ENDED", "");
  EXPECT_EQ(Rank(0).state(), v1::CAPTURE_STATE_UPLOADING);
  // Unless its agent could not keep it.
  Report(0, Failed("NOT_WRITTEN", "disk full"));
  EXPECT_EQ(Rank(0).reason(), "NOT_WRITTEN");
}

}  // namespace
}  // namespace stepwell
