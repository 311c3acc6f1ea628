#include "base/process_secrets.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"

namespace stepwell {
namespace {

// The words as `hide` leaves them.
template <typename Hide>
std::string Hidden(std::vector<std::string> words, const Hide& hide) {
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  hide(static_cast<int>(argv.size()), argv.data());
  return absl::StrJoin(words, " ");
}

TEST(ProcessSecretsTest, TheValueOfAnOptionIsOverwrittenWhereverItStands) {
  const auto hide = [](int argc, char** argv) { HideOptionValue(argc, argv, "--token"); };
  EXPECT_EQ(Hidden({"agent", "--token", "abc", "x"}, hide), "agent --token *** x");
  EXPECT_EQ(Hidden({"agent", "--token=abc", "x"}, hide), "agent --token=*** x");
  EXPECT_EQ(Hidden({"agent", "--token=a", "--token", "--token"}, hide),
            "agent --token=* --token *******");
  EXPECT_EQ(Hidden({"agent", "--tokens", "abc", "--token"}, hide), "agent --tokens abc --token");
  EXPECT_EQ(Hidden({"--token", "abc"}, hide), "--token abc") << "the program's own name";
}

TEST(ProcessSecretsTest, OfAnArgumentWhatIsShownOtherwiseIsOverwritten) {
  const auto hide = [](int argc, char** argv) {
    HideInArguments(argc, argv, [](const std::string& given) {
      return absl::StrReplaceAll(given, {{":pass@", ":***@"}, {"longer-than-shown", "-"}});
    });
  };
  EXPECT_EQ(Hidden({"serve", "--url=a:pass@b", "a:pass@", "longer-than-shown", "", "same"}, hide),
            "serve --url=a:****@b a:****@ *****************  same");
}

TEST(ProcessSecretsTest, AClientHasOneWhereItIsGivenOne) {
  for (const char* variable : {"STEPWELL_TOKEN", "STEPWELL_TLS_KEY"}) {
    unsetenv(variable);
    EXPECT_FALSE(HoldsClientSecret({"trials", "--tls-ca", "x"}));
    setenv(variable, "", 1);
    EXPECT_FALSE(HoldsClientSecret({}));
    setenv(variable, "x", 1);
    EXPECT_TRUE(HoldsClientSecret({}));
    unsetenv(variable);
  }
  EXPECT_TRUE(HoldsClientSecret({"agent", "--token", "x"}));
  EXPECT_TRUE(HoldsClientSecret({"trials", "--tls-key=x"}));
  EXPECT_TRUE(HoldsClientSecret({"tls", "init", "certs"}));
  EXPECT_FALSE(HoldsClientSecret({"tls"}));
}

// What `look` says in a child that kept its memory private.
template <typename Look>
int InChild(void (*keep)(), const Look& look) {
  const pid_t child = fork();
  if (child == 0) {
    keep();
    _exit(look());
  }
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  return WEXITSTATUS(status);
}

TEST(ProcessSecretsTest, NoCoreFileIsWrittenOfAPrivateProcessAndItsLimitsStay) {
  const auto dumpable = [] { return prctl(PR_GET_DUMPABLE); };
  const auto limit = [] {
    rlimit cores{};
    getrlimit(RLIMIT_CORE, &cores);
    return static_cast<int>(cores.rlim_cur & 127);
  };
  ASSERT_EQ(InChild([] {}, dumpable), 1) << "as tests are started";
  EXPECT_EQ(InChild(KeepMemoryPrivate, dumpable), 0);
  EXPECT_EQ(InChild(KeepMemoryPrivate, limit), limit());
  EXPECT_EQ(InChild(KeepMemoryPrivateOfAllUsers, dumpable), 0);
  EXPECT_LE(InChild(KeepMemoryPrivateOfAllUsers, limit), 1);
}

}  // namespace
}  // namespace stepwell
