#include "server/ingest_answers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "server/rate_refusal.h"
#include "storage/pg_error.h"

namespace stepwell {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// Of a request id: "6f1c2a9e-04b7".
constexpr std::size_t kIdBytes = 13;

TEST(IngestAnswersTest, WhatFailedInTheMasterIsTheLogsToTellUnderTheIdThatTheWriterIsTold) {
  const auto opened = [](const absl::Status& status) {
    return OpenComplaint(status, OpenWriterRequest());
  };
  const struct {
    const char* name;
    absl::Status status;
    std::function<Complaint(const absl::Status&)> complain;
    const char* reason;
  } rows[] = {
      {"no connection", PgError("", "connection to /srv/secret failed"), opened,
       "DATABASE_UNAVAILABLE"},
      {"a statement that took too long", PgError("57014", "canceled in /srv/secret"), opened,
       "DATABASE_UNAVAILABLE"},
      {"a full disk", PgError("53100", "no space left for base/secret"), opened,
       "DATABASE_UNAVAILABLE"},
      {"our own", absl::InternalError("/srv/secret: select 1"), opened, "DATABASE_UNAVAILABLE"},
      {"where a trial lies", PgError("", "connection to /srv/secret failed, too"), TokenComplaint,
       "TOKEN_NOT_LOOKED_UP"},
  };
  for (const auto& row : rows) {
    SCOPED_TRACE(row.name);
    ::testing::internal::CaptureStderr();
    const Complaint told = row.complain(row.status);
    const std::string logged = ::testing::internal::GetCapturedStderr();
    EXPECT_EQ(told.code, absl::StatusCode::kUnavailable);
    EXPECT_EQ(told.reason, row.reason);
    EXPECT_THAT(told.message, Not(HasSubstr("secret")));
    const std::size_t at = told.message.find("request ");
    ASSERT_NE(at, std::string::npos) << told.message;
    const std::string id = told.message.substr(at + 8, kIdBytes);
    EXPECT_THAT(id, ::testing::MatchesRegex("[0-9a-f]+-[0-9a-f]+"));
    EXPECT_THAT(logged, HasSubstr("call_failed"));
    EXPECT_THAT(logged, HasSubstr(id));
    EXPECT_THAT(logged, HasSubstr("secret"));
  }
}

TEST(IngestAnswersTest, WhatPassesByItselfIsToldWithoutALineOfItsOwn) {
  ::testing::internal::CaptureStderr();
  const Complaint told = OpenComplaint(absl::UnavailableError("starting"), OpenWriterRequest());
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
  EXPECT_EQ(told.message, "the database does not answer; open again later");
}

TEST(IngestAnswersTest, ARefusalSaysWhenToComeAgain) {
  const auto rate = [](absl::Duration wait) {
    return TokenComplaint(RateRefusal("opens-per-second", 10, "used up", wait));
  };
  const struct {
    const char* name;
    Complaint complaint;
    std::int64_t milliseconds;
  } rows[] = {
      {"soon", rate(absl::Microseconds(1500)), 2},
      {"late", rate(absl::Seconds(47)), 47'000},
      {"look-ups", TokenComplaint(ComeAgain(absl::UnavailableError("x"), "R", absl::Seconds(3))),
       3000},
      {"where nothing says", TokenComplaint(absl::UnavailableError("x")), 1000},
      {"a limit of the trial",
       OpenComplaint(absl::ResourceExhaustedError("x"), OpenWriterRequest()), 1000},
      {"never", TokenComplaint(absl::PermissionDeniedError("x")), 0},
  };
  for (const auto& row : rows) {
    SCOPED_TRACE(row.name);
    const auto message = MakeRefused(std::string(16, 'w'), row.complaint, false, 0);
    EXPECT_EQ(message.refused().retry_delay_ms(), row.milliseconds);
  }
}

}  // namespace
}  // namespace stepwell
