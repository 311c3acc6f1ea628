#include "client/cli/followed_view.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

namespace stepwell::cli {
namespace {

v1::FollowSamplesResponse SomeMessage() {
  v1::FollowSamplesResponse message;
  for (const int no : {3, 5}) {
    auto& series = *message.add_series();
    series.set_series_no(no);
    series.mutable_key()->set_metric_group("g");
    series.mutable_key()->set_name(no == 3 ? "three" : "five");
    auto& samples = *message.add_samples();
    samples.set_series_no(no);
    for (int i = 0; i < 2; ++i) {
      samples.add_timestamps_us(1'763'632'882'000'000 + i * 10 + no);
      samples.add_batches(i - 1);
      samples.add_values(i == 0 ? static_cast<double>(no) : NAN);
    }
    samples.add_attempts(no);
  }
  return message;
}

TEST(FollowedViewTest, LinesOfOneMessageAreInOrderOfTime) {
  FollowedView text(SamplesView::Form::kText, 100);
  EXPECT_EQ(text.Lines(SomeMessage()),
            "2025-11-20T10:01:22.000003Z         -                         3  g/three\n"
            "2025-11-20T10:01:22.000005Z         -                         5  g/five\n"
            "2025-11-20T10:01:22.000013Z         0                       nan  g/three\n"
            "2025-11-20T10:01:22.000015Z         0                       nan  g/five\n");
  EXPECT_EQ(text.Lines({}), "");
}

TEST(FollowedViewTest, SeriesAreNamedOnceAndAttemptsMayDiffer) {
  FollowedView json(SamplesView::Form::kJson, 100);
  json.Lines(SomeMessage());
  v1::FollowSamplesResponse later = SomeMessage();
  later.clear_series();
  later.mutable_samples()->DeleteSubrange(0, 1);
  later.mutable_samples(0)->add_attempts(6);
  EXPECT_EQ(json.Lines(later),
            "{\"series_no\":5,\"series\":\"g/five\",\"time_us\":1763632882000005,\"batch\":-1,"
            "\"value\":5.0,\"attempt\":5}\n"
            "{\"series_no\":5,\"series\":\"g/five\",\"time_us\":1763632882000015,\"batch\":0,"
            "\"value\":\"NaN\",\"attempt\":6}\n");
}

TEST(FollowedViewTest, StopsAtItsLimit) {
  FollowedView view(SamplesView::Form::kText, 3);
  EXPECT_FALSE(view.full());
  const std::string lines = view.Lines(SomeMessage());
  EXPECT_EQ(std::count(lines.begin(), lines.end(), '\n'), 3);
  EXPECT_TRUE(view.full());
  EXPECT_EQ(view.Lines(SomeMessage()), "");
}

}  // namespace
}  // namespace stepwell::cli
