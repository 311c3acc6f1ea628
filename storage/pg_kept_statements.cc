#include "storage/pg_kept_statements.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace stepwell {
namespace {

// For a look-up that copies no text.
absl::string_view AbslView(std::string_view text) { return {text.data(), text.size()}; }

}  // namespace

PgKeptStatements::Place PgKeptStatements::Use(std::string_view sql) {
  ++use_count_;
  if (const auto known = held_.find(AbslView(sql)); known != held_.end()) {
    known->second.used = use_count_;
    return {.name = known->second.name};
  }
  Place place{.name = absl::StrCat("stepwell_", use_count_), .is_new = true};
  if (held_.size() >= kCountMax) place.let_go = LetOneGo();
  held_[std::string(sql)] = {.name = place.name, .used = use_count_};
  return place;
}

std::string PgKeptStatements::UseKnown(std::string_view sql) {
  const auto known = held_.find(AbslView(sql));
  if (known == held_.end()) return {};
  known->second.used = ++use_count_;
  return known->second.name;
}

std::string PgKeptStatements::LetOneGo() {
  const auto oldest =
      std::min_element(held_.begin(), held_.end(),
                       [](const auto& a, const auto& b) { return a.second.used < b.second.used; });
  std::string name = std::move(oldest->second.name);
  held_.erase(oldest);
  return name;
}

}  // namespace stepwell
