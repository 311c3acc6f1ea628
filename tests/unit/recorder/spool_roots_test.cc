#include "client/recorder/src/spool_roots.h"

#include <gtest/gtest.h>

#include <map>

namespace stepwell::recorder {
namespace {

std::string Shown(const std::vector<SpoolRoot>& roots) {
  std::string text;
  for (const SpoolRoot& root : roots) {
    const char* kinds[] = {"given", "system", "default", "private"};
    text += (text.empty() ? "" : " | ") + std::string(kinds[static_cast<int>(root.kind)]) + " " +
            root.path;
  }
  return text;
}

// The order of the contract.
TEST(SpoolRootsTest, AgentRule06_TheFirstRootThatWillDoIsTaken) {
  const struct {
    const char* name;
    std::string given;
    std::map<std::string, std::string> variables;
    std::string served;  // the system root that an agent serves, "" = none
    std::string listed;
  } rows[] = {
      {"nothing said", "", {}, "", "default /tmp/stepwell-7 | private /tmp/stepwell-7-XXXXXX"},
      {"an option", "/a", {{"STEPWELL_SPOOL_DIR", "/b"}}, "/run/stepwell", "given /a"},
      {"a variable",
       "",
       {{"STEPWELL_SPOOL_DIR", "/b"}, {"TMPDIR", "/t"}},
       "/run/stepwell",
       "given /b"},
      {"relative", "spool", {}, "", "given /job/spool"},
      {"a system agent",
       "",
       {},
       "/run/stepwell",
       "system /run/stepwell/u7 | default /tmp/stepwell-7 | private /tmp/stepwell-7-XXXXXX"},
      {"a system agent elsewhere",
       "",
       {{"STEPWELL_SYSTEM_ROOT", "/s"}},
       "/s",
       "system /s/u7 | default /tmp/stepwell-7 | private /tmp/stepwell-7-XXXXXX"},
      {"a system root without agent",
       "",
       {{"STEPWELL_SYSTEM_ROOT", "/s"}},
       "/run/stepwell",
       "default /tmp/stepwell-7 | private /tmp/stepwell-7-XXXXXX"},
      {"a temporary directory of the job's",
       "",
       {{"TMPDIR", "/scratch/job//"}},
       "",
       "default /scratch/job/stepwell-7 | private /scratch/job/stepwell-7-XXXXXX | "
       "default /tmp/stepwell-7 | private /tmp/stepwell-7-XXXXXX"},
      {"the same as ever",
       "",
       {{"TMPDIR", "/tmp/"}},
       "",
       "default /tmp/stepwell-7 | private /tmp/stepwell-7-XXXXXX"},
      {"a home says nothing",
       "",
       {{"HOME", "/h"}},
       "",
       "default /tmp/stepwell-7 | private /tmp/stepwell-7-XXXXXX"},
  };
  for (const auto& row : rows) {
    SCOPED_TRACE(row.name);
    RootSurroundings around;
    around.environment = [&row](const char* name) {
      const auto found = row.variables.find(name);
      return found == row.variables.end() ? nullptr : found->second.c_str();
    };
    around.working_directory = "/job";
    around.user = 7;
    around.is_served = [&row](const std::string& root, bool) { return root == row.served; };
    EXPECT_EQ(Shown(ListRoots(row.given, around)), row.listed);
  }
}

// A stranger's directory under the fixed name is not believed; one that the user named may be his.
TEST(SpoolRootsTest, AgentRule06_OnlyANamedSystemRootMayBeTheUsersOwn) {
  for (const bool is_named : {false, true}) {
    RootSurroundings around;
    around.environment = [is_named](const char* name) {
      return is_named && std::string(name) == "STEPWELL_SYSTEM_ROOT" ? "/s" : nullptr;
    };
    bool asked = false;
    around.is_served = [&](const std::string&, bool may_be_own) {
      asked = true;
      EXPECT_EQ(may_be_own, is_named);
      return false;
    };
    (void)ListRoots("", around);
    EXPECT_TRUE(asked);
  }
}

}  // namespace
}  // namespace stepwell::recorder
