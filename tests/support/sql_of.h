// SqlOf: any text as SQL, for tests and benches, which ask what no literal says. Not for the product: a rule of
// tests/layout holds it here.
#pragma once

#include <string_view>

#include "storage/sql_text.h"

namespace stepwell {

struct SqlOfTests {
  static SqlText Make(std::string_view text) { return SqlText(text); }
};

inline SqlText SqlOf(std::string_view text) { return SqlOfTests::Make(text); }

}  // namespace stepwell
