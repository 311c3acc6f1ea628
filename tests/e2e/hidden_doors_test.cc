// What is hidden is answered as what does not exist: each method of the wire contract, by a trial's number and by its name, and by
// its project, to each kind of token that reads nothing of it: the same status, reason, words and bytes, but for what was asked.
#include <gmock/gmock.h>
#include <google/protobuf/util/json_util.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "nlohmann/json.hpp"
#include "server/access_rules.h"
#include "tests/e2e/doors_fixture.h"
#include "tests/e2e/error_details.h"

namespace stepwell::testing {
namespace {

using google::protobuf::Message;
using google::protobuf::MethodDescriptor;
using grpc::StatusCode;
using ::testing::HasSubstr;
using ::testing::Not;

// As long as the others, so that messages about them are.
constexpr char kHiddenProject[] = "hidden-d3a7";
constexpr char kAbsentProject[] = "absent-d3a7";
constexpr char kHiddenName[] = "hidden-7be1";
constexpr char kAbsentName[] = "absent-7be1";
// A caller's own number, of a trial of the project "default".
constexpr std::int64_t kOwnNumber = 471'100'001;

// What was asked, and what somebody is told who asks for what is not there.
struct Pair {
  std::string name;
  AskedTrial hidden, absent;
};

class HiddenDoorsTest : public DoorsTest {
 protected:
  static void SetUpTestSuite() {
    DoorsTest::SetUpTestSuite();
    hidden_ = stand_->Record(kHiddenProject, kHiddenName);
    gone_ = stand_->Record(kHiddenProject, "hidden-gone", WriterEnds::kClosed);
    v1::DeleteTrialRequest removal;
    removal.mutable_trial()->set_trial_id(gone_);
    EXPECT_TRUE(
        stand_->Call("stepwell.v1.AdminService/DeleteTrial", removal, stand_->admin()).status.ok());
    v1::WriteChunksRequest own;
    *own.add_messages() = OpenMessage({.writer = Uuid::Random(), .trial_id = kOwnNumber});
    v1::WriteChunksResponse opened;
    EXPECT_TRUE(opened.ParseFromString(
        stand_->Call("stepwell.v1.IngestService/WriteChunks", own, stand_->admin()).bytes));
    EXPECT_EQ(opened.messages(0).opened().trial_id(), kOwnNumber);
    const std::int64_t speech = stand_->Record("speech", "run");
    tokens_ = {{"writes another project", other_},
               {"reads another project", stand_->MakeToken({"read:speech"})},
               {"reads one whose name begins so", stand_->MakeToken({"write:hidden-d3a"})},
               {"ingests another trial, by its name", stand_->MakeToken({"ingest:speech/run"})},
               {"ingests another trial, by its number",
                stand_->MakeToken({absl::StrCat("ingest:id:", speech)})}};
  }

  static std::vector<Pair> Pairs() {
    const std::int64_t far = hidden_ + 1'000'000;
    const AskedTrial by_number{hidden_, kHiddenProject, kHiddenName, AskedBy::kNumber};
    const AskedTrial by_name{hidden_, kHiddenProject, kHiddenName, AskedBy::kName};
    const AskedTrial absent{far, kHiddenProject, kAbsentName, AskedBy::kName};
    return {
        {"number", by_number, {far, kHiddenProject, kAbsentName, AskedBy::kNumber}},
        {"a caller's own number",
         {kOwnNumber, "default", "", AskedBy::kNumber},
         {kOwnNumber + 1, "default", "", AskedBy::kNumber}},
        {"number of one that was deleted",
         {gone_, kHiddenProject, "hidden-gone", AskedBy::kNumber},
         {far, kHiddenProject, kAbsentName, AskedBy::kNumber}},
        {"name", by_name, absent},
        {"name of one that was deleted",
         {gone_, kHiddenProject, "hidden-gone", AskedBy::kName},
         absent},
        {"name, in a project that is not there",
         by_name,
         {far, kAbsentProject, kHiddenName, AskedBy::kName}},
    };
  }

  static std::unique_ptr<Message> RequestOf(const MethodDescriptor& method,
                                            const AskedTrial& asked) {
    auto request = RequestAbout(method, asked);
    // All that have a place are about this one.
    if (const auto* field = method.input_type()->FindFieldByName("place")) {
      SetTrial(*request->GetReflection()->MutableMessage(request.get(), field), asked);
    }
    // Whose writers are named in refusals.
    constexpr char kWriter[] = "a writer of ours";
    if (auto* stream = dynamic_cast<v1::StreamChunksRequest*>(request.get())) {
      stream->mutable_open()->set_writer(kWriter);
    }
    if (auto* write = dynamic_cast<v1::WriteChunksRequest*>(request.get())) {
      write->mutable_messages(0)->mutable_open()->set_writer(kWriter);
    }
    return request;
  }
  // About a project as a whole; null where the method knows none.
  static std::unique_ptr<Message> RequestOf(const MethodDescriptor& method,
                                            const std::string& project) {
    auto request = RequestAbout(method, {});
    const auto& type = *method.input_type();
    if (const auto* field = type.FindFieldByName("place")) {
      static_cast<v1::CapsPlace*>(request->GetReflection()->MutableMessage(request.get(), field))
          ->set_project(project);
      return request;
    }
    const auto* field = type.FindFieldByName("project");
    if (field == nullptr) return nullptr;
    request->GetReflection()->SetString(request.get(), field, project);
    return request;
  }

