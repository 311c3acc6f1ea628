#include "client/recorder/src/catalog.h"

#include <gtest/gtest.h>

namespace stepwell::recorder {
namespace {

TEST(CatalogTest, JudgesUtf8) {
  const struct {
    const char* name;
    std::string_view text;
    bool is_utf8;
  } rows[] = {
      {"empty", "", true},
      {"ascii", "train", true},
      {"two bytes", "\xc3\xa4", true},
      {"three bytes", "\xe2\x82\xac", true},
      {"four bytes", "\xf0\x9f\x99\x82", true},
      {"lone continuation", "\x80", false},
      {"cut short", "\xe2\x82", false},
      {"overlong two", "\xc0\x80", false},
      {"overlong three", "\xe0\x80\x80", false},
      {"overlong four", "\xf0\x80\x80\x80", false},
      {"surrogate", "\xed\xa0\x80", false},
      {"last before surrogates", "\xed\x9f\xbf", true},
      {"above the last plane", "\xf4\x90\x80\x80", false},
      {"latin one", "caf\xe9", false},
  };
  for (const auto& row : rows) {
    SCOPED_TRACE(row.name);
    EXPECT_EQ(IsUtf8(row.text), row.is_utf8);
  }
}

TEST(CatalogTest, JudgesScopeNames) {
  const struct {
    const char* name;
    std::string text;
    bool is_legal;
  } rows[] = {
      {"plain", "train_batch", true},
      {"spaces", "my scope", true},
      {"empty", "", false},
      {"slash", "a/b", false},
      {"reserved", "step", false},
      {"like reserved", "steps", true},
      {"count", "forward.count", false},
      {"newline", "a\nb", false},
      {"longest", std::string(200, 'x'), true},
      {"too long", std::string(201, 'x'), false},
      {"bad utf-8", "\xff", false},
  };
  for (const auto& row : rows) {
    SCOPED_TRACE(row.name);
    EXPECT_EQ(IsScopeName(row.text), row.is_legal);
    EXPECT_EQ(Catalog().DefineScope({std::string(row.text)}) != 0, row.is_legal);
  }
}

SeriesDefinition Loss() {
  return {.group = "training", .name = "loss", .unit = "1", .labels = {{"layer", "3"}}};
}

TEST(CatalogTest, JudgesSeries) {
  const struct {
    const char* name;
    void (*change)(SeriesDefinition&);
    bool is_legal;
  } rows[] = {
      {"as it is", [](SeriesDefinition&) {}, true},
      {"no group", [](SeriesDefinition& s) { s.group = ""; }, false},
      {"no name", [](SeriesDefinition& s) { s.name = ""; }, false},
      {"no unit", [](SeriesDefinition& s) { s.unit = ""; }, true},
      {"slash in the name", [](SeriesDefinition& s) { s.name = "val/loss"; }, true},
      {"empty label value", [](SeriesDefinition& s) { s.labels["layer"] = ""; }, true},
      {"empty label name", [](SeriesDefinition& s) { s.labels[""] = "x"; }, false},
      {"reserved label", [](SeriesDefinition& s) { s.labels["rank"] = "1"; }, false},
      {"which loader", [](SeriesDefinition& s) { s.labels["loader"] = "eval"; }, true},
      {"long label", [](SeriesDefinition& s) { s.labels["l"] = std::string(1025, 'x'); }, false},
      {"too many labels",
       [](SeriesDefinition& s) {
         for (int i = 0; i < 32; ++i) s.labels[std::to_string(i)] = "";
       },
       false},
  };
  for (const auto& row : rows) {
    SCOPED_TRACE(row.name);
    SeriesDefinition series = Loss();
    row.change(series);
    EXPECT_EQ(IsSeries(series), row.is_legal);
  }
}

TEST(CatalogTest, TheSameAgainHasTheSameId) {
  Catalog catalog;
  EXPECT_EQ(catalog.DefineScope({"a"}), 1u);
  EXPECT_EQ(catalog.DefineScope({"b"}), 2u);
  EXPECT_EQ(catalog.DefineScope({"a"}), 1u);
  const ScopeDefinition labelled{"a", {{"loader", "train"}}};
  EXPECT_EQ(catalog.DefineScope(labelled), 3u);
  EXPECT_EQ(catalog.DefineScope(labelled), 3u);
  const std::uint32_t loss = catalog.DefineSeries(Loss());
  SeriesDefinition other = Loss();
  other.labels["layer"] = "4";
  EXPECT_NE(catalog.DefineSeries(other), loss);
  EXPECT_EQ(catalog.DefineSeries(Loss()), loss);
  EXPECT_EQ(catalog.series(loss), Loss());
  EXPECT_EQ(catalog.scope(2), ScopeDefinition{"b"});
  EXPECT_EQ(catalog.scope(3), labelled);
}

TEST(CatalogTest, ScopesAreRefusedTheLabelsThatSeriesAre) {
  for (const char* name : {"rank", "agent", "device", "worker", "", "\n"}) {
    EXPECT_FALSE(IsScope({"a", {{name, "x"}}})) << name;
  }
  EXPECT_TRUE(IsScope({"a", {{"loader", "train"}, {"clock", "device"}}}));
  EXPECT_FALSE(IsScope({"a", {{"loader", "a\nb"}}}));
  EXPECT_FALSE(IsScope({"a/b", {{"loader", "train"}}}));
}

TEST(CatalogTest, IsBounded) {
  Catalog catalog;
  for (std::size_t i = 0; i < kScopeNameCountMax; ++i) {
    ASSERT_NE(catalog.DefineScope({std::to_string(i)}), 0u);
  }
  EXPECT_EQ(catalog.DefineScope({"one more"}), 0u);
  EXPECT_EQ(catalog.DefineScope({"0"}), 1u);
  SeriesDefinition series = Loss();
  for (std::size_t i = 0; i < kSeriesCountMax; ++i) {
    series.name = std::to_string(i);
    ASSERT_NE(catalog.DefineSeries(series), 0u);
  }
  EXPECT_EQ(catalog.DefineSeries(Loss()), 0u);
}

}  // namespace
}  // namespace stepwell::recorder
