#include "server/ingest_answers.h"

#include "absl/strings/str_cat.h"
#include "server/limits.h"
#include "server/rate_refusal.h"
#include "server/text_check.h"
#include "server/told_error.h"

namespace stepwell {
namespace {

// When to come again after kUnavailable or kResourceExhausted, where nothing says how long that lasts.
constexpr absl::Duration kRetryDelay = absl::Seconds(1);

pb::ServerLimits Limits() {
  pb::ServerLimits limits;
  limits.set_chunk_bytes_max(kChunkBytesMax);
  limits.set_chunk_samples_max(kChunkSamplesMax);
  limits.set_series_per_writer_max(kSeriesPerWriterMax);
  limits.set_labels_per_series_max(kLabelsPerSeriesMax);
  limits.set_label_name_bytes_max(kLabelNameBytesMax);
  limits.set_label_value_bytes_max(kLabelValueBytesMax);
  limits.set_metric_name_bytes_max(kMetricNameBytesMax);
  limits.set_message_bytes_max(kMessageBytesMax);
  limits.set_writers_per_stream_max(kWritersPerStreamMax);
  limits.set_heartbeat_seconds_max(kHeartbeatSecondsMax);
  return limits;
}

// "SERIES_LIMIT: trial 7 has ..." as (reason, text); the code's name where there is no reason.
Complaint Plain(const absl::Status& status, const char* reason) {
  return {status.code(), reason, Shortened(TellClient(status).message, 1024), RetryDelayOf(status)};
}

// Of what passes, whatever code it has: an agent comes again.
Complaint Passing(const absl::Status& status, const char* reason) {
  Complaint complaint = Plain(status, reason);
  complaint.code = absl::StatusCode::kUnavailable;
  return complaint;
}

// The store failed at it, for what the log tells under that id.
Complaint Unopened(const absl::Status& status) {
  const std::string request_id = TellClient(status).request_id;
  std::string text = "the database does not answer; open again later";
  if (!request_id.empty()) {
    absl::StrAppend(&text, " (request ", request_id, " in the master's log)");
  }
  return {absl::StatusCode::kUnavailable, "DATABASE_UNAVAILABLE", std::move(text)};
}

// What a store says why, where it does.
std::string ReasonOf(const absl::Status& status, const char* fallback) {
  const auto reason = status.GetPayload("stepwell/reason");
  return reason ? std::string(*reason) : fallback;
}

}  // namespace

pb::StreamChunksResponse MakeOpened(const pb::Open& open, const OpenedWriter& opened,
                                    const Uuid& incarnation, std::int64_t credit_bytes,
                                    std::int64_t server_time_us) {
  pb::StreamChunksResponse message;
  pb::Opened& answer = *message.mutable_opened();
  answer.set_writer(open.writer());
  answer.set_trial_id(Value(opened.trial_id));
  answer.set_writer_no(Value(opened.writer_no));
  answer.set_attempt(opened.attempt);
  answer.set_generation(opened.generation);
  answer.set_committed_sequence(opened.committed_sequence);
  answer.set_committed_crc32c(opened.last_crc32c);
  for (const Gap& gap : opened.rejections) {
    pb::Rejection& rejection = *answer.add_rejections();
    rejection.set_first_sequence(gap.first_sequence);
    rejection.set_last_sequence(gap.last_sequence);
    const auto colon = gap.reason.find(": ");
    rejection.set_reason(gap.reason.substr(0, colon));
    if (colon != std::string::npos) rejection.set_message(gap.reason.substr(colon + 2));
    rejection.set_sample_count(static_cast<std::uint64_t>(gap.sample_count));
  }
  *answer.mutable_limits() = Limits();
  answer.set_incarnation(incarnation.ToBytes());
  answer.set_server_time_us(server_time_us);
  answer.set_credit_bytes(credit_bytes);
  return message;
}

pb::StreamChunksResponse MakeRefused(const std::string& writer, const Complaint& complaint,
                                     bool terminal, std::uint64_t expected_sequence) {
  pb::StreamChunksResponse message;
  pb::Refused& refused = *message.mutable_refused();
  refused.set_writer(writer.substr(0, 16));
  refused.set_code(static_cast<int>(complaint.code));
  refused.set_reason(complaint.reason);
  refused.set_message(Shortened(complaint.message, 1024));
  refused.set_terminal(terminal);
  refused.set_expected_sequence(expected_sequence);
  if (complaint.code == absl::StatusCode::kUnavailable ||
      complaint.code == absl::StatusCode::kResourceExhausted) {
    refused.set_retry_delay_ms(
        absl::ToInt64Milliseconds(complaint.retry_delay.value_or(kRetryDelay)));
  }
  return message;
}

pb::Rejection MakeRejection(const CheckedChunk& chunk) {
  pb::Rejection rejection;
  rejection.set_first_sequence(chunk.first_sequence);
  rejection.set_last_sequence(chunk.last_sequence);
  rejection.set_reason(chunk.rejected->complaint.reason);
  rejection.set_message(Shortened(chunk.rejected->complaint.message, 1024));
  rejection.set_sample_count(static_cast<std::uint64_t>(chunk.rejected->sample_count));
  return rejection;
}

Complaint OpenComplaint(const absl::Status& status, const OpenWriterRequest& request) {
  switch (status.code()) {
    case absl::StatusCode::kNotFound:
      return {status.code(), "TRIAL_NOT_FOUND",
              absl::StrCat("open.trial_id ", request.trial.trial_id,
                           " was not given by this master; allowed are 1 to 999999999 and numbers"
                           " that it gave")};
    case absl::StatusCode::kInvalidArgument:
      return Plain(status, "OPEN_REFUSED");
    case absl::StatusCode::kResourceExhausted:
      return Plain(status, "WRITER_LIMIT");
    case absl::StatusCode::kPermissionDenied:
      return Plain(status, "GRANT_MISSING");
    case absl::StatusCode::kFailedPrecondition:
      return Plain(status, ReasonOf(status, "OPEN_REFUSED").c_str());
    case absl::StatusCode::kAborted:
      return {absl::StatusCode::kUnavailable, "NOT_OWNER", "another master owns the database now"};
    default:
      return Unopened(status);
  }
}

Complaint TokenComplaint(const absl::Status& status) {
  if (absl::IsUnauthenticated(status)) return Plain(status, "TOKEN_REFUSED");
  if (absl::IsPermissionDenied(status)) return Plain(status, "GRANT_MISSING");
  return Passing(status, absl::IsResourceExhausted(status) ? "RATE_LIMIT" : "TOKEN_NOT_LOOKED_UP");
}

Complaint SeriesComplaint(const absl::Status& status, const CheckedDefinition& definition) {
  const std::string text =
      absl::StrCat("ref ", definition.number, " (", definition.definition.key.metric_group, " ",
                   definition.definition.key.name, "): ", TellClient(status).message);
  return {status.code(), SeriesReason(status.code()), Shortened(text, 1024)};
}

const char* SeriesReason(absl::StatusCode code) {
  switch (code) {
    case absl::StatusCode::kResourceExhausted:
      return "SERIES_LIMIT";
    case absl::StatusCode::kNotFound:
      return "TRIAL_NOT_FOUND";
    default:
      return "SERIES_CONFLICT";
  }
}

void RefusalSummary::Add(const Complaint& complaint) {
  auto& [first, count] = by_reason_[complaint.reason];
  if (count++ == 0) first = complaint;
}

bool RefusalSummary::CountAgain(absl::string_view reason) {
  const auto found = by_reason_.find(reason);
  if (found == by_reason_.end()) return false;
  ++found->second.second;
  return true;
}

std::vector<Complaint> RefusalSummary::Take() const {
  std::vector<Complaint> out;
  for (const auto& [reason, entry] : by_reason_) {
    Complaint complaint = entry.first;
    if (entry.second > 1) {
      absl::StrAppend(&complaint.message, "; and ", entry.second - 1, " more of the message");
    }
    out.push_back(std::move(complaint));
  }
  return out;
}

}  // namespace stepwell
