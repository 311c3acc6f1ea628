#include "server/scope_tree.h"

#include <gtest/gtest.h>

namespace stepwell {
namespace {

using Parents = std::vector<std::optional<std::size_t>>;

TEST(ScopeTreeTest, AScopeLiesInTheNearestPathAboveIt) {
  EXPECT_EQ(FindParents({{"a", {}}, {"a/b", {}}, {"a/b/c/d", {}}, {"x/y", {}}, {"ab", {}}}),
            (Parents{std::nullopt, 0, 1, std::nullopt, std::nullopt}));
}

TEST(ScopeTreeTest, LabelsChooseAmongScopesOfOnePath) {
  const Labels cuda = {{"stream", "cuda"}};
  const Labels other = {{"stream", "other"}};
  EXPECT_EQ(FindParents({{"a", {}}, {"a", cuda}, {"a/b", cuda}, {"a/b", other}, {"a/b", {}}}),
            (Parents{std::nullopt, std::nullopt, 1, 0, 0}));
  EXPECT_EQ(FindParents({{"a", cuda}, {"a/b", other}}), (Parents{std::nullopt, 0}));
}

}  // namespace
}  // namespace stepwell
