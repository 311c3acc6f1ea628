// What comes from elsewhere moves no cursor.
#include "client/cli/terminal.h"

#include <gtest/gtest.h>

#include "tests/unit/cli/outcome.h"
#include "tests/unit/cli/small_master.h"

namespace stepwell::cli {
namespace {

TEST(TerminalTest, ControlCharactersAndBytesThatAreNoTextAreShownAsNumbers) {
  const struct {
    const char* name;
    std::string text;
    std::string shown;
  } rows[] = {
      {"text", "r\xC3\xA9sum\xC3\xA9 \xE2\x82\xAC \xF0\x9F\x98\x80",
       "r\xC3\xA9sum\xC3\xA9 \xE2\x82\xAC \xF0\x9F\x98\x80"},
      {"nothing", "", ""},
      {"C0 and DEL", "a\033[2J\n\t\x7F", R"(a\x1b[2J\x0a\x09\x7f)"},
      {"NUL", std::string("a\0b", 3), R"(a\x00b)"},
      {"C1 as UTF-8",
       "\xC2\x9B"
       "31m\xC2\x80\xC2\x9F\xC2\xA0",
       R"(\xc2\x9b31m\xc2\x80\xc2\x9f)"
       "\xC2\xA0"},
      {"C1 as it is",
       "\x9B"
       "2J",
       R"(\x9b2J)"},
      {"a cut character", "x\xE2\x82", R"(x\xe2\x82)"},
      {"overlong", "\xC0\x9B", R"(\xc0\x9b)"},
      {"a surrogate", "\xED\xA0\x80!", R"(\xed\xa0\x80!)"},
  };
  for (const auto& row : rows) EXPECT_EQ(Printable(row.text), row.shown) << row.name;
}

TEST(TerminalTest, LinesStayLines) {
  EXPECT_EQ(PrintableLines("one\033]0;x\007\ntwo\r\n"), "one\\x1b]0;x\\x07\ntwo\\x0d\n");
  EXPECT_EQ(PrintableLines(""), "");
}

// It says again what it was asked about.
TEST(TerminalTest, WhatAMasterSaysMovesNoCursor) {
  const SmallMaster master;
  const Outcome outcome = RunWords({"read",
                                    "none\xC2\x9B"
                                    "2J",
                                    "--server", master.address()});
  EXPECT_NE(outcome.err.find("there is no trial 'none\\xc2\\x9b2J'"), std::string::npos)
      << outcome.err;
  EXPECT_EQ(outcome.err.find('\x9B'), std::string::npos);
}

}  // namespace
}  // namespace stepwell::cli
