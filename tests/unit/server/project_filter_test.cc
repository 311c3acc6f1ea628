// Who looks for a trial says for whom: what forgets it does not compile.
#include "storage/project_filter.h"

#include <gtest/gtest.h>

#include <string>
#include <type_traits>
#include <vector>

#include "server/trace_capturing.h"
#include "server/trial_view.h"
#include "storage/read_store.h"

namespace stepwell {
namespace {

template <typename Call>
concept IsMadeWithoutProjects = requires(SteadyTime deadline) {
  Call{.deadline = deadline};
};
template <typename Call>
concept IsMadeWithProjects = requires(SteadyTime deadline) {
  Call{.deadline = deadline, .readable_projects = kAllProjects};
};

static_assert(!std::is_default_constructible_v<ProjectFilter>);
static_assert(IsMadeWithProjects<ReadCall> && !IsMadeWithoutProjects<ReadCall>);
static_assert(!std::is_default_constructible_v<ReadCall>);
static_assert(!std::is_default_constructible_v<CaptureWish>);
static_assert(!std::is_default_constructible_v<TrialPage>);

TEST(ProjectFilterTest, LetsThroughThoseThatAreNamedOrAll) {
  const ProjectFilter some = std::vector<std::string>{"audio", "vision"};
  const ProjectFilter none = std::vector<std::string>{};
  const ProjectFilter all = kAllProjects;
  EXPECT_TRUE(some.LetsThrough("vision") && !some.LetsThrough("text") && !some.is_all());
  EXPECT_FALSE(none.LetsThrough("vision") || none.is_all()) << "none is not all";
  EXPECT_TRUE(all.LetsThrough("vision") && all.is_all() && all.named().empty());
  EXPECT_NE(all, none);
}

}  // namespace
}  // namespace stepwell
