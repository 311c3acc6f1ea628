#include "storage/database_place.h"

#include "absl/strings/str_cat.h"

namespace stepwell {
namespace {

struct Part {
  const char* name;
  std::int64_t DatabasePlace::*value;
};
constexpr Part kParts[] = {{"system identifier", &DatabasePlace::system_identifier},
                           {"timeline", &DatabasePlace::timeline},
                           {"database oid", &DatabasePlace::database_oid},
                           {"table oid", &DatabasePlace::table_oid}};

}  // namespace

std::string PlaceChange(const DatabasePlace& before, const DatabasePlace& now) {
  std::string change;
  for (const Part& part : kParts) {
    const std::int64_t was = before.*part.value;
    const std::int64_t is = now.*part.value;
    if (was == 0 || is == 0 || was == is) continue;
    absl::StrAppend(&change, change.empty() ? "" : "; ", part.name, " ", was, ", now ", is);
  }
  return change;
}

DatabasePlace KnownPlace(const DatabasePlace& before, const DatabasePlace& now) {
  DatabasePlace known = now;
  for (const Part& part : kParts) {
    if (known.*part.value == 0) known.*part.value = before.*part.value;
  }
  return known;
}

}  // namespace stepwell
