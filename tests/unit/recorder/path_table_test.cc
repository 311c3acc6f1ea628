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
    }
  }
  EXPECT_EQ(table.Find(100, 1), 0u);
  EXPECT_EQ(table.Find(0, 100), 0u);
}

}  // namespace
}  // namespace stepwell::recorder
