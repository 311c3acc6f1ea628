// Doors of the HTTP port that are no methods of the contract, by the router's own table: each is named here with what it may
// tell, and none tells of a project to whom it is hidden. And what a token that only ingests reads over HTTP: nothing.
#include <gmock/gmock.h>
#include <google/protobuf/util/json_util.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "absl/strings/str_cat.h"
#include "server/access_rules.h"
#include "server/http/page_files.h"
#include "tests/e2e/doors_fixture.h"
#include "tests/support/places/places.h"

namespace stepwell::testing {
namespace {

using google::protobuf::MethodDescriptor;
using ::testing::HasSubstr;
using ::testing::Not;

// In no text of ours.
constexpr char kHiddenProject[] = "hidden-9c41f7";
constexpr char kMark[] = "9c41f7";

enum class Tells {
  kNothing,     // of any project: the same to everybody
  kWhatYouRead  // of what the token may read
};

class RouteDoorsTest : public DoorsTest {
 protected:
  // A new route goes into this table by somebody who has thought of what it may tell.
  static std::map<std::string, Tells> Expected() {
    std::map<std::string, Tells> expected = {{"/livez", Tells::kNothing},
                                             {"/readyz", Tells::kNothing},
                                             {"/page.json", Tells::kNothing},
                                             {"/metrics", Tells::kWhatYouRead},
                                             {"/sd", Tells::kWhatYouRead}};
    for (const PageFile& file : EmbeddedPage()) {
      expected.emplace(file.path, Tells::kNothing);
      if (file.path == "/index.html") expected.emplace("/", Tells::kNothing);
    }
    return expected;
  }
  static bool IsCall(const std::string& path) {
    for (const MethodDescriptor* method : EveryMethod()) {
      if (path == "/" + PathOf(*method)) return true;
    }
    return false;
  }
};

TEST_F(RouteDoorsTest, EachThatIsNoCallIsNamedAndIsToBeGot) {
  std::set<std::string> named, there;
  for (const auto& [path, tells] : Expected()) named.insert(path);
  for (const auto& route : stand_->server().http_routes()) {
    if (IsCall(route.path)) continue;
    EXPECT_EQ(route.method, "GET") << route.path;
    there.insert(route.path);
  }
  EXPECT_EQ(there, named) << "say in Expected() what it may tell, and to whom";
}

// Which tries each of them without a token.
TEST_F(RouteDoorsTest, TheAttackersListIsTheRouters) {
  std::set<std::string> listed, there;
  std::ifstream file(SourcePlace("tests/attacker/http_paths.txt"));
  for (std::string line; std::getline(file, line);) {
    if (!line.empty() && line[0] != '#') listed.insert(line);
  }
  std::set<std::string> of_page;  // which it lists by its folder
  for (const PageFile& each : EmbeddedPage()) of_page.insert(std::string(each.path));
  for (const auto& route : stand_->server().http_routes()) {
    if (IsCall(route.path) || of_page.count(route.path) != 0) continue;
    there.insert(route.path + (route.door == HttpDoor::kOpen ? " open" : ""));
  }
  EXPECT_EQ(listed, there);
  EXPECT_GE(of_page.size(), 3u);
}

TEST_F(RouteDoorsTest, NoneTellsOfAnotherProject) {
  // Silent for a minute it would not run any more.
  const std::int64_t hidden = stand_->Record(kHiddenProject, absl::StrCat("run-", kMark));
  const std::string owner = stand_->MakeToken({absl::StrCat("read:", kHiddenProject)});
  const std::string ingester =
      stand_->MakeToken({absl::StrCat("ingest:", kHiddenProject, "/run-", kMark)});
  for (const auto& [path, tells] : Expected()) {
    SCOPED_TRACE(path);
    const auto whole = stand_->Curl(path, stand_->admin());
    const auto own = stand_->Curl(path, owner);
    EXPECT_EQ(whole.code, "200");
    EXPECT_EQ(own.code, "200");
    for (const std::string& token : {other_, ingester, ingester_}) {
      const auto answer = stand_->Curl(path, token);
      EXPECT_EQ(answer.code, "200");
      EXPECT_THAT(answer.body, Not(HasSubstr(kMark)));
      if (tells == Tells::kNothing) {
        EXPECT_EQ(answer.body, whole.body);
        continue;
      }
      // Who may ingest a trial may not read it.
      if (token != other_) {
        EXPECT_THAT(answer.body, Not(HasSubstr("speech")));
        EXPECT_THAT(answer.body, Not(HasSubstr("vision")));
      }
    }
    if (tells == Tells::kNothing) continue;
    EXPECT_THAT(whole.body, HasSubstr(kMark)) << "there is something to tell";
    EXPECT_THAT(own.body, HasSubstr(kMark));
  }
  // With what they may be asked for.
  struct Row {
    std::string path;
    std::string other, reader;
  };
  for (const Row& row :
       {Row{absl::StrCat("/metrics?trial=", hidden), "404", "200"},
        Row{"/metrics?trial=none", "403", "403"}, Row{"/metrics?trial=1999999999", "404", "404"},
        Row{absl::StrCat("/sd?trial=", hidden), "400", "400"}}) {
    SCOPED_TRACE(row.path);
    for (const std::string& token : {other_, ingester, ingester_}) {
      const auto answer = stand_->Curl(row.path, token);
      EXPECT_EQ(answer.code, row.other);
      EXPECT_THAT(answer.body, Not(HasSubstr(kMark)));
    }
    EXPECT_EQ(stand_->Curl(row.path, owner).code, row.reader);
  }
}

// For those who work on the page: what has no route is a file of a folder. That door stands in no table of paths.
TEST(RestDoorTest, AFolderOfThePageIsBehindTheTokenToo) {
  const ScratchDirectory folder;
  std::ofstream(folder / "index.html") << "<!doctype html>own";
  std::ofstream(folder / "own.js") << "// own";
  DoorsStand stand(AsksCertificates::kNo, {"--ui-dir", folder.path()});
  const std::string token = stand.MakeToken({"ingest:vision/run"});
  for (const char* path : {"/", "/index.html", "/own.js", "/no/such", "/../own.js"}) {
    SCOPED_TRACE(path);
    const std::vector<std::string> as_it_is = {"--path-as-is"};
    EXPECT_EQ(stand.Curl(path, "", as_it_is).code, "401");
    EXPECT_EQ(stand.Curl(path, token + "0", as_it_is).code, "401");
  }
  EXPECT_EQ(stand.Curl("/own.js", token).code, "200");
  EXPECT_EQ(stand.Curl("/own.js", token).body, "// own");
  EXPECT_EQ(stand.Curl("/no/such", token).code, "404");
}

TEST_F(RouteDoorsTest, ATokenThatOnlyIngestsReadsNothing) {
  std::multiset<std::string> paths;
  for (const auto& route : stand_->server().http_routes()) paths.insert(route.path);
  int asked = 0;
  for (const MethodDescriptor* method : EveryMethod()) {
    const std::string path = "/" + PathOf(*method);
    const AccessRule& rule = *FindRule(*method->input_type());
    if (rule.right != Right::kRead || paths.count(path) == 0) continue;
    SCOPED_TRACE(path);
    ++asked;
    std::string json;
    ASSERT_TRUE(google::protobuf::util::MessageToJsonString(*RequestOf(*method), &json).ok());
    if (method->server_streaming()) {
      ASSERT_LT(json.size(), 128u);
      const std::string file = stand_->Scratch("asked");
      std::ofstream(file) << std::string(4, '\0') << static_cast<char>(json.size()) << json;
      const auto answer = stand_->Curl(
          path, ingester_,
          {"--header", "Content-Type: application/connect+json", "--data-binary", "@" + file});
      EXPECT_EQ(answer.code, "200");
      EXPECT_THAT(answer.body, HasSubstr("\"not_found\""));
      EXPECT_THAT(answer.body, Not(HasSubstr("vision")));
      continue;
    }
    const std::string refusal = rule.subject == Subject::kMaster ? "403"
                                : rule.subject == Subject::kList ? "200"
                                                                 : "404";
    const auto posted = stand_->Curl(path, ingester_, {"--json", json});
    EXPECT_EQ(posted.code, refusal) << posted.body;
    EXPECT_THAT(posted.body, Not(HasSubstr("vision")));
    if (paths.count(path) < 2) continue;
    const auto got = stand_->Curl(path, ingester_,
                                  {"--get", "--data", "connect=v1&encoding=json",
                                   "--data-urlencode", absl::StrCat("message=", json)});
    EXPECT_EQ(got.code, refusal) << got.body;
    EXPECT_THAT(got.body, Not(HasSubstr("vision")));
  }
  EXPECT_GE(asked, 14);
}

}  // namespace
}  // namespace stepwell::testing
