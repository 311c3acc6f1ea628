// PgStoppedCopies: sessions of a former owner that hold their locks for ever. A master that is stopped, or cut off, in the middle of a
// COPY is waited for without an end: while PostgreSQL reads from a client it looks at no statement_timeout, and a session that copies
// is not idle. Whoever takes over ends them; what they had not committed was not acked, and comes again. By the names of masters'
// sessions: those of another role, or behind a pooler that does not hand on application_name, are not seen.
#pragma once

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "storage/pg_connection.h"

namespace stepwell {

// Ends all of masters' sessions in this database, of our role, whose COPY began `age` ago or earlier and waits for data; how many. Of
// others none. REQUIRES: the caller owns the database, and copies nothing itself.
absl::StatusOr<int> EndStoppedCopies(PgConnection& connection, absl::Duration age);

}  // namespace stepwell
