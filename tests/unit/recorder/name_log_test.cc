#include "client/recorder/src/name_log.h"

#include <gtest/gtest.h>

#include "tests/unit/recorder/spool_view.h"

namespace stepwell::recorder {
namespace {

class NameLogTest : public testing::Test {
 protected:
  std::vector<NameView> Read() {
    return ReadNames(std::span(room_).first(static_cast<std::size_t>(committed_.load())));
  }

  std::vector<std::byte> room_ = std::vector<std::byte>(512);
  std::atomic<std::uint64_t> committed_{0};
  NameLog log_{room_, committed_};
};

TEST_F(NameLogTest, WritesScopesWithTheirParents) {
  const std::uint32_t train = log_.FindOrAddPath(spool::kNoName, 1, {"train_batch"});
  const std::uint32_t forward = log_.FindOrAddPath(train, 2, {"forward"});
  EXPECT_EQ(log_.FindOrAddPath(train, 2, {"forward"}), forward);
  EXPECT_NE(log_.FindOrAddPath(spool::kNoName, 2, {"forward"}), forward);
  const std::vector<NameView> names = Read();
  ASSERT_EQ(names.size(), 3u);
  EXPECT_EQ(names[1].record.id, forward);
  EXPECT_EQ(names[1].record.parent, train);
  EXPECT_EQ(Shown(names, forward), "train_batch/forward");
}

TEST_F(NameLogTest, WritesTheLabelsOfScopesBehindTheirNames) {
  const std::uint32_t plain = log_.FindOrAddPath(spool::kNoName, 1, {"fetch"});
  const std::uint32_t labelled =
      log_.FindOrAddPath(spool::kNoName, 2, {"fetch", {{"loader", "train"}}});
  EXPECT_NE(labelled, plain);
  const std::vector<NameView> names = Read();
  ASSERT_EQ(names.size(), 2u);
  EXPECT_EQ(names[0].texts, (std::vector<std::string>{"fetch"}));
  EXPECT_EQ(names[1].texts, (std::vector<std::string>{"fetch", "loader", "train"}));
  EXPECT_EQ(names[1].record.text_count, 1) << "an agent that does not know labels takes it, too";
}

TEST_F(NameLogTest, WritesSeriesWhole) {
  const std::uint32_t id = log_.AddSeries({.group = "training",
                                           .name = "loss",
                                           .unit = "1",
                                           .kind = spool::SeriesKind::kCounter,
                                           .labels = {{"b", "2"}, {"a", "1"}}});
  const std::vector<NameView> names = Read();
  ASSERT_EQ(names.size(), 1u);
  EXPECT_EQ(names[0].record.id, id);
  EXPECT_EQ(names[0].record.kind, spool::NameKind::kSeries);
  EXPECT_EQ(names[0].record.series_kind, spool::SeriesKind::kCounter);
  EXPECT_EQ(names[0].texts,
            (std::vector<std::string>{"training", "loss", "1", "a", "1", "b", "2"}));
}

TEST_F(NameLogTest, EveryRecordIsAligned) {
  for (const char* name : {"a", "bb", "ccc", "dddd", "eeeee", "ffffff", "ggggggg"}) {
    ASSERT_NE(log_.FindOrAddPath(spool::kNoName, static_cast<std::uint32_t>(name[0]), {name}), 0u);
    EXPECT_EQ(committed_ % 8, 0u) << name;
  }
}

TEST_F(NameLogTest, FullIsNoNameAndHarmsNothing) {
  std::uint32_t count = 0;
  while (log_.FindOrAddPath(spool::kNoName, count + 1, {"0123456789abcdef"}) != 0) ++count;
  EXPECT_EQ(log_.FindOrAddPath(spool::kNoName, 999, {"0123456789abcdef"}), spool::kNoName);
  EXPECT_EQ(log_.FindOrAddPath(spool::kNoName, 1, {"0123456789abcdef"}), 1u);
  EXPECT_EQ(Read().size(), count);
  EXPECT_LE(committed_, room_.size());
}

TEST_F(NameLogTest, AClosedLogIsFull) {
  log_.Close();
  EXPECT_EQ(log_.AddSeries({.group = "g", .name = "n", .unit = "", .labels = {}}), spool::kNoName);
}

}  // namespace
}  // namespace stepwell::recorder
