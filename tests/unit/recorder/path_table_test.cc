#include "client/recorder/src/path_table.h"

#include <gtest/gtest.h>

namespace stepwell::recorder {
namespace {

TEST(PathTableTest, FindsWhatWasAddedAndNothingElse) {
  PathTable table;
  EXPECT_EQ(table.Find(0, 1), 0u);
  std::uint32_t path = 0;
  for (std::uint32_t parent = 0; parent < 100; ++parent) {
    for (std::uint32_t scope = 1; scope < 100; ++scope) table.Add(parent, scope, ++path);
  }
  path = 0;
  for (std::uint32_t parent = 0; parent < 100; ++parent) {
    for (std::uint32_t scope = 1; scope < 100; ++scope) {
      ASSERT_EQ(table.Find(parent, scope), ++path) << parent << " " << scope;
      ASSERT_EQ(table.ScopeOf(path), scope) << parent;
    }
  }
  EXPECT_EQ(table.Find(100, 1), 0u);
  EXPECT_EQ(table.Find(0, 100), 0u);
  EXPECT_EQ(table.ScopeOf(0), 0u);
  EXPECT_EQ(table.ScopeOf(path + 1), 0u);
}

TEST(PathTableTest, PathsComeInAnyOrder) {
  PathTable table;  // others' threads take numbers between
  table.Add(0, 7, 900);
  table.Add(900, 8, 3);
  EXPECT_EQ(table.ScopeOf(900), 7u);
  EXPECT_EQ(table.ScopeOf(3), 8u);
  EXPECT_EQ(table.ScopeOf(4), 0u);
}

}  // namespace
}  // namespace stepwell::recorder
