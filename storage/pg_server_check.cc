#include "storage/pg_server_check.h"

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace stepwell {
namespace {

constexpr int kVersionMin = 150000;

constexpr char kFacts[] = R"(
select current_setting('server_encoding'), current_setting('fsync') = 'on',
       current_setting('full_page_writes') = 'on')";

absl::Status Unsafe(const char* setting, const char* harm) {
  return absl::FailedPreconditionError(
      absl::StrCat("the PostgreSQL server has ", setting, " = off: ", harm,
                   ". Mend it: alter system set ", setting, " = on; select pg_reload_conf();"));
}

}  // namespace

absl::Status CheckServerFacts(const PgServerFacts& facts) {
  if (facts.version < kVersionMin) {
    return absl::FailedPreconditionError(
        absl::StrCat("the PostgreSQL server is of version ", facts.version / 10000,
                     "; 15 or newer is needed: upgrade it, or give --database-url of another"));
  }
  if (facts.encoding != "UTF8") {
    return absl::FailedPreconditionError(absl::StrCat(
        "the database has the encoding ", facts.encoding,
        "; UTF8 is needed: make another (createdb --encoding UTF8 --template template0 NAME)"));
  }
  if (!facts.fsync) return Unsafe("fsync", "a power cut would lose samples that were acked");
  if (!facts.full_page_writes) {
    return Unsafe("full_page_writes", "a power cut could damage what was acked");
  }
  return absl::OkStatus();
}

absl::Status CheckServer(PgConnection& connection) {
  STEPWELL_ASSIGN_OR_RETURN(const PgResult found, connection.Exec(kFacts));
  return CheckServerFacts({.version = connection.server_version(),
                           .encoding = std::string(found.Text(0, 0)),
                           .fsync = found.Bool(0, 1),
                           .full_page_writes = found.Bool(0, 2)});
}

}  // namespace stepwell
