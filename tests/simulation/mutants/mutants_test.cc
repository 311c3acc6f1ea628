// The test of the test: with a guard broken on purpose the simulation finds the fault, within a thousand
// seeds; with none broken, the same sources break nothing.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/simulation/mutants/mutated.h"
#include "tests/simulation/seeds.h"
#include "tests/simulation/world.h"
#include "tests/support/places/places.h"

namespace stepwell::simulation {
namespace {

// The same ones each time: a test that is red by chance would prove nothing of the change at hand.
constexpr std::uint64_t kFirstSeed = 1;
constexpr std::uint64_t kSeedsMax = 1000;
constexpr std::uint64_t kSeedsWithout = 50;

std::vector<std::string> Names() {
  std::ifstream file(SourcePlace("tests/simulation/mutants/mutants.json"));
  std::vector<std::string> names;
  for (const auto& mutant : nlohmann::json::parse(file)) names.push_back(mutant["name"]);
  return names;
}

class MutantsTest : public ::testing::TestWithParam<std::string> {
 protected:
  ~MutantsTest() override { SwitchOn(""); }
};

bool Find(const std::string& mutant) {
  for (std::uint64_t seed = kFirstSeed; seed < kFirstSeed + kSeedsMax; ++seed) {
    const Outcome outcome = RunSeed(seed);
    if (outcome.wrong.empty()) continue;
    std::cout << mutant << ": seed " << seed << ": " << outcome.wrong << std::endl;
    return true;
  }
  return false;
}

// In a process of its own: a check of ours that fails, and ends it, finds a mutant as well as the history does.
TEST_P(MutantsTest, IsFound) {
  SwitchOn(GetParam());
  const pid_t child = fork();
  if (child == 0) std::_Exit(Find(GetParam()) ? 0 : 1);
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  for (const std::string& left : DiskFolders(child)) std::filesystem::remove_all(left);
  const bool has_failed_check = WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT;
  EXPECT_TRUE(has_failed_check || (WIFEXITED(status) && WEXITSTATUS(status) == 0))
      << GetParam() << " broke nothing in " << kSeedsMax << " seeds";
}

INSTANTIATE_TEST_SUITE_P(All, MutantsTest, ::testing::ValuesIn(Names()),
                         [](const auto& each) { return each.param; });

TEST(NoMutantTest, BreaksNothing) {
  const std::uint64_t first = FirstSeed();
  for (std::uint64_t seed = first; seed < first + kSeedsWithout; ++seed) {
    ASSERT_EQ(RunSeed(seed).wrong, "") << Repeat(seed);
  }
}

}  // namespace
}  // namespace stepwell::simulation
