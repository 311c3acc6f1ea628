#include "storage/pg_url.h"

#include <libpq-fe.h>

#include <map>
#include <string_view>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "base/status_macros.h"

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

using Values = std::map<std::string, std::string>;

absl::StatusOr<Values> Parse(const std::string& url) {
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
  Values values;
  for (const PQconninfoOption* option = parsed; option->keyword != nullptr; ++option) {
    if (option->val != nullptr) values[option->keyword] = option->val;
  }
  return values;
}

std::string ToText(const Values& values) {
  std::string conninfo;
  for (const auto& [key, value] : values) {
    absl::StrAppend(&conninfo, conninfo.empty() ? "" : " ", key, "='",
                    absl::StrReplaceAll(value, {{"\\", "\\\\"}, {"'", "\\'"}}), "'");
  }
  return conninfo;
}

// Lists that stand beside each other: of hosts, of their addresses, of their ports.
constexpr const char* kListed[] = {"host", "hostaddr", "port"};

// Of how many hosts; 0 = not to be taken apart.
std::size_t CountHosts(const Values& values) {
  const auto wish = values.find("target_session_attrs");
  if (wish != values.end() && wish->second == "prefer-standby") return 0;
  std::size_t count = 0;
  for (const char* key : kListed) {
    const auto found = values.find(key);
    if (found == values.end()) continue;
    const std::vector<std::string> listed = absl::StrSplit(found->second, ',');
    // One port serves all.
    const bool is_shared = std::string_view(key) == "port" && listed.size() == 1;
    if (is_shared || listed.size() == count) continue;
    if (count != 0) return 0;
    count = listed.size();
  }
  return count;
}

}  // namespace

absl::StatusOr<std::string> PgConninfo(
    const std::string& url, const std::vector<std::pair<std::string, std::string>>& settings) {
  STEPWELL_ASSIGN_OR_RETURN(Values values, Parse(url));
  for (const auto& [key, value] : settings) values[key] = value;
  return ToText(values);
}

absl::StatusOr<std::vector<std::string>> PgConninfoOfEachHost(
    const std::string& url, const std::vector<std::pair<std::string, std::string>>& settings) {
  STEPWELL_ASSIGN_OR_RETURN(Values values, Parse(url));
  for (const auto& [key, value] : settings) values[key] = value;
  const std::size_t count = CountHosts(values);
  if (count < 2) return std::vector<std::string>{ToText(values)};
  std::vector<std::string> all;
  for (std::size_t i = 0; i < count; ++i) {
    Values one = values;
    for (const char* key : kListed) {
      const auto found = one.find(key);
      if (found == one.end()) continue;
      const std::vector<std::string> listed = absl::StrSplit(found->second, ',');
      if (listed.size() == count) found->second = listed[i];
    }
    all.push_back(ToText(one));
  }
  return all;
}

}  // namespace stepwell
