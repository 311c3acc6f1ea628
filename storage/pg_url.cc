#include "storage/pg_url.h"

#include <libpq-fe.h>

#include <map>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"

namespace stepwell {
namespace {

// libpq quotes the piece it stumbled over, which may be the password.
std::string WithoutQuoted(const std::string& text) {
  std::string out;
  bool quoted = false;
  for (const char c : text) {
    if (c == '"') quoted = !quoted;
    if (c == '"' && quoted) out += "(a part)";
    if (c != '"' && c != '\n' && !quoted) out.push_back(c);
  }
  return out;
}

}  // namespace

absl::StatusOr<std::string> PgConninfo(
    const std::string& url, const std::vector<std::pair<std::string, std::string>>& settings) {
  char* error = nullptr;
  PQconninfoOption* const parsed = PQconninfoParse(url.c_str(), &error);
  const auto free_both = absl::MakeCleanup([&] {
    PQconninfoFree(parsed);
    PQfreemem(error);
  });
  if (parsed == nullptr) {
    return absl::InvalidArgumentError(absl::StrCat(
        "database URL: ", WithoutQuoted(error == nullptr ? "out of memory" : error),
        "; allowed: postgresql://USER@HOST:PORT/NAME?KEY=VALUE, or host=HOST dbname=NAME"));
  }
  std::map<std::string, std::string> values;
  for (const PQconninfoOption* option = parsed; option->keyword != nullptr; ++option) {
    if (option->val != nullptr) values[option->keyword] = option->val;
  }
  for (const auto& [key, value] : settings) values[key] = value;
  std::string conninfo;
  for (const auto& [key, value] : values) {
    absl::StrAppend(&conninfo, conninfo.empty() ? "" : " ", key, "='",
                    absl::StrReplaceAll(value, {{"\\", "\\\\"}, {"'", "\\'"}}), "'");
  }
  return conninfo;
}

}  // namespace stepwell
