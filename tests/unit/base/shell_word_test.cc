#include "base/shell_word.h"

#include <gtest/gtest.h>

namespace stepwell {
namespace {

TEST(ShellWordTest, WhatAShellWouldReadOtherwiseIsQuoted) {
  EXPECT_EQ(ShellWord("/srv/data-1/a.b"), "/srv/data-1/a.b");
  EXPECT_EQ(ShellWord("two words"), "'two words'");
  EXPECT_EQ(ShellWord("$(date)"), "'$(date)'");
  EXPECT_EQ(ShellWord("it's"), "'it'\\''s'");
  EXPECT_EQ(ShellWord(""), "''");
}

}  // namespace
}  // namespace stepwell
