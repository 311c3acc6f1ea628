#include "server/access_rules.h"

#include <gmock/gmock.h>
#include <google/protobuf/message.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "absl/strings/str_split.h"
#include "tests/support/every_method.h"

namespace stepwell {
namespace {

using ::testing::ElementsAre;
using testing::EveryMethod;
using ::testing::UnorderedElementsAre;

TEST(AccessRulesTest, EachMethodThereIsHasARule) {
  const auto methods = EveryMethod();
  EXPECT_GE(methods.size(), 29u);
  std::set<std::string> seen;
  for (const auto* method : methods) {
    const AccessRule* rule = FindRule(*method->input_type());
    ASSERT_NE(rule, nullptr) << method->full_name() << " has no rule: nobody may call it";
    EXPECT_EQ(rule->method, method->full_name()) << "two methods share a request";
    EXPECT_EQ(FindRuleOfPath("/" + method->service()->full_name() + "/" + method->name()), rule);
    seen.insert(method->full_name());
  }
  for (const AccessRule& rule : AccessRules()) EXPECT_EQ(seen.count(std::string(rule.method)), 1u);
}

TEST(AccessRulesTest, WhatIsNoRequestHasNone) {
  EXPECT_EQ(FindRule(*v1::Trial::descriptor()), nullptr);
  EXPECT_EQ(FindRule(*v1::GetTrialResponse::descriptor()), nullptr);
  for (const char* path :
       {"", "/", "//", "GetTrial", "/GetTrial", "stepwell.v1.QueryService/GetTrial",
        "/stepwell.v1.QueryService.GetTrial", "/stepwell.v1.QueryService/", "/stepwell.v1/GetTrial",
        "/stepwell.v1/QueryService/GetTrial", "/stepwell.v1.QueryService/GetTrials",
        "/stepwell.v1.QueryService/getTrial", "/stepwell.v1.QueryServic/eGetTrial",
        "/grpc.health.v1.Health/Check"}) {
    EXPECT_EQ(FindRuleOfPath(path), nullptr) << path;
  }
}

// The types, and the names of numbers of trials, in the messages of a message's fields, at any depth.
void AddBelow(const google::protobuf::Descriptor& type, std::multiset<std::string>& found,
              int depth = 0) {
  ASSERT_LT(depth, 20) << type.full_name();
  for (int i = 0; i < type.field_count(); ++i) {
    const auto& field = *type.field(i);
    if (depth > 0 && field.message_type() != nullptr) found.insert(field.message_type()->name());
    if (depth > 0 && field.name() == "trial_id") found.insert("trial_id");
    // A reference's own number is what the rule reads.
    if (field.message_type() == nullptr || field.message_type() == v1::TrialRef::descriptor()) {
      continue;
    }
    AddBelow(*field.message_type(), found, depth + 1);
  }
}

// A rule that looks for trials where a request has none would let everybody pass.
TEST(AccessRulesTest, RequestsHaveWhatTheirRulesLookFor) {
  for (const auto* method : EveryMethod()) {
    SCOPED_TRACE(method->full_name());
    const AccessRule& rule = *FindRule(*method->input_type());
    std::multiset<std::string> types;
    const auto* type = method->input_type();
    if (type == v1::UploadTraceRequest::descriptor()) type = v1::TraceUpload::descriptor();
    bool has_number = false;
    // What lies deeper no rule sees. Writers are asked for each by itself, and who has the whole master has its
    // trials.
    const bool looks = rule.subject != Subject::kEachWriter && rule.subject != Subject::kMaster &&
                       rule.subject != Subject::kPlace;
    std::multiset<std::string> deeper;
    if (looks) AddBelow(*type, deeper);
    EXPECT_EQ(deeper.count("TrialRef"), 0u);
    EXPECT_EQ(deeper.count("trial_id"), 0u);
    EXPECT_EQ(deeper.count("CapsPlace"), 0u);
    for (int i = 0; i < type->field_count(); ++i) {
      const auto& field = *type->field(i);
      if (field.message_type() != nullptr) types.insert(field.message_type()->name());
      has_number |= field.name() == "trial_id";
    }
    EXPECT_EQ(types.count("TrialRef") > 0, rule.subject == Subject::kTrials);
    EXPECT_EQ(has_number, rule.subject == Subject::kTrialId);
    // What names a place names a project or a trial.
    const auto asks_of_all = rule.subject == Subject::kMaster && rule.right == Right::kAdmin;
    if (types.count("CapsPlace") > 0 && !asks_of_all) {
      EXPECT_EQ(rule.subject, Subject::kPlace);
    }
    EXPECT_TRUE(rule.subject != Subject::kPlace || types.count("CapsPlace") == 1);
  }
}

// Anew: a rule that was loosened by mistake is found here.
TEST(AccessRulesTest, WhatChangesSomethingWantsMoreThanToRead) {
  std::map<Right, std::set<std::string>> methods;
  for (const AccessRule& rule : AccessRules()) {
    methods[rule.right].insert(std::string(rule.method.substr(rule.method.rfind('.') + 1)));
  }
  EXPECT_THAT(methods[Right::kIngest],
              UnorderedElementsAre("StreamChunks", "WriteChunks", "UploadTrace", "FetchIngestToken",
                                   "ReadClock"));
  EXPECT_THAT(methods[Right::kAdmin],
              UnorderedElementsAre("SetCaps", "PreviewCaps", "SweepCaps", "CreateToken",
                                   "ListTokens", "RevokeToken"));
  EXPECT_THAT(methods[Right::kWrite],
              UnorderedElementsAre("Flush", "SetProfiling", "ArchiveTrial", "DeleteTrial",
                                   "DeleteTrace", "CaptureTrace"));
  for (const std::string& name : methods[Right::kRead]) {
    const bool reads = name.find("Get") == 0 || name.find("List") == 0 || name.find("Read") == 0 ||
                       name.find("Follow") == 0 || name.find("Query") == 0 ||
                       name.find("Summarize") == 0 || name.find("Compare") == 0 ||
                       name.find("Latest") == 0 || name.find("Merge") == 0;
    EXPECT_TRUE(reads) << name;
  }
}

TEST(AccessRulesTest, FindsAllTrialsOfARequest) {
  v1::CompareTrialsRequest compare;
  compare.add_trials()->set_trial_id(1);
  compare.add_trials()->set_trial_id(2);
  std::vector<std::int64_t> ids;
  for (const v1::TrialRef& trial : TrialsOf(compare)) ids.push_back(trial.trial_id());
  EXPECT_THAT(ids, ElementsAre(1, 2));
  EXPECT_EQ(TrialsOf(v1::GetTrialRequest()).size(), 1u) << "one that is not set is no trial";
  EXPECT_TRUE(TrialsOf(v1::ListTrialsRequest()).empty());
  v1::FlushRequest flush;
  flush.set_trial_id(7);
  EXPECT_EQ(TrialIdOf(flush), 7);
  EXPECT_EQ(TrialIdOf(compare), 0);
}

// Of `type` and of all messages within it: fields one of whose words names a place to read or something to run.
void AddFieldsThatLead(const google::protobuf::Descriptor& type,
                       std::set<const google::protobuf::Descriptor*>& seen,
                       std::set<std::string>& found) {
  static const std::set<std::string> kWords = {"path",     "url",     "uri",    "file",
                                               "filename", "command", "script", "code"};
  if (!seen.insert(&type).second) return;
  for (int i = 0; i < type.field_count(); ++i) {
    const auto& field = *type.field(i);
    for (const absl::string_view word : absl::StrSplit(field.name(), '_')) {
      if (kWords.count(std::string(word)) > 0) found.insert(field.full_name());
    }
    if (field.message_type() != nullptr) AddFieldsThatLead(*field.message_type(), seen, found);
  }
}

// Other masters were led to files and programs by such fields (docs/security.md, "The attacker's script").
TEST(AccessRulesTest, NoRequestHasAFieldForAPathAUrlOrCode) {
  std::set<const google::protobuf::Descriptor*> seen;
  std::set<std::string> found;
  for (const auto* method : EveryMethod()) AddFieldsThatLead(*method->input_type(), seen, found);
  EXPECT_THAT(found, ElementsAre());
  EXPECT_EQ(seen.count(v1::Open::descriptor()), 1u) << "those within them are looked at, too";
  // An answer's status.
  AddFieldsThatLead(*v1::StreamChunksResponse::descriptor(), seen, found);
  EXPECT_THAT(found, ElementsAre("stepwell.v1.Refused.code"));
}

}  // namespace
}  // namespace stepwell
