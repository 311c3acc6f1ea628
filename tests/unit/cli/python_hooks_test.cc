#include "client/cli/python_hooks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>

namespace stepwell::cli {
namespace {

using ::testing::HasSubstr;

TEST(HookedPythonPathTest, TheFolderBesideTheProgramStandsBeforeTheRest) {
  std::string made = ::testing::TempDir() + "python-hooks-XXXXXX";
  const std::string prefix = mkdtemp(made.data());
  const std::string folder = prefix + "/share/stepwell/python";
  recorder::ProgramSurroundings around;
  const char* before = nullptr;
  around.environment = [&](const char* name) {
    return name == std::string("PYTHONPATH") ? before : nullptr;
  };
  around.executable = prefix + "/bin/stepwell";
  EXPECT_EQ(HookedPythonPath(around), "") << "it is not there";
  std::filesystem::create_directories(folder);
  std::ofstream(folder + "/sitecustomize.py") << "\n";
  EXPECT_EQ(HookedPythonPath(around), folder);
  before = "/a:b";
  EXPECT_EQ(HookedPythonPath(around), folder + ":/a:b");
  const std::string both = folder + ":/a";
  before = both.c_str();
  EXPECT_EQ(HookedPythonPath(around), both) << "stepwell run stepwell run";
  for (const char* strange : {"", "stepwell", "/stepwell", "/"}) {
    around.executable = strange;
    EXPECT_EQ(HookedPythonPath(around), "") << strange;
  }
  std::filesystem::remove_all(prefix);
}

TEST(WhatIsNotSeenTest, NamesInterpretersAndLaunchersThatPassNothingOn) {
  const struct {
    std::vector<std::string> words;
    std::string says;  // "" = nothing
  } rows[] = {
      {{"python", "train.py", "-I"}, ""},
      {{"python3.11", "-u", "train.py"}, ""},
      {{"/usr/bin/python3", "-I", "train.py"}, "python3 -I looks"},
      {{"python3", "-u", "-S", "train.py"}, "python3 -S looks"},
      {{"python", "-OuE", "train.py"}, "python -E looks"},
      {{"python", "-W", "-E", "train.py"}, ""},
      {{"python", "-Werror", "-I", "train.py"}, "-I"},
      {{"python", "-m", "torch.distributed.run", "-E"}, ""},
      {{"python", "-cI"}, ""},
      {{"python", "--help"}, ""},
      {{"python"}, ""},
      {{"pythonic", "-I"}, ""},
      {{"torchrun", "train.py"}, ""},
      {{"ssh", "node7", "python train.py"}, "ssh may start programs"},
      {{"/opt/bin/mpirun", "-n", "2"}, "mpirun may start programs"},
      {{""}, ""},
      {{}, ""},
  };
  for (const auto& row : rows) {
    const std::string said = WhatIsNotSeen(row.words);
    SCOPED_TRACE(row.words.empty() ? "" : row.words.back());
    EXPECT_EQ(said.empty(), row.says.empty()) << said;
    EXPECT_THAT(said, HasSubstr(row.says));
  }
}

}  // namespace
}  // namespace stepwell::cli
