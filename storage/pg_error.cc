#include "storage/pg_error.h"

#include <array>
#include <regex>

#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"

namespace stepwell {
namespace {

constexpr char kSqlStatePayload[] = "stepwell/sqlstate";
constexpr char kReasonPayload[] = "stepwell/reason";
constexpr char kCommitUnknownReason[] = "COMMIT_UNKNOWN";

struct Rule {
  std::string_view prefix;
  absl::StatusCode code;
};

// The longest matching prefix comes first. Classes: PostgreSQL manual, appendix A.
constexpr std::array kRules = {
    Rule{"25006", absl::StatusCode::kUnavailable},       // read-only: a standby, or mid failover
    Rule{"25P03", absl::StatusCode::kUnavailable},       // we idled too long in a transaction
    Rule{"42501", absl::StatusCode::kPermissionDenied},  // the role lacks a right
    Rule{"55P03", absl::StatusCode::kUnavailable},       // lock_timeout
    Rule{"55006", absl::StatusCode::kUnavailable},       // object in use
    Rule{"57014", absl::StatusCode::kDeadlineExceeded},  // statement_timeout
    Rule{"57P", absl::StatusCode::kUnavailable},         // shutting down, starting up, crashed
    Rule{"XX001", absl::StatusCode::kDataLoss},          // data corrupted
    Rule{"XX002", absl::StatusCode::kDataLoss},          // index corrupted
    Rule{"08", absl::StatusCode::kUnavailable},          // connection
    Rule{"40", absl::StatusCode::kUnavailable},          // serialization, deadlock
    Rule{"53", absl::StatusCode::kUnavailable},          // disk full, too many connections
    Rule{"54", absl::StatusCode::kInvalidArgument},      // larger than a row, an index entry, ...
    Rule{"58", absl::StatusCode::kUnavailable},          // I/O errors outside PostgreSQL
    Rule{"22", absl::StatusCode::kInvalidArgument},      // data exception
    Rule{"23", absl::StatusCode::kInvalidArgument},      // constraint
    Rule{"28", absl::StatusCode::kPermissionDenied},     // authentication
    Rule{"0A", absl::StatusCode::kFailedPrecondition},   // feature not supported
    Rule{"3D", absl::StatusCode::kFailedPrecondition},   // no such database
    Rule{"3F", absl::StatusCode::kFailedPrecondition},   // no such schema
    Rule{"42", absl::StatusCode::kFailedPrecondition},   // no such table, column, function
    Rule{"55", absl::StatusCode::kFailedPrecondition},   // not in the required state
};

absl::StatusCode CodeOf(std::string_view sqlstate) {
  if (sqlstate.empty()) return absl::StatusCode::kUnavailable;
  for (const Rule& rule : kRules) {
    if (sqlstate.substr(0, rule.prefix.size()) == rule.prefix) return rule.code;
  }
  return absl::StatusCode::kInternal;
}

// PostgreSQL quotes offending values whole, however long they are.
constexpr std::size_t kMessageBytesMax = 512;

std::string FirstLine(std::string_view text) {
  text = text.substr(0, text.find('\n'));
  if (text.size() <= kMessageBytesMax) return std::string(text);
  std::size_t end = kMessageBytesMax;
  while (end > 0 && (text[end] & 0xc0) == 0x80) --end;  // not inside a character
  return std::string(text.substr(0, end)) + "...";
}

}  // namespace

absl::Status PgError(std::string_view sqlstate, std::string_view message) {
  const std::string text = RedactPasswords(FirstLine(message));
  if (sqlstate.empty()) {
    absl::Status status = absl::UnavailableError(absl::StrCat("PostgreSQL connection: ", text));
    status.SetPayload(kSqlStatePayload, absl::Cord());
    return status;
  }
  absl::Status status(CodeOf(sqlstate),
                      absl::StrCat("PostgreSQL ", std::string(sqlstate), ": ", text));
  status.SetPayload(kSqlStatePayload, absl::Cord(std::string(sqlstate)));
  return status;
}

absl::Status CommitUnknown(std::string_view message) {
  absl::Status status = absl::UnknownError(
      absl::StrCat("outcome of COMMIT unknown: ", RedactPasswords(FirstLine(message))));
  status.SetPayload(kReasonPayload, absl::Cord(kCommitUnknownReason));
  status.SetPayload(kSqlStatePayload, absl::Cord());
  return status;
}

bool IsCommitUnknown(const absl::Status& status) {
  const auto reason = status.GetPayload(kReasonPayload);
  return reason.has_value() && *reason == kCommitUnknownReason;
}

absl::Status ComeAgainIfUnknown(const absl::Status& status) {
  return IsCommitUnknown(status) ? ComeAgainBecause("", status) : status;
}

absl::Status ComeAgainBecause(std::string_view why, const absl::Status& status) {
  absl::Status again = absl::UnavailableError(absl::StrCat(std::string(why), status.message()));
  again.SetPayload(kSqlStatePayload, absl::Cord());
  return again;
}

std::string SqlState(const absl::Status& status) {
  const auto sqlstate = status.GetPayload(kSqlStatePayload);
  return sqlstate.has_value() ? std::string(*sqlstate) : std::string();
}

bool IsOfDatabase(const absl::Status& status) {
  return status.GetPayload(kSqlStatePayload).has_value();
}

std::string WithoutNames(std::string_view message) {
  // Up to the colon that libpq has between where it was and what went wrong.
  static const std::regex kPlace(R"( (?:on socket|at) "[^"]*"(?: \([^)]*\))?(?:, port \d+)?)");
  static const std::regex kQuoted(R"("[^"]*")");
  const std::string placeless = std::regex_replace(std::string(message), kPlace, "");
  return std::regex_replace(placeless, kQuoted, "...");
}

bool IsUnreadable(const absl::Status& status) {
  const std::string state = SqlState(status);
  return state == "XX001" || state == "58030" || state == "58P01";
}

bool IsRetryable(const absl::Status& status) {
  return status.code() == absl::StatusCode::kUnavailable;
}

std::string RedactPasswords(std::string_view text) {
  // The last @ before the path ends the user part: a password may hold @ and : unescaped.
  static const std::regex kUrl(R"((\w+://[^\s:/@?]*):[^\s/?]*@)");
  static const std::regex kKeyword(
      R"(((?:password|passfile|sslpassword)\s*=\s*)('(?:[^'\\]|\\.)*'|[^\s&'"]+))",
      std::regex::icase);
  std::string redacted = std::regex_replace(std::string(text), kUrl, "$1:***@");
  return std::regex_replace(redacted, kKeyword, "$1***");
}

}  // namespace stepwell
