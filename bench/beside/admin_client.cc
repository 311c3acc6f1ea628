#include "bench/beside/admin_client.h"

#include <grpcpp/grpcpp.h>

#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/status_macros.h"
#include "tests/support/sql_of.h"

namespace stepwell::bench {
namespace {

constexpr absl::Duration kPatience = absl::Minutes(3);
// Longer than the interval of folds that the bench sets: then none is under way.
constexpr absl::Duration kQuiet = absl::Milliseconds(700);
// A master renews its row, PostgreSQL notes running transactions.
constexpr std::int64_t kQuietWalBytes = 8192;

void Fill(const std::string& trial, v1::CapsPlace& place) {
  if (!trial.empty()) place.mutable_trial()->set_external_id(trial);
}

absl::Status Told(const grpc::Status& status, const char* call) {
  if (status.ok()) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat(call, ": ", status.error_message()));
}

void SetDeadline(grpc::ClientContext& context) {
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(60));
}

}  // namespace

absl::StatusOr<std::unique_ptr<AdminClient>> AdminClient::Open(const std::string& address,
                                                               const std::string& database_url) {
  STEPWELL_ASSIGN_OR_RETURN(
      auto sql, PgConnection::Open({.url = database_url, .application_name = "beside_bench"}));
  return std::unique_ptr<AdminClient>(new AdminClient(address, std::move(sql)));
}

AdminClient::AdminClient(const std::string& address, std::unique_ptr<PgConnection> sql)
    : stub_(v1::AdminService::NewStub(
          grpc::CreateChannel(address, grpc::InsecureChannelCredentials()))),
      sql_(std::move(sql)) {}

absl::Status AdminClient::SetCaps(const std::string& trial, const v1::Caps& caps) {
  grpc::ClientContext context;
  SetDeadline(context);
  v1::SetCapsRequest request;
  Fill(trial, *request.mutable_place());
  *request.mutable_caps() = caps;
  v1::SetCapsResponse response;
  return Told(stub_->SetCaps(&context, request, &response), "set caps");
}

absl::StatusOr<std::int64_t> AdminClient::Sweep(const std::string& trial) {
  grpc::ClientContext context;
  SetDeadline(context);
  v1::SweepCapsRequest request;
  if (!trial.empty()) Fill(trial, *request.mutable_place());
  v1::SweepCapsResponse response;
  STEPWELL_RETURN_IF_ERROR(Told(stub_->SweepCaps(&context, request, &response), "sweep"));
  return response.sample_count();
}

absl::Status AdminClient::AwaitMerged(const std::string& trials) {
  grpc::ClientContext context;
  SetDeadline(context);
  v1::FlushResponse response;
  STEPWELL_RETURN_IF_ERROR(Told(stub_->Flush(&context, {}, &response), "flush"));
  const std::string left = absl::StrCat(
      "select count(*) from stepwell.recent_ticks where trial_id in (select trial_id from "
      "stepwell.trials where external_id like '",
      trials, "')");
  for (const absl::Time end = absl::Now() + kPatience; absl::Now() < end;) {
    STEPWELL_ASSIGN_OR_RETURN(const std::int64_t rows, Number(left));
    if (rows == 0) return absl::OkStatus();
    absl::SleepFor(absl::Milliseconds(20));
  }
  return absl::DeadlineExceededError(absl::StrCat(trials, " is not merged"));
}

absl::Status AdminClient::AwaitQuiet() {
  for (const absl::Time end = absl::Now() + kPatience; absl::Now() < end;) {
    STEPWELL_ASSIGN_OR_RETURN(const std::int64_t before, Number(kReadWal));
    absl::SleepFor(kQuiet);
    STEPWELL_ASSIGN_OR_RETURN(const std::int64_t after, Number(kReadWal));
    if (after - before <= kQuietWalBytes) return absl::OkStatus();
  }
  return absl::DeadlineExceededError("the database goes on writing");
}

absl::StatusOr<std::int64_t> AdminClient::Number(const std::string& statement) {
  STEPWELL_ASSIGN_OR_RETURN(const PgResult result, sql_->Exec(SqlOf(statement)));
  if (result.row_count() != 1) return absl::InternalError(absl::StrCat("no row: ", statement));
  return result.Int64(0, 0);
}

}  // namespace stepwell::bench
