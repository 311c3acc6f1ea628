// Who is told which caps, of a master that asks for tokens.
#include <gmock/gmock.h>

#include <set>

#include "absl/strings/str_replace.h"
#include "stepwell/v1/admin.pb.h"
#include "tests/e2e/doors_stand.h"

namespace stepwell::testing {
namespace {

using ::testing::Contains;
using ::testing::IsSupersetOf;
using ::testing::Not;

TEST(CapsDoorsTest, CapsAreToldOfProjectsThatATokenReads) {
  DoorsStand stand;
  stand.Record("vision", "run");
  stand.Record("speech", "run");
  const std::string reader = stand.MakeToken({"read:vision"});
  const std::string other = stand.MakeToken({"write:speech"});
  const std::string all_projects = stand.MakeToken({"read:*"});
  const std::string ingester = stand.MakeToken({"ingest:vision/run"});
  for (const char* project : {"vision", "speech"}) {
    v1::SetCapsRequest request;
    request.mutable_place()->set_project(project);
    request.mutable_caps()->set_raw_age_seconds(86'400 * 30);
    const Called set = stand.Call("stepwell.v1.AdminService/SetCaps", request, stand.admin());
    EXPECT_TRUE(set.status.ok()) << set.status.error_message();
  }
  const auto ask = [&](const v1::CapsPlace& place, const std::string& token) {
    v1::GetCapsRequest request;
    *request.mutable_place() = place;
    return stand.Call("stepwell.v1.AdminService/GetCaps", request, token);
  };
  const auto projects = [](const Called& called) {
    v1::GetCapsResponse caps;
    EXPECT_TRUE(called.status.ok()) << called.status.error_message();
    EXPECT_TRUE(caps.ParseFromString(called.bytes));
    std::set<std::string> named;
    for (const auto& each : caps.places()) named.insert(each.place().project());
    return named;
  };
  v1::CapsPlace all, vision, absent;
  all.set_metric_group("");
  vision.set_project("vision");
  absent.set_project("nowhere");
  EXPECT_THAT(projects(ask(all, all_projects)), IsSupersetOf({"vision", "speech"}));
  EXPECT_THAT(projects(ask(all, reader)), Contains("vision"));
  EXPECT_THAT(projects(ask(all, reader)), Not(Contains("speech")));
  EXPECT_THAT(projects(ask(vision, reader)), Contains("vision"));
  EXPECT_EQ(ask(vision, other).status.error_code(), grpc::StatusCode::PERMISSION_DENIED);
  EXPECT_EQ(absl::StrReplaceAll(ask(vision, other).status.error_message(), {{"vision", "P"}}),
            absl::StrReplaceAll(ask(absent, other).status.error_message(), {{"nowhere", "P"}}));
  EXPECT_EQ(ask(all, ingester).status.error_code(), grpc::StatusCode::PERMISSION_DENIED);
}

}  // namespace
}  // namespace stepwell::testing
