// Golden files: texts for people, kept beside the tests so that a change is read as a difference.
// `cli_tests --rewrite-golden` (or STEPWELL_REWRITE_GOLDEN=1) accepts what the code prints now.
#pragma once

#include <string>

namespace stepwell::cli {

// Fails the current test, showing both, unless tests/golden/cli/`name` holds exactly `text`.
void ExpectGolden(const std::string& name, const std::string& text);

}  // namespace stepwell::cli
