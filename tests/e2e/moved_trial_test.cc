// A trial that lies in another project than AccessControl remembers, which no call of ours moves: who may write where it lay
// passes there, and finds nothing behind it, since what changes a trial carries the projects of its caller as well.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "server/access_rules.h"
#include "storage/pg_connection.h"
#include "tests/e2e/doors_stand.h"
#include "tests/e2e/request_about.h"
#include "tests/support/every_method.h"

namespace stepwell::testing {
namespace {

void Move(const std::string& database_url, std::int64_t trial_id, const std::string& project) {
  const auto connection = PgConnection::Open({.url = database_url});
  ASSERT_TRUE(connection.ok()) << connection.status();
  const auto moved = (*connection)
                         ->Exec(
                             "update stepwell.trials set project_id = p.project_id "
                             "from stepwell.projects p where p.name = $2 and trial_id = $1",
                             {trial_id, project});
  ASSERT_TRUE(moved.ok()) << moved.status();
}

TEST(MovedTrialTest, IsChangedByNobodyWhoMayNotBeToldOfWhereItLies) {
  DoorsStand stand;
  const std::int64_t run = stand.Record("vision", "run", WriterEnds::kClosed);
  stand.Record("speech", "beside");
  const std::string token = stand.MakeToken({"write:vision"});
  const AskedTrial asked{run, "vision", "run"};
  const auto call = [&](const google::protobuf::MethodDescriptor& method) {
    return stand.Call(PathOf(method), *RequestAbout(method, asked), token).status;
  };
  // From here on AccessControl knows where it lies; of what reads remember nothing is.
  v1::ListTracesRequest list;
  list.mutable_trial()->set_trial_id(run);
  ASSERT_TRUE(stand.Call("stepwell.v1.TraceService/ListTraces", list, token).status.ok());

  const std::string url = stand.server().addresses().database_url;
  Move(url, run, "speech");
  std::vector<const google::protobuf::MethodDescriptor*> methods;
  for (const google::protobuf::MethodDescriptor* method : EveryMethod()) {
    const Subject subject = FindRule(*method->input_type())->subject;
    const bool names_trial =
        subject == Subject::kTrials || subject == Subject::kTrialId || method->name() == "GetCaps";
    if (method->service()->name() == "AdminService" && names_trial) methods.push_back(method);
  }
  ASSERT_GE(methods.size(), 5u);
  for (const auto* method : methods) {
    const grpc::Status status = call(*method);
    EXPECT_EQ(status.error_code(), grpc::StatusCode::NOT_FOUND) << method->full_name();
    EXPECT_EQ(status.error_message(), absl::StrCat("there is no trial with the id ", run))
        << method->full_name();
  }
  Move(url, run, "vision");
  for (const auto* method : methods) {
    if (method->name() == "DeleteTrial") continue;
    const grpc::Status status = call(*method);
    EXPECT_TRUE(status.ok()) << method->full_name() << status.error_message();
  }
}

}  // namespace
}  // namespace stepwell::testing
