#include "client/agent/kept_tokens.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "client/agent/file_descriptor.h"

namespace stepwell::agent {
namespace {

namespace fs = std::filesystem;

class KeptTokensTest : public ::testing::Test {
 protected:
  void SetUp() override {
    char pattern[] = "/tmp/stepwell-kept-tokens-test-XXXXXX";
    ASSERT_NE(mkdtemp(pattern), nullptr);
    path_ = pattern;
    auto directory = OpenAt(AT_FDCWD, path_, O_RDONLY | O_DIRECTORY);
    ASSERT_TRUE(directory.ok()) << directory.status();
    directory_ = *std::move(directory);
  }
  void TearDown() override { fs::remove_all(path_); }
  std::vector<KeptToken> Read(absl::Time now) const {
    return ReadKeptTokens(directory_.get(), now);
  }

  const absl::Time begin_ = absl::FromUnixSeconds(1'700'000'000);
  const KeptToken run_{"m:7817", "vision", "a \"run\"/7", "stepwell_a_b", begin_ + absl::Hours(1)};
  const KeptToken seven_{"m:7817", "default", "id:7", "stepwell_c_d", begin_ + absl::Minutes(1)};
  std::string path_;
  FileDescriptor directory_;
};

TEST_F(KeptTokensTest, AreReadAsTheyWereWrittenWhileTheyLive) {
  EXPECT_EQ(Read(begin_), std::vector<KeptToken>());
  ASSERT_TRUE(WriteKeptTokens(directory_.get(), {run_, seven_}).ok());
  EXPECT_EQ(Read(begin_), (std::vector<KeptToken>{run_, seven_}));
  EXPECT_EQ(Read(begin_ + absl::Minutes(1)), (std::vector<KeptToken>{run_}));
  ASSERT_TRUE(WriteKeptTokens(directory_.get(), {seven_}).ok());
  EXPECT_EQ(Read(begin_), (std::vector<KeptToken>{seven_}));
  ASSERT_TRUE(WriteKeptTokens(directory_.get(), {}).ok());
  EXPECT_TRUE(fs::is_empty(path_));
}

TEST_F(KeptTokensTest, AreTheOwnersAloneWhateverLiesThere) {
  for (const char* name : {kKeptTokensFile, kKeptTokensDraft}) {
    std::ofstream(path_ + "/" + name) << "of others";
    ASSERT_EQ(chmod((path_ + "/" + name).c_str(), 0666), 0);
  }
  ASSERT_TRUE(WriteKeptTokens(directory_.get(), {run_}).ok());
  struct stat found {};
  ASSERT_EQ(stat((path_ + "/" + kKeptTokensFile).c_str(), &found), 0);
  EXPECT_EQ(found.st_mode & 0777, 0600u);
  EXPECT_FALSE(fs::exists(path_ + "/" + kKeptTokensDraft));
  // A link leads nowhere.
  const std::string elsewhere = path_ + "/elsewhere";
  std::ofstream(elsewhere) << "kept";
  fs::remove(path_ + "/" + kKeptTokensFile);
  fs::create_symlink(elsewhere, path_ + "/" + kKeptTokensFile);
  EXPECT_EQ(Read(begin_), std::vector<KeptToken>());
  ASSERT_TRUE(WriteKeptTokens(directory_.get(), {run_}).ok());
  EXPECT_EQ(fs::file_size(elsewhere), 4u);
  EXPECT_EQ(Read(begin_), (std::vector<KeptToken>{run_}));
}

TEST_F(KeptTokensTest, WhatIsNoneIsLeftOut) {
  const std::string good = R"({"server":"m:7817","project":"vision","trial":"a \"run\"/7",)"
                           R"("token":"stepwell_a_b","ends_us":1700003600000000})";
  for (const std::string& bad :
       {std::string(R"({"token":7,"ends_us":1700003600000000})"),
        std::string(R"({"token":"a b","ends_us":1700003600000000})"),
        std::string(R"({"token":"a\nb","ends_us":1700003600000000})"),
        std::string(R"({"token":"a"})"), std::string(R"({"token":"a","ends_us":"x"})"),
        std::string("7"), std::string("[]"), std::string("null"),
        R"({"ends_us":1700003600000000,"token":")" + std::string(kTokenBytesMax + 1, 'a') +
            "\"}"}) {
    std::ofstream(path_ + "/" + kKeptTokensFile) << "[" << bad << "," << good << "]";
    EXPECT_EQ(Read(begin_), (std::vector<KeptToken>{run_})) << bad;
  }
  const std::string deep(200'000, '[');
  for (const std::string& no_file : {std::string(), std::string("{}"), std::string("["), deep,
                                     deep + std::string(200'000, ']')}) {
    std::ofstream(path_ + "/" + kKeptTokensFile) << no_file;
    EXPECT_EQ(Read(begin_), std::vector<KeptToken>()) << no_file.substr(0, 10);
  }
}

TEST_F(KeptTokensTest, OwnOnesComeFirstThenTheNewestAndNoneThatEnded) {
  const auto token = [&](const std::string& trial, absl::Duration lives) {
    return KeptToken{"m:7817", "vision", trial, "stepwell_a_b", begin_ + lives};
  };
  const auto order = [&](const std::vector<KeptToken>& own, const std::vector<KeptToken>& before) {
    std::string trials;
    for (const KeptToken& each : InOrderToKeep(own, before, begin_)) trials += each.trial;
    return trials;
  };
  const KeptToken ended = token("e", absl::ZeroDuration());
  const KeptToken old = token("o", absl::Minutes(1));
  const KeptToken newer = token("n", absl::Minutes(50));
  const KeptToken before_old = token("b", absl::Minutes(2));
  const KeptToken before_newer = token("a", absl::Minutes(59));
  EXPECT_EQ(order({}, {}), "");
  EXPECT_EQ(order({old, ended, newer}, {ended, before_old, before_newer, ended}), "noab");
  EXPECT_EQ(order({ended}, {ended, before_old}), "b");

  // So that of more than a file holds the oldest of agents before are left out.
  std::vector<KeptToken> before;
  for (int i = 0; i < 1000; ++i) {
    before.push_back(token(std::string(1000, 'b') + std::to_string(i), absl::Seconds(i)));
  }
  const std::vector<KeptToken> kept = InOrderToKeep({old, newer}, before, begin_);
  ASSERT_TRUE(WriteKeptTokens(directory_.get(), kept).ok());
  const std::vector<KeptToken> read = Read(begin_);
  ASSERT_GT(read.size(), 400u);
  ASSERT_LT(read.size(), 1000u);
  EXPECT_EQ(read[0], newer);
  EXPECT_EQ(read[1], old);
  EXPECT_EQ(read[2], before.back());
}

TEST_F(KeptTokensTest, OfMoreThanAFileHoldsTheOthersAreLeftOut) {
  std::vector<KeptToken> many;
  for (int i = 0; i < 1000; ++i) {
    many.push_back(run_);
    many.back().trial = std::string(1000, 'a') + std::to_string(i);
  }
  ASSERT_TRUE(WriteKeptTokens(directory_.get(), many).ok());
  EXPECT_LE(fs::file_size(path_ + "/" + kKeptTokensFile), 512u << 10);
  const std::vector<KeptToken> read = Read(begin_);
  ASSERT_GT(read.size(), 400u);
  many.resize(read.size());
  EXPECT_EQ(read, many);
}

}  // namespace
}  // namespace stepwell::agent
