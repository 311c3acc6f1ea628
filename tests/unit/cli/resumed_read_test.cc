#include "client/cli/resumed_read.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace stepwell::cli {
namespace {

// A master of `message_count` messages with one sample each; calls break off as told.
class ResumedReadTest : public ::testing::Test {
 protected:
  struct Call {
    int messages = 1 << 30;  // that it gives before it ends so
    absl::Status ending = absl::OkStatus();
  };

  absl::Status Answer(const v1::ReadSamplesRequest& request, const ResumedRead::Take& take) {
    int next = 0;
    EXPECT_TRUE(request.cursor().empty() || absl::SimpleAtoi(request.cursor(), &next));
    const Call call = call_count_ < calls_.size() ? calls_[call_count_] : Call{0, last_ending_};
    ++call_count_;
    for (int given = 0; given < call.messages && next < message_count_; ++given) {
      v1::ReadSamplesResponse message;
      message.add_values(next++);
      message.set_cursor(absl::StrCat(next));
      if (next == message_count_) message.mutable_completeness();
      if (!take(message)) return absl::OkStatus();
    }
    return call.ending;
  }

  absl::Status Run(int wanted = 1 << 30) {
    ResumedRead read(
        {.call = [&](const auto& request, const auto& take) { return Answer(request, take); },
         .wait =
             [&](absl::Duration time) {
               clock_.Advance(time);
               return ++wait_count_ < stop_at_;
             },
         .on_break = [&](const absl::Status& why) { told_.push_back(std::string(why.message())); },
         .clock = clock_});
    return read.Run({}, [&](const v1::ReadSamplesResponse& response) {
      taken_.push_back(static_cast<int>(response.values(0)));
      return static_cast<int>(taken_.size()) < wanted;
    });
  }

  // Each once, in order.
  void ExpectTaken(int count) {
    ASSERT_EQ(static_cast<int>(taken_.size()), count);
    for (int i = 0; i < count; ++i) EXPECT_EQ(taken_[static_cast<std::size_t>(i)], i);
  }

  FakeClock clock_;
  int message_count_ = 10;
  std::vector<Call> calls_;
  absl::Status last_ending_ = absl::UnavailableError("gone");
  std::size_t call_count_ = 0;
  int wait_count_ = 0;
  int stop_at_ = 1 << 30;
  std::vector<std::string> told_;
  std::vector<int> taken_;
};

TEST_F(ResumedReadTest, OneCallIsEnoughWhereNothingBreaks) {
  calls_ = {{}};
  EXPECT_TRUE(Run().ok());
  ExpectTaken(10);
  EXPECT_EQ(wait_count_, 0);
}

TEST_F(ResumedReadTest, GoesOnBehindTheLastMessage) {
  calls_ = {{3, absl::UnavailableError("restarts")},
            {0, absl::UnavailableError("not yet")},
            {0, absl::ResourceExhaustedError("others read")},
            {4, absl::DeadlineExceededError("60 s")},
            {1, absl::CancelledError("drains")},
            {1, absl::OkStatus()},
            {}};
  EXPECT_TRUE(Run().ok());
  ExpectTaken(10);
  EXPECT_EQ(told_, (std::vector<std::string>{"restarts", "60 s", "drains",
                                             "the answer ended before its last message"}));
}

TEST_F(ResumedReadTest, WhatBroughtNothingIsNotTriedAgain) {
  calls_ = {{0, absl::UnavailableError("refused")}, {}};
  EXPECT_EQ(Run().message(), "refused");
  EXPECT_EQ(call_count_, 1u);
}

TEST_F(ResumedReadTest, RealFailuresEndIt) {
  for (const absl::Status& status :
       {absl::InternalError("bug"), absl::DataLossError("row"),
        absl::InvalidArgumentError("cursor"), absl::NotFoundError("deleted")}) {
    calls_ = {{3, status}, {}};
    call_count_ = 0;
    EXPECT_EQ(Run(), status);
    EXPECT_EQ(call_count_, 1u);
  }
}

TEST_F(ResumedReadTest, GivesUpAfterAMinuteWithoutAMessage) {
  calls_ = {{3, absl::UnavailableError("dies")}};
  const absl::Duration start = clock_.Monotonic();
  EXPECT_EQ(Run(), last_ending_);
  ExpectTaken(3);
  EXPECT_GE(clock_.Monotonic() - start, absl::Minutes(1));
  EXPECT_LT(clock_.Monotonic() - start, absl::Seconds(63));
  EXPECT_EQ(told_.size(), 1u) << "once for a break, not for each try";
}

TEST_F(ResumedReadTest, StopsWhenItIsTold) {
  calls_ = {{3, absl::UnavailableError("dies")}};
  stop_at_ = 2;
  EXPECT_TRUE(absl::IsCancelled(Run()));
  EXPECT_EQ(call_count_, 2u);
  ExpectTaken(3);
}

TEST_F(ResumedReadTest, TakesNoMoreThanIsWanted) {
  calls_ = {{}};
  EXPECT_TRUE(Run(4).ok());
  ExpectTaken(4);
  EXPECT_EQ(call_count_, 1u);
}

}  // namespace
}  // namespace stepwell::cli
