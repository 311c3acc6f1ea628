// What others see of a master without its own contract: gRPC health and reflection, /livez, /readyz.
#include <gmock/gmock.h>
#include <google/protobuf/descriptor.pb.h>
#include <google/protobuf/unknown_field_set.h>

#include "nlohmann/json.hpp"
#include "tests/e2e/raw_call.h"
#include "tests/e2e/spine.h"
#include "tests/support/postgres.h"

namespace stepwell::testing {
namespace {

using ::testing::IsSupersetOf;
using ::testing::StartsWith;

nlohmann::json BodyOf(const std::string& answer) {
  const auto at = answer.find("\r\n\r\n");
  if (at == std::string::npos) return answer;
  return nlohmann::json::parse(answer.substr(at + 4), nullptr, false);
}

// The fields numbered `number` of a message.
std::vector<std::string> FieldsOf(const std::string& message, int number) {
  google::protobuf::UnknownFieldSet fields;
  std::vector<std::string> found;
  if (!fields.ParseFromString(message)) return found;
  for (int i = 0; i < fields.field_count(); ++i) {
    const auto& field = fields.field(i);
    if (field.number() == number) found.push_back(field.length_delimited());
  }
  return found;
}

// ServerReflectionRequest with one field, ServerReflectionResponse's field `answer`.
std::string Reflect(const std::shared_ptr<grpc::Channel>& channel, int field,
                    const std::string& value, int answer) {
  google::protobuf::UnknownFieldSet request;
  request.AddLengthDelimited(field, value);
  std::string bytes;
  request.SerializeToString(&bytes);
  const RawAnswer said =
      CallRaw(channel, "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo", bytes);
  EXPECT_TRUE(said.status.ok()) << said.status.error_message();
  const auto found = FieldsOf(said.bytes, answer);
  return found.empty() ? "" : found[0];
}

class HealthTest : public SpineTest {
 protected:
  // Two masters on one database that belongs to neither.
  MasterProcess::Options On(const std::string& name, const std::string& url) {
    MasterProcess::Options options;
    options.scratch = scratch_.path();
    options.name = name;
    options.database_url = url;
    options.flags = {"--master-id=" + name};
    return options;
  }
};

TEST_F(HealthTest, ReflectionListsTheServicesAndGivesTheirDescriptors) {
  StartMaster();
  const std::string list = Reflect(client_->channel(), 7, "", 6);
  std::vector<std::string> services;
  for (const std::string& service : FieldsOf(list, 1)) {
    const auto name = FieldsOf(service, 1);
    ASSERT_EQ(name.size(), 1U);
    services.push_back(name[0]);
  }
  EXPECT_THAT(services, IsSupersetOf({"stepwell.v1.IngestService", "stepwell.v1.QueryService",
                                      "stepwell.v1.AdminService", "grpc.health.v1.Health"}));

  const std::string files = Reflect(client_->channel(), 4, "stepwell.v1.IngestService", 4);
  bool found = false;
  for (const std::string& bytes : FieldsOf(files, 1)) {
    google::protobuf::FileDescriptorProto file;
    ASSERT_TRUE(file.ParseFromString(bytes));
    for (const auto& service : file.service()) {
      if (service.name() != "IngestService") continue;
      found = true;
      EXPECT_EQ(file.package(), "stepwell.v1");
      ASSERT_EQ(service.method_size(), 2);
      EXPECT_EQ(service.method(0).name(), "StreamChunks");
      EXPECT_TRUE(service.method(0).client_streaming());
    }
  }
  EXPECT_TRUE(found) << files.size() << " bytes";
}

TEST_F(HealthTest, EachSaysWhetherTheMasterServesAndAStandbyFollowsAStopAtOnce) {
  const std::string url = TestPostgres::Get().Durable().FreshDatabase();
  MasterProcess first(On("first", url));
  ASSERT_TRUE(first.StartAndWait()) << first.LogTail();
  MasterProcess second(On("second", url));
  second.Start({});
  ASSERT_TRUE(
      Eventually([&] { return second.Get("/readyz").find("standby: ") != std::string::npos; },
                 absl::Seconds(30)))
      << second.LogTail();
  const IngestClient first_client(first.grpc_address());
  const IngestClient second_client(second.grpc_address());

  EXPECT_EQ(Health(first_client.channel()), "SERVING");
  EXPECT_EQ(Health(first_client.channel(), "stepwell.v1.IngestService"), "SERVING");
  EXPECT_EQ(Health(first_client.channel(), "nobody"), "status 5: service name unknown");
  EXPECT_EQ(Health(second_client.channel()), "NOT_SERVING");
  const std::string first_ready = first.Get("/readyz");
  EXPECT_THAT(first_ready, StartsWith("HTTP/1.1 200"));
  EXPECT_EQ(BodyOf(first_ready),
            nlohmann::json({{"ready", true}, {"role", "owner"}, {"epoch", 1}, {"reason", ""}}));
  const std::string second_ready = second.Get("/readyz");
  EXPECT_THAT(second_ready, StartsWith("HTTP/1.1 503"));
  const nlohmann::json standby = BodyOf(second_ready);
  EXPECT_EQ(standby.value("ready", true), false);
  EXPECT_EQ(standby.value("role", ""), "standby");
  EXPECT_EQ(standby.value("epoch", -1), 0);
  EXPECT_THAT(standby.value("reason", ""),
              StartsWith("standby: first owns the database, renewed "));
  for (const MasterProcess* master : {&first, &second}) {
    const std::string alive = master->Get("/livez");
    EXPECT_THAT(alive, StartsWith("HTTP/1.1 200"));
    EXPECT_EQ(BodyOf(alive), nlohmann::json({{"alive", true}}));
  }
  EXPECT_THAT(first.Get("/nowhere"), StartsWith("HTTP/1.1 404"));

  // In order: nobody waits for the lapse of 10 s.
  EXPECT_EQ(first.Stop(), "exit 0") << first.LogTail();
  const absl::Time stopped = absl::Now();
  ASSERT_TRUE(
      Eventually([&] { return Health(second_client.channel()) == "SERVING"; }, absl::Seconds(30)))
      << second.LogTail();
  const absl::Duration waited = absl::Now() - stopped;
  std::printf("the standby served %.2f s after the stop\n", absl::ToDoubleSeconds(waited));
  EXPECT_LT(waited, absl::Seconds(8)) << "2 s, the rest for a busy machine";
  EXPECT_THAT(second.Get("/readyz"), StartsWith("HTTP/1.1 200"));
  EXPECT_EQ(BodyOf(second.Get("/readyz")).value("epoch", 0), 2);
  EXPECT_EQ(second.Stop(), "exit 0") << second.LogTail();
}

}  // namespace
}  // namespace stepwell::testing
