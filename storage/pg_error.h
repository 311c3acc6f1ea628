// PgError: what a failure of PostgreSQL means to the caller, as an absl::Status. The code says what
// to do (kUnavailable come again, kInvalidArgument the data is bad, kFailedPrecondition the
// database is not what we expect); the SQLSTATE and a reason travel as payloads. No SQL text, no
// detail line and no password ever enters a message. Pure functions.
//
//   if (IsCommitUnknown(status)) return ReadBack(writers);
//   if (IsRetryable(status)) ...
#pragma once

#include <string>
#include <string_view>

#include "absl/status/status.h"

namespace stepwell {

// `sqlstate` empty means that the connection itself failed.
absl::Status PgError(std::string_view sqlstate, std::string_view message);

// A COMMIT was sent and its answer never came: the transaction may or may not be there. The caller
// reads back on a new connection; it never sends the same data again blindly.
absl::Status CommitUnknown(std::string_view message);
bool IsCommitUnknown(const absl::Status& status);
// For a transaction that does the same once or twice: its COMMIT in doubt as kUnavailable, still the database's; all else as it is.
absl::Status ComeAgainIfUnknown(const absl::Status& status);
// kUnavailable with `why` before what the database said; it stays the database's.
absl::Status ComeAgainBecause(std::string_view why, const absl::Status& status);

// The five characters, empty when the status carries none.
std::string SqlState(const absl::Status& status);

// PostgreSQL's, or of a connection to it: its words are for the log, not for who asked.
bool IsOfDatabase(const absl::Status& status);
// What of such words may be told to strangers: no path, host, port or name.
std::string WithoutNames(std::string_view message);

// A page or a file of a table or an index that the server cannot read: what lies elsewhere can be.
bool IsUnreadable(const absl::Status& status);

// True when the same transaction may succeed later, unchanged, on a new connection.
bool IsRetryable(const absl::Status& status);

// `text` with the password of any URL or key=value connection string in it replaced by ***.
std::string RedactPasswords(std::string_view text);

}  // namespace stepwell
