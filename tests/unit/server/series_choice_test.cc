#include "server/series_choice.h"

#include <gtest/gtest.h>

namespace stepwell {
namespace {

Series Made(int no, const std::string& group, const std::string& name, Labels labels = {}) {
  return {static_cast<SeriesNo>(no), {{group, name, std::move(labels)}, "", SeriesKind::kGauge}};
}

TEST(SeriesChoiceTest, EveryConditionThatIsGivenMustHold) {
  const Series series = Made(7, "gpu", "gpu_util", {{"device", "0"}, {"rank", "1"}});
  const struct {
    const char* name;
    SeriesSelection selection;
    bool matches;
  } rows[] = {
      {"nothing given", {}, true},
      {"group", {.metric_group = "gpu"}, true},
      {"other group", {.metric_group = "cpu"}, false},
      {"part of a name", {.name = "gpu"}, false},
      {"group and name", {.metric_group = "gpu", .name = "gpu_util"}, true},
      {"group and other name", {.metric_group = "gpu", .name = "x"}, false},
      {"one label", {.labels = {{"rank", "1"}}}, true},
      {"both labels", {.labels = {{"device", "0"}, {"rank", "1"}}}, true},
      {"other value", {.labels = {{"device", "0"}, {"rank", "2"}}}, false},
      {"label it has not", {.labels = {{"worker", ""}}}, false},
      {"its number", {.series_nos = {3, 7}}, true},
      {"other numbers", {.series_nos = {3, 8}}, false},
      {"its number, other name", {.name = "x", .series_nos = {7}}, false},
  };
  for (const auto& row : rows) {
    EXPECT_EQ(Matches(row.selection, series), row.matches) << row.name;
  }
}

TEST(SeriesChoiceTest, IsLearntAsSamplesCome) {
  SeriesChoice choice({{.name = "a"}, {.name = "b"}});
  auto chunk = std::make_shared<HeadChunk>();
  chunk->tables = {{1, {10}, {-1}, {}}, {2, {10}, {-1}, {}}};
  for (const int no : {5, 2, 9}) {
    chunk->tables[0].columns.push_back({static_cast<SeriesNo>(no), {1.0}, {}});
  }
  chunk->tables[0].columns.push_back({static_cast<SeriesNo>(4), {}, {0}});  // misses alone
  chunk->tables[1].columns.push_back({static_cast<SeriesNo>(5), {1.0}, {}});
  const std::vector<SeriesNo> all = {static_cast<SeriesNo>(2), static_cast<SeriesNo>(5),
                                     static_cast<SeriesNo>(9)};
  EXPECT_EQ(choice.Unknown({chunk, chunk}), all);
  EXPECT_TRUE(choice.Learn(Made(5, "g", "b")));
  EXPECT_FALSE(choice.Learn(Made(2, "g", "c")));
  EXPECT_EQ(choice.Unknown({chunk}), std::vector<SeriesNo>{static_cast<SeriesNo>(9)});
  EXPECT_TRUE(choice.Holds(static_cast<SeriesNo>(5)));
  EXPECT_FALSE(choice.Holds(static_cast<SeriesNo>(2)));
  EXPECT_FALSE(choice.Holds(static_cast<SeriesNo>(9)));
}

}  // namespace
}  // namespace stepwell
