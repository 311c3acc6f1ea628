// CompareView: the text and the JSON of `stepwell compare`. Pure functions, tested against golden files.
#pragma once

#include <cstddef>
#include <string>

#include "client/cli/compare_data.h"
#include "client/cli/terminal.h"

namespace stepwell::cli {

// At most `lines_max` scopes and series of each section: those that changed most.
std::string CompareText(const CompareData& data, std::size_t lines_max, const Paint& paint);
// All of them.
std::string CompareJson(const CompareData& data);

}  // namespace stepwell::cli
