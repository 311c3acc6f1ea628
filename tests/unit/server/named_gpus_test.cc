#include "server/named_gpus.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_format.h"

namespace stepwell {
namespace {

TEST(NamedGpusTest, HoldsEachOnceSortedAndBounded) {
  struct Row {
    const char* name;
    std::vector<std::string> added;
    std::vector<std::string> expected;
  };
  const std::vector<Row> rows = {
      {"none", {}, {}},
      {"sorted, each once", {"b", "a", "b", "c"}, {"a", "b", "c"}},
      {"no name", {"", "a"}, {"a"}},
      {"the longest name", {std::string(128, 'x')}, {std::string(128, 'x')}},
      {"too long a name", {std::string(129, 'x'), "a"}, {"a"}},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.name);
    NamedGpus gpus;
    for (const std::string& name : row.added) gpus.Add(name);
    EXPECT_EQ(gpus.names(), row.expected);
  }
}

TEST(NamedGpusTest, OfTooManyTheFirstStayInWhateverOrderTheyCome) {
  NamedGpus up;
  NamedGpus down;
  std::vector<std::string> expected;
  for (int i = 0; i < 1000; ++i) {
    up.Add(absl::StrFormat("gpu-%04d", i));
    down.Add(absl::StrFormat("gpu-%04d", 999 - i));
    if (i < 256) expected.push_back(absl::StrFormat("gpu-%04d", i));
  }
  EXPECT_EQ(up.names(), expected);
  EXPECT_EQ(down.names(), expected);
}

TEST(NamedGpusTest, SaysWhetherAnythingChanged) {
  NamedGpus gpus;
  NamedGpus others;
  EXPECT_FALSE(gpus.Add(others));
  EXPECT_TRUE(others.Add("a"));
  EXPECT_FALSE(others.Add("a"));
  EXPECT_TRUE(gpus.Add(others));
  EXPECT_FALSE(gpus.Add(others));
  EXPECT_EQ(gpus, others);
}

}  // namespace
}  // namespace stepwell
