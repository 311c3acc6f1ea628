#include "server/grants.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"

namespace stepwell {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Grants Of(const std::vector<std::string>& texts) {
  const auto grants = Grants::Parse(texts);
  EXPECT_TRUE(grants.ok()) << grants.status();
  return grants.value_or(Grants());
}

const TrialPlace kRun{7, "vision", "run"};
const TrialPlace kFutureRun{0, "vision", "run"};
const TrialPlace kOtherRun{8, "vision", "run2"};
const TrialPlace kSpeechRun{9, "speech", "run"};
const TrialPlace kNumbered{7, "default", ""};

TEST(GrantsTest, EachAllowsWhatItSaysAndNoMore) {
  const struct {
    const char* grant;
    bool reads, writes, ingests, ingests_future, ingests_other, ingests_speech, reads_speech, all;
  } rows[] = {
      {"read:vision", true, false, false, false, false, false, false, false},
      {"write:vision", true, true, true, true, true, false, false, false},
      {"ingest:vision/run", false, false, true, true, false, false, false, false},
      {"ingest:id:7", false, false, true, false, false, false, false, false},
      {"ingest:id:9", false, false, false, false, false, true, false, false},
      {"read:*", true, false, false, false, false, false, true, true},
      {"write:*", true, true, true, true, true, true, true, true},
      {"admin", true, true, true, true, true, true, true, true},
      {"read:visio", false, false, false, false, false, false, false, false},
      {"read:vision2", false, false, false, false, false, false, false, false},
      {"ingest:speech/run", false, false, false, false, false, true, false, false},
  };
  for (const auto& row : rows) {
    SCOPED_TRACE(row.grant);
    const Grants grants = Of({row.grant});
    EXPECT_EQ(grants.Reads("vision"), row.reads);
    EXPECT_EQ(grants.Writes("vision"), row.writes);
    EXPECT_EQ(grants.Ingests(kRun), row.ingests);
    EXPECT_EQ(grants.Ingests(kFutureRun), row.ingests_future);
    EXPECT_EQ(grants.Ingests(kOtherRun), row.ingests_other);
    EXPECT_EQ(grants.Ingests(kSpeechRun), row.ingests_speech);
    EXPECT_EQ(grants.Reads("speech"), row.reads_speech);
    EXPECT_EQ(grants.ReadsAll(), row.all);
    EXPECT_EQ(grants.admin(), std::string(row.grant) == "admin");
  }
}

TEST(GrantsTest, NoneAllowsNothing) {
  const Grants none;
  EXPECT_FALSE(none.Reads("vision") || none.Ingests(kRun) || none.ReadsAll() || none.admin());
  EXPECT_FALSE(none.Ingests(TrialPlace{}));
  EXPECT_EQ(none.ReadableProjects(), ProjectFilter(std::vector<std::string>()));
}

TEST(GrantsTest, SeveralAllowWhatAnyOfThemDoes) {
  const Grants grants = Of({"write:speech", "read:vision", "ingest:default/a/b", "read:vision"});
  EXPECT_TRUE(grants.Reads("vision") && grants.Writes("speech") && !grants.Writes("vision"));
  EXPECT_TRUE(grants.Ingests({0, "default", "a/b"})) << "a trial's name may have slashes";
  EXPECT_FALSE(grants.Ingests({0, "default", "a"}));
  EXPECT_EQ(grants.ReadableProjects(), ProjectFilter({"speech", "vision"}));
  EXPECT_THAT(grants.texts(), ElementsAre("ingest:default/a/b", "read:vision", "write:speech"));
  EXPECT_EQ(Of({"read:*"}).ReadableProjects(), ProjectFilter(kAllProjects));
}

TEST(GrantsTest, TrialsThatItIngests) {
  const ProjectFilter none = std::vector<std::string>();
  EXPECT_EQ(Grants().IngestibleTrials(), none);
  EXPECT_EQ(Of({"read:vision"}).IngestibleTrials(), none);
  EXPECT_EQ(Of({"ingest:default/a/b", "write:speech", "read:vision"}).IngestibleTrials(),
            TrialFilter(std::vector<std::string>{"speech"}, {{"default", "a/b"}}, {}));
  EXPECT_EQ(Of({"ingest:id:7"}).IngestibleTrials(), TrialFilter(none, {}, {7}));
  for (const char* all : {"admin", "write:*"}) {
    EXPECT_EQ(Of({all}).IngestibleTrials(), TrialFilter(kAllProjects)) << all;
  }
}

TEST(GrantsTest, ANumberIsNoName) {
  EXPECT_TRUE(Of({"ingest:id:7"}).has_trial_ids());
  EXPECT_TRUE(Of({"ingest:id:7"}).Ingests(kNumbered));
  EXPECT_FALSE(Of({"ingest:id/7"}).has_trial_ids()) << "project id, trial 7";
  EXPECT_FALSE(Of({"ingest:default/run"}).Ingests(kNumbered)) << "no name";
}

TEST(GrantsTest, AnythingElseIsRefusedByName) {
  for (const char* text : {"",
                           "read",
                           "read:",
                           "read: vision",
                           "READ:vision",
                           "read:a/b",
                           "read:**",
                           "write:",
                           "write:a*",
                           "ingest:vision",
                           "ingest:vision/",
                           "ingest:/run",
                           "ingest:*/run",
                           "ingest:id:",
                           "ingest:id:0",
                           "ingest:id:-1",
                           "ingest:id:07",
                           "ingest:id:7x",
                           "ingest:id:99999999999999999999",
                           "admin:",
                           "Admin",
                           "*",
                           "ingest:vision/a\nb"}) {
    const auto grants = Grants::Parse({"read:vision", text});
    EXPECT_EQ(grants.status().code(), absl::StatusCode::kInvalidArgument) << text;
    EXPECT_THAT(std::string(grants.status().message()), HasSubstr("allowed: read:PROJECT"));
  }
  EXPECT_FALSE(Grants::Parse({}).ok());
  EXPECT_TRUE(Grants::Parse(std::vector<std::string>(32, "read:a")).ok());
  EXPECT_FALSE(Grants::Parse(std::vector<std::string>(33, "read:a")).ok());
  EXPECT_FALSE(Grants::Parse({"read:" + std::string(129, 'a')}).ok());
  EXPECT_FALSE(Grants::Parse({"ingest:a/" + std::string(257, 'a')}).ok());
}

TEST(GrantsTest, NamesTheOneThatWouldDo) {
  EXPECT_EQ(IngestGrant({.trial_id = 7}), "ingest:id:7");
  EXPECT_EQ(IngestGrant({.project = "vision", .external_id = "a/b"}), "ingest:vision/a/b");
}

}  // namespace
}  // namespace stepwell
