#include "server/grpc_error.h"

#include <gtest/gtest.h>

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"
#include "storage/pg_error.h"

namespace stepwell {
namespace {

google::rpc::Status Wire(const grpc::Status& status) {
  google::rpc::Status wire;
  EXPECT_TRUE(wire.ParseFromString(status.error_details()));
  return wire;
}

template <typename Detail>
std::optional<Detail> Find(const grpc::Status& status) {
  const google::rpc::Status wire = Wire(status);
  for (const auto& packed : wire.details()) {
    if (Detail detail; packed.UnpackTo(&detail)) return detail;
  }
  return std::nullopt;
}

TEST(GrpcErrorTest, WhatFailedInTheMasterIsTheLogsToTell) {
  const absl::Status failures[] = {
      PgError("42P01", "relation \"stepwell.secret\" does not exist"),
      PgError("57014", "canceling statement due to statement timeout in /srv/secret"),
      PgError("", "connection to server on socket \"/srv/secret/.s.PGSQL.5432\" failed: x"),
      PgError("53100", "could not extend file \"base/5/secret\": No space left on device"),
      CommitUnknown("server closed /srv/secret"),
      ComeAgainIfUnknown(CommitUnknown("server closed /srv/secret, too")),
      ComeAgainBecause("a kept one is of no use: ", PgError("26000", "no statement \"secret\"")),
      absl::InternalError("/srv/secret: select 1"),
      absl::DataLossError("journal: secret"),
  };
  for (const absl::Status& failure : failures) {
    SCOPED_TRACE(failure.ToString());
    ::testing::internal::CaptureStderr();
    const grpc::Status told = GrpcError(failure);
    const std::string logged = ::testing::internal::GetCapturedStderr();
    EXPECT_EQ(static_cast<int>(told.error_code()), static_cast<int>(failure.code()));
    EXPECT_EQ(told.error_message().find("secret"), std::string::npos) << told.error_message();
    EXPECT_EQ(told.error_details().find("secret"), std::string::npos);
    const auto info = Find<google::rpc::ErrorInfo>(told);
    ASSERT_TRUE(info.has_value() && info->metadata().contains("request_id"));
    const std::string& id = info->metadata().at("request_id");
    EXPECT_NE(told.error_message().find(id), std::string::npos) << told.error_message();
    EXPECT_NE(logged.find(id), std::string::npos) << logged;
    EXPECT_NE(logged.find("secret"), std::string::npos) << logged;
  }
}

// A database that is away is told to each that asks.
TEST(GrpcErrorTest, WhatIsToldToManyIsLoggedOnceASecondUnderOneId) {
  const absl::Status away = PgError("", "connection to server failed: of this test");
  ::testing::internal::CaptureStderr();
  std::set<std::string> told;
  const absl::Time begin = absl::Now();
  for (int i = 0; i < 1000; ++i) told.insert(GrpcError(away).error_message());
  const auto seconds = static_cast<std::size_t>(absl::ToInt64Seconds(absl::Now() - begin));
  const std::string logged = ::testing::internal::GetCapturedStderr();
  EXPECT_LE(told.size(), seconds + 1);
  const std::vector<std::string> parts = absl::StrSplit(logged, "call_failed");
  EXPECT_EQ(parts.size() - 1, told.size()) << logged;
  for (const std::string& words : told) {
    const std::size_t at = words.find("request ") + 8;
    EXPECT_NE(logged.find(words.substr(at, 13)), std::string::npos) << words;
  }
}

TEST(GrpcErrorTest, EachSaysWhyAndWhenToComeAgain) {
  struct Row {
    const char* name;
    grpc::Status status;
    grpc::StatusCode code;
    const char* reason;
    double retry_seconds;  // -1 = none
  };
  absl::Status named = absl::NotFoundError("no such trial");
  named.SetPayload("stepwell/reason", absl::Cord("TRIAL_NOT_FOUND"));
  const std::vector<Row> rows = {
      {"plain", GrpcError(absl::NotFoundError("x")), grpc::StatusCode::NOT_FOUND, "NOT_FOUND", -1},
      {"named", GrpcError(named), grpc::StatusCode::NOT_FOUND, "TRIAL_NOT_FOUND", -1},
      {"unavailable", GrpcError(absl::UnavailableError("x")), grpc::StatusCode::UNAVAILABLE,
       "UNAVAILABLE", 1},
      {"complaint", GrpcError(Invalid("RANK", "open.rank is -1, allowed is 0 and above")),
       grpc::StatusCode::INVALID_ARGUMENT, "RANK", -1},
      {"half a second",
       GrpcError(absl::ResourceExhaustedError("x"),
                 {.reason = "FULL", .retry_delay = absl::Milliseconds(2500), .violations = {}}),
       grpc::StatusCode::RESOURCE_EXHAUSTED, "FULL", 2.5},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.name);
    EXPECT_EQ(row.status.error_code(), row.code);
    EXPECT_EQ(Wire(row.status).code(), row.code);
    EXPECT_EQ(Wire(row.status).message(), row.status.error_message());
    const auto info = Find<google::rpc::ErrorInfo>(row.status);
    ASSERT_TRUE(info.has_value());
    EXPECT_EQ(info->reason(), row.reason);
    EXPECT_EQ(info->domain(), "stepwell");
    const auto retry = Find<google::rpc::RetryInfo>(row.status);
    ASSERT_EQ(retry.has_value(), row.retry_seconds >= 0);
    if (!retry) continue;
    EXPECT_EQ(
        static_cast<double>(retry->retry_delay().seconds()) + retry->retry_delay().nanos() / 1e9,
        row.retry_seconds);
  }
}

TEST(GrpcErrorTest, WhatWasWrongNamesItsField) {
  const grpc::Status status = GrpcError(Invalid("RANK", "open.rank is -1, allowed is 0 and above"));
  const auto bad = Find<google::rpc::BadRequest>(status);
  ASSERT_TRUE(bad.has_value());
  ASSERT_EQ(bad->field_violations_size(), 1);
  EXPECT_EQ(bad->field_violations(0).field(), "open.rank");
  EXPECT_EQ(bad->field_violations(0).description(), "open.rank is -1, allowed is 0 and above");
}

TEST(GrpcErrorTest, OkStaysOkAndLongTextIsCut) {
  EXPECT_TRUE(GrpcError(absl::OkStatus()).ok());
  const grpc::Status status = GrpcError(absl::NotFoundError(std::string(9000, 'x') + "\xFF"));
  EXPECT_EQ(status.error_message().size(), 1024U);
  EXPECT_LT(status.error_details().size(), 2048U);
}

}  // namespace
}  // namespace stepwell