  // One text for both of a pair: what is left tells them apart.
  static std::string Unnamed(const std::string& text) {
    return absl::StrReplaceAll(text, {{std::to_string(hidden_), "NUMBER"},
                                      {std::to_string(gone_), "NUMBER"},
                                      {std::to_string(hidden_ + 1'000'000), "NUMBER"},
                                      {std::to_string(kOwnNumber), "NUMBER"},
                                      {std::to_string(kOwnNumber + 1), "NUMBER"},
                                      {kHiddenProject, "PROJECT"},
                                      {kAbsentProject, "PROJECT"},
                                      {kHiddenName, "NAME"},
                                      {"hidden-gone", "NAME"},
                                      {kAbsentName, "NAME"}});
  }
  // Of a list what it names: its times are of the moment.
  static std::string Listed(const v1::ListTrialsResponse& list) {
    std::string text;
    for (const v1::Trial& trial : list.trials()) {
      absl::StrAppend(&text, trial.trial_id(), " ", trial.project(), "/", trial.external_id(),
                      "\n");
    }
    return text + list.next_page_token();
  }
  static std::string Listed(const MethodDescriptor& method, const std::string& bytes) {
    if (method.name() != "ListTrials") return bytes;
    v1::ListTrialsResponse list;
    EXPECT_TRUE(list.ParseFromString(bytes));
    return Listed(list);
  }
  static void ExpectAlike(const MethodDescriptor& method, const Called& hidden,
                          const Called& absent) {
    EXPECT_EQ(hidden.status.error_code(), absent.status.error_code());
    EXPECT_EQ(Unnamed(hidden.status.error_message()), Unnamed(absent.status.error_message()));
    EXPECT_EQ(Unnamed(hidden.status.error_details()), Unnamed(absent.status.error_details()));
    EXPECT_EQ(Unnamed(Listed(method, hidden.bytes)), Unnamed(Listed(method, absent.bytes)));
  }
  // An answer of HTTP, its details unpacked.
  static std::string Unpacked(const MethodDescriptor& method, const std::string& body) {
    if (method.name() == "ListTrials") {
      v1::ListTrialsResponse list;
      EXPECT_TRUE(google::protobuf::util::JsonStringToMessage(body, &list).ok()) << body;
      return Listed(list);
    }
    auto json = nlohmann::json::parse(body, nullptr, false);
    EXPECT_TRUE(json.is_object()) << body;
    std::string unpacked;
    if (json.contains("details")) {
      for (auto& detail : json["details"]) {
        std::string value;
        EXPECT_TRUE(absl::Base64Unescape(detail["value"].get<std::string>(), &value));
        detail.erase("value");
        unpacked += value;
      }
    }
    return json.dump() + unpacked;
  }
  static std::string ReasonOf(const grpc::Status& status) {
    const auto info = DetailOf<google::rpc::ErrorInfo>(status);
    return info.has_value() ? info->reason() : "";
  }
  // What is documented of each kind of method, whether there is such a trial or not.
  static void ExpectDocumented(const MethodDescriptor& method, const Called& told) {
    const AccessRule& rule = *FindRule(*method.input_type());
    const StatusCode code = told.status.error_code();
    switch (rule.subject) {
      case Subject::kTrials:
      case Subject::kTrialId:
      case Subject::kPlace:
        if (rule.right != Right::kIngest) {
          EXPECT_EQ(code, StatusCode::NOT_FOUND) << told.status.error_message();
          EXPECT_THAT(told.status.error_message(), HasSubstr("there is no trial"));
          break;
        }
        [[fallthrough]];
      case Subject::kMaster:
        EXPECT_EQ(code, StatusCode::PERMISSION_DENIED) << told.status.error_message();
        EXPECT_EQ(ReasonOf(told.status), "GRANT_MISSING");
        break;
      case Subject::kEachWriter:
        EXPECT_EQ(code, StatusCode::OK) << told.status.error_message();
        EXPECT_THAT(told.bytes, HasSubstr("GRANT_MISSING"));
        break;
      case Subject::kIngest:  // names no trial, nor tells of one
        break;
      case Subject::kList:
        EXPECT_EQ(code, StatusCode::OK) << told.status.error_message();
        EXPECT_THAT(told.bytes, Not(HasSubstr("hidden-")));
        break;
    }
  }

