// Labels as the dictionary stores them: a JSON object for people and SQL, and a hash that makes a
// series unique. Pure functions.
//
//   LabelsJson({{"rank", "0"}})  ->  {"rank":"0"}
#pragma once

#include <string>

#include "storage/model.h"

namespace stepwell {

// REQUIRES: UTF-8 without NUL; otherwise PostgreSQL refuses it with 22P05 or 22021.
std::string LabelsJson(const Labels& labels);
// The first 16 bytes of SHA-256 over name NUL value NUL ..., as they are sorted in `labels`.
std::string LabelsHash(const Labels& labels);

}  // namespace stepwell
