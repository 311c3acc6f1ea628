// Sessions of TensorBoard's layout below a directory.
#include "client/traces/profile_session.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "absl/strings/str_cat.h"

namespace stepwell::traces {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class ProfilesBelowTest : public ::testing::Test {
 protected:
  ~ProfilesBelowTest() override { std::filesystem::remove_all(folder_); }
  std::string Write(const std::string& path) const {
    const std::filesystem::path whole = folder_ / path;
    std::filesystem::create_directories(whole.parent_path());
    std::ofstream(whole) << "x";
    return whole;
  }

  const std::filesystem::path folder_ = absl::StrCat(::testing::TempDir(), "profiles-", getpid());
};

TEST_F(ProfilesBelowTest, ADirectoryStandsForTheTracesOfItsSessions) {
  const std::string second = Write("logs/run/plugins/profile/b/host.trace.json.gz");
  const std::string first = Write("logs/run/plugins/profile/a b/host.xplane.pb");
  Write("logs/run/plugins/profile/b/host.memory_profile.json.gz");
  Write("logs/run/plugins/profile/b/more/host.xplane.pb");
  Write("logs/run/events.out.tfevents");
  Write("logs/host.xplane.pb");
  std::filesystem::create_directory_symlink("..", folder_ / "logs/run/back");
  // Another user of the folder may have made it, of what only its reader may read.
  std::filesystem::create_symlink(Write("secret"),
                                  folder_ / "logs/run/plugins/profile/b/other.xplane.pb");
  EXPECT_THAT(*ProfilesBelow(folder_ / "logs"), ElementsAre(first, second));
  EXPECT_THAT(*ProfilesBelow(folder_ / "logs/run/plugins/profile"), ElementsAre(first, second));
  EXPECT_THAT(*ProfilesBelow(folder_ / "logs/run/plugins/profile/a b"), ElementsAre(first));
  EXPECT_THAT(*ProfilesBelow(folder_ / "logs/run/plugins/profile/a b/"), ElementsAre(first));
}

TEST_F(ProfilesBelowTest, OneWithoutAnySaysWhatToName) {
  Write("traces/ep0-ba7-rank0.json");
  const auto found = ProfilesBelow(folder_ / "traces");
  EXPECT_TRUE(absl::IsNotFound(found.status()));
  EXPECT_THAT(std::string(found.status().message()), HasSubstr("name the traces in it"));
  EXPECT_TRUE(absl::IsNotFound(ProfilesBelow(folder_ / "none").status()));
}

}  // namespace
}  // namespace stepwell::traces
