#include "client/cli/top_line.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <limits>

namespace stepwell::cli {
namespace {

TEST(TopLineTest, FitsTextsToColumns) {
  struct Row {
    const char* name;
    const char* text;
    int columns;
    Charset charset;
    const char* fitted;
  };
  const Row rows[] = {
      {"short", "step", 4, Charset::kUtf8, "step"},
      {"cut", "train_batch", 6, Charset::kUtf8, "train…"},
      {"cut in ASCII", "train_batch", 6, Charset::kAscii, "train~"},
      {"one column", "step", 1, Charset::kUtf8, "…"},
      {"no column", "step", 0, Charset::kUtf8, ""},
      {"wide characters take two", "学习率", 6, Charset::kUtf8, "学习率"},
      {"half a wide one is none", "学习率", 4, Charset::kUtf8, "学…"},
      {"combining marks take none", "e\u0301te\u0301", 3, Charset::kUtf8, "e\u0301te\u0301"},
      {"micro in ASCII", "12 µs", 9, Charset::kAscii, "12 us"},
      {"others in ASCII", "学é", 9, Charset::kAscii, "??"},
      {"escape codes are shown", "a\033[2Jb", 9, Charset::kUtf8, "a?[2Jb"},
      {"C1 codes too", "a\u009b2Jb", 9, Charset::kUtf8, "a?2Jb"},
      {"direction marks", "a\u202eb", 9, Charset::kUtf8, "a?b"},
      {"broken UTF-8", "a\xe2\x82", 9, Charset::kUtf8, "a??"},
      {"bytes that are none", "\xff\xc0z", 9, Charset::kUtf8, "??z"},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.name);
    EXPECT_EQ(FitText(row.text, row.columns, row.charset), row.fitted);
    EXPECT_LE(ColumnsOf(FitText(row.text, row.columns, row.charset)), row.columns);
  }
}

TEST(TopLineTest, KeepsTails) {
  EXPECT_EQ(FitTail("GPU-1a2b-0001", 13, Charset::kUtf8), "GPU-1a2b-0001");
  EXPECT_EQ(FitTail("GPU-1a2b-0001", 6, Charset::kUtf8), "…-0001");
  EXPECT_EQ(FitTail("GPU-1a2b-0001", 6, Charset::kAscii), "~-0001");
  EXPECT_EQ(FitTail("学习率", 4, Charset::kUtf8), "…率");
  EXPECT_EQ(FitTail("ab", 0, Charset::kUtf8), "");
}

TEST(TopLineTest, DrawsBars) {
  EXPECT_EQ(MeterText(0.5, 4, Charset::kUtf8), "██");
  EXPECT_EQ(MeterText(0.5, 4, Charset::kAscii), "##");
  EXPECT_EQ(MeterText(2, 4, Charset::kAscii), "####") << "never beyond its columns";
  EXPECT_EQ(MeterText(NAN, 4, Charset::kAscii), "");
}

TEST(TopLineTest, DrawsSparklines) {
  const std::vector<double> rise = {0, 1, 2, 3, 4, 5, 6, 7};
  EXPECT_EQ(SparkText(rise, 0, 8, 8, Charset::kUtf8), "▁▂▃▄▅▆▇█");
  EXPECT_EQ(SparkText(rise, 0, 8, 8, Charset::kAscii), "_.:-=+*#");
  EXPECT_EQ(SparkText(rise, 0, 8, 4, Charset::kUtf8), "▁▃▅▇") << "neighbours are averaged";
  EXPECT_EQ(SparkText(rise, 0, 8, 20, Charset::kUtf8), "▁▂▃▄▅▆▇█") << "never stretched";
  EXPECT_EQ(SparkText({0, NAN, 8}, 0, 8, 3, Charset::kUtf8), "▁ █") << "nothing is no zero";
  EXPECT_EQ(SparkText({-5, 99}, 0, 8, 2, Charset::kUtf8), "▁█") << "held between the bounds";
  EXPECT_EQ(SparkText(rise, 0, 8, 0, Charset::kUtf8), "");
}

TEST(TopLineTest, DrawsSparklinesOfWhatIsFartherApartThanANumberHolds) {
  constexpr double kMost = std::numeric_limits<double>::max();
  EXPECT_EQ(SparkText({-kMost, 0, kMost}, -kMost, kMost, 3, Charset::kUtf8), "▁▅█");
  EXPECT_EQ(SparkText({kMost, kMost}, 0, INFINITY, 1, Charset::kUtf8), "▁")
      << "their mean overflows";
}

TEST(TopLineTest, ShowsNoBytesThatAreNoCharacter) {
  // A longer form than it needs, half of a pair, beyond the last.
  EXPECT_EQ(FitText("\xe0\x9f\xbf", 9, Charset::kUtf8), "???");
  EXPECT_EQ(FitText("\xed\xa0\x80", 9, Charset::kUtf8), "???");
  EXPECT_EQ(FitText("\xf4\x90\x80\x80", 9, Charset::kUtf8), "????");
}

TEST(TopLineTest, IsNeverWiderThanTheScreen) {
  TopLook look;
  look.columns = 10;
  TopLine line(look);
  line.Add("name").PadTo(6).AddRight("123456789", 9);
  EXPECT_EQ(line.left(), 0);
  EXPECT_EQ(line.Take(), "name  123…");
}

TEST(TopLineTest, HasNoBlanksAtItsEndAndColoursOnlyTexts) {
  TopLook look;
  look.paint = Paint(Colours::kOn);
  TopLine line(look);
  line.Add("a", Tone::kBold).PadTo(3).Add("b").PadTo(20);
  EXPECT_EQ(line.Take(), "\033[1ma\033[0m  b");
}

TEST(TopLineTest, KnowsTheLocale) {
  struct Row {
    const char* all;
    const char* ctype;
    const char* lang;
    Charset charset;
  };
  const Row rows[] = {{"", "", "", Charset::kAscii},
                      {"", "", "C.UTF-8", Charset::kUtf8},
                      {"", "de_DE.utf8", "C", Charset::kUtf8},
                      {"C", "en_US.UTF-8", "en_US.UTF-8", Charset::kAscii},
                      {"", "", "de_DE.ISO-8859-1", Charset::kAscii}};
  for (const Row& row : rows) {
    setenv("LC_ALL", row.all, 1);
    setenv("LC_CTYPE", row.ctype, 1);
    setenv("LANG", row.lang, 1);
    EXPECT_EQ(CharsetOfLocale(), row.charset) << row.all << "," << row.ctype << "," << row.lang;
  }
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) unsetenv(name);
}

}  // namespace
}  // namespace stepwell::cli