  static inline std::int64_t hidden_ = 0, gone_ = 0;
  static inline std::map<std::string, std::string> tokens_;
};

TEST_F(HiddenDoorsTest, EachMethodAnswersOfAHiddenTrialAsOfOneThatDoesNotExist) {
  const auto methods = EveryMethod();
  EXPECT_GE(methods.size(), 30u);
  for (const MethodDescriptor* method : methods) {
    SCOPED_TRACE(method->full_name());
    if (FindRule(*method->input_type())->subject == Subject::kIngest) continue;
    for (const Pair& pair : Pairs()) {
      SCOPED_TRACE(pair.name);
      for (const auto& [whose, token] : tokens_) {
        SCOPED_TRACE(whose);
        const auto hidden = stand_->Call(PathOf(*method), *RequestOf(*method, pair.hidden), token);
        const auto absent = stand_->Call(PathOf(*method), *RequestOf(*method, pair.absent), token);
        ExpectAlike(*method, hidden, absent);
        ExpectDocumented(*method, hidden);
      }
    }
  }
}

// As a browser or a script hears it.
TEST_F(HiddenDoorsTest, SoDoesEachPathOfHttp) {
  std::set<std::string> paths;
  for (const auto& route : stand_->server().http_routes()) paths.insert(route.path);
  int asked = 0;
  for (const MethodDescriptor* method : EveryMethod()) {
    const std::string path = "/" + PathOf(*method);
    if (paths.count(path) == 0 || method->server_streaming()) continue;
    if (FindRule(*method->input_type())->subject == Subject::kIngest) continue;
    SCOPED_TRACE(path);
    for (const Pair& pair : Pairs()) {
      if (pair.name != "number" && pair.name != "name") continue;
      SCOPED_TRACE(pair.name);
      ++asked;
      const auto ask = [&](const AskedTrial& trial) {
        std::string json;
        EXPECT_TRUE(
            google::protobuf::util::MessageToJsonString(*RequestOf(*method, trial), &json).ok());
        return stand_->Curl(path, other_, {"--json", json});
      };
      const auto hidden = ask(pair.hidden), absent = ask(pair.absent);
      EXPECT_EQ(hidden.code, absent.code);
      EXPECT_EQ(Unnamed(Unpacked(*method, hidden.body)), Unnamed(Unpacked(*method, absent.body)));
    }
  }
  EXPECT_GE(asked, 40);
}

TEST_F(HiddenDoorsTest, OfAHiddenProjectAsOfOneThatDoesNotExist) {
  std::set<std::string> asked;
  for (const MethodDescriptor* method : EveryMethod()) {
    if (RequestOf(*method, kHiddenProject) == nullptr) continue;
    SCOPED_TRACE(method->full_name());
    asked.insert(method->name());
    for (const auto& [whose, token] : tokens_) {
      SCOPED_TRACE(whose);
      const auto hidden = stand_->Call(PathOf(*method), *RequestOf(*method, kHiddenProject), token);
      const auto absent = stand_->Call(PathOf(*method), *RequestOf(*method, kAbsentProject), token);
      ExpectAlike(*method, hidden, absent);
      EXPECT_EQ(hidden.status.error_code(),
                method->name() == "ListTrials" ? StatusCode::OK : StatusCode::PERMISSION_DENIED)
          << hidden.status.error_message();
    }
  }
  EXPECT_EQ(asked, (std::set<std::string>{"GetCaps", "ListTrials", "PreviewCaps", "SetCaps",
                                          "SweepCaps"}));
}

// The test sees a difference where there is one.
TEST_F(HiddenDoorsTest, WhoMayReadItHearsMore) {
  const std::string reader = stand_->MakeToken({absl::StrCat("write:", kHiddenProject)});
  int told_apart = 0;
  for (const MethodDescriptor* method : EveryMethod()) {
    const AccessRule& rule = *FindRule(*method->input_type());
    if (rule.subject != Subject::kTrials || rule.right != Right::kRead) continue;
    if (method->server_streaming()) continue;
    SCOPED_TRACE(method->full_name());
    const Pair pair = Pairs().front();
    const auto hidden = stand_->Call(PathOf(*method), *RequestOf(*method, pair.hidden), reader);
    const auto absent = stand_->Call(PathOf(*method), *RequestOf(*method, pair.absent), reader);
    EXPECT_EQ(absent.status.error_code(), StatusCode::NOT_FOUND);
    told_apart += Unnamed(hidden.status.error_message() + hidden.bytes) !=
                  Unnamed(absent.status.error_message() + absent.bytes);
  }
  EXPECT_GE(told_apart, 6);
}

}  // namespace
}  // namespace stepwell::testing
