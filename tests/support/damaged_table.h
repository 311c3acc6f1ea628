// Junk in the file of a table, as after a disk that lied.
#pragma once

#include <optional>
#include <string>

#include "storage/pg_connection.h"

namespace stepwell::testing {

// All pages of `table` (of the schema stepwell), or one of them. The server reads them anew afterwards, and cannot:
// a gtest failure where it can. REQUIRES: a superuser's connection, the files of the server within reach.
void DamageTable(PgConnection& connection, const std::string& table,
                 std::optional<int> page = std::nullopt);

}  // namespace stepwell::testing
