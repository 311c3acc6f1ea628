// DatabasePlace: where a database lies, as PostgreSQL tells it, so that one that was restored is known for
// another one. A core: pure.
//
//   cluster         another one after pg_restore elsewhere (and after pg_upgrade)
//   timeline        another one after a recovery to a point in time, and after a standby's promotion
//   database, table others after pg_restore anywhere, and in a copy by CREATE DATABASE
//
// A copy of the files that is put back as it is has all four of the one whose place it takes.
#pragma once

#include <cstdint>
#include <string>

namespace stepwell {

struct DatabasePlace {
  // Each 0 = not known.
  std::int64_t system_identifier = 0;
  std::int64_t timeline = 0;
  std::int64_t database_oid = 0;
  std::int64_t table_oid = 0;

  bool operator==(const DatabasePlace&) const = default;
};

// In what `now` is another place than `before`, for people: "timeline 1, now 2"; empty = in nothing that both know.
std::string PlaceChange(const DatabasePlace& before, const DatabasePlace& now);

// `now`, and what it does not know as it was `before`.
DatabasePlace KnownPlace(const DatabasePlace& before, const DatabasePlace& now);

}  // namespace stepwell
