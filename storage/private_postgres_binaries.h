// PostgresBinaries: where the system keeps initdb and postgres, and which version they are.
#pragma once

#include <string>

#include "absl/status/statusor.h"

namespace stepwell {

struct PostgresBinaries {
  std::string initdb;
  std::string postgres;
  int major = 0;
};

// Looks in `directory` alone when given; else $STEPWELL_PG_BINDIR alone when set; else in
// `pg_config --bindir` and the distributions' versioned directories, the newest of version 15 or
// later. `major` 0 takes the newest, otherwise that version is preferred, so that a data directory
// keeps its server when a newer one is installed beside it. kFailedPrecondition says how to install
// one. Runs `postgres --version`: blocks for ~10 ms per candidate.
absl::StatusOr<PostgresBinaries> FindPostgresBinaries(const std::string& directory, int major);

}  // namespace stepwell
