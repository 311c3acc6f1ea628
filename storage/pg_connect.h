// PgConnect: opens a connection of libpq's, one host after another and of each one address after
// another, without waiting inside libpq: a cut ends it at its moment, however many there are. What may
// still block is the resolver of host names. Thread-safe.
//
//   STEPWELL_ASSIGN_OR_RETURN(pg_conn * connection, PgConnect(targets, {.cut = cut.get()}));
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "storage/pg_cut.h"

struct pg_conn;  // libpq's

namespace stepwell {

struct PgConnectOptions {
  // For each address.
  absl::Duration patience = absl::Seconds(10);
  // Null = none. Borrowed until the call returns.
  const PgCut* cut = nullptr;
};

// `targets` are tried in order (PgConninfoOfEachHost). The caller gives what is returned to PQfinish.
// kUnavailable: none answered, or the cut came.
absl::StatusOr<pg_conn*> PgConnect(const std::vector<std::string>& targets,
                                   const PgConnectOptions& options);

// What the call says where the cut ended it.
inline constexpr char kCutMessage[] = "cut: this process is stopping";

}  // namespace stepwell
