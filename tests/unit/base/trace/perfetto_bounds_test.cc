// What a hostile trace says by megabytes does not fill memory on its way into Perfetto's form.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "tests/unit/base/trace/perfetto_merging.h"

namespace stepwell {
namespace {

using testing::Merge;
using testing::Merged;
using ::testing::SizeIs;
using testing::Trace;

// Half a megabyte of gzip says as much.
TEST(PerfettoBounds, WhatIsOpenAndSaysMegabytesHasABound) {
  std::string events = R"({"ph":"X","name":"a","ts":1,"dur":1,"pid":1,"tid":1})";
  for (int i = 0; i < 100; ++i) {
    absl::StrAppend(&events, R"(,{"ph":"B","name":"b","ts":2,"pid":1,"tid":)", i,
                    R"(,"args":{"x":")", std::string(1 << 20, 'x'), R"("}})");
  }
  const Merged merged = Merge({Trace(0, events)});
  EXPECT_THAT(merged.trace.Named("b"), SizeIs(63));
  EXPECT_EQ(merged.left_out, 37);
}

TEST(PerfettoBounds, AnEndLooksForItsBeginAmongSomeOfTheInnermostAlone) {
  std::string events = R"({"ph":"B","name":"outermost","ts":1,"pid":1,"tid":1})";
  for (int i = 0; i < 300; ++i) {
    absl::StrAppend(&events, R"(,{"ph":"B","name":"inner","ts":2,"pid":1,"tid":1})");
  }
  absl::StrAppend(&events, R"(,{"ph":"E","name":"outermost","ts":3,"pid":1,"tid":1})");
  EXPECT_EQ(Merge({Trace(0, events)}).left_out, 1);
}

// Each is written where it is said from then on, and held by nobody.
TEST(PerfettoBounds, NamesAsLongAsAnEventDoNotFillMemory) {
  constexpr int kNames = 20;
  std::string events;
  for (int i = 0; i < 2 * kNames; ++i) {
    absl::StrAppend(&events, i == 0 ? "" : ",", R"({"ph":"X","ts":)", 10 * i,
                    R"(,"dur":1,"pid":1,"tid":1,"name":")", i % kNames, std::string(1 << 20, 'n'),
                    R"("})");
  }
  const Merged merged = Merge({Trace(0, events)}, {.is_packed = false});
  EXPECT_EQ(merged.left_out, 0);
  EXPECT_GT(merged.bytes.size(), (8U + 2 * 12) << 20);
  for (int i = 0; i < kNames; ++i) {
    EXPECT_THAT(merged.trace.Named(absl::StrCat(i, std::string(1 << 20, 'n'))), SizeIs(2)) << i;
  }
}

}  // namespace
}  // namespace stepwell
