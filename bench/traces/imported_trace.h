// ImportedTrace: a file of a native profiler, by command to a real master and merged there. Functions.
#pragma once

#include <string>

namespace stepwell::bench {

// Prints `traces.import_*` and `traces.stored_*`. `binary` is the path of stepwell.
void MeasureImport(const std::string& binary, bool is_quick);

}  // namespace stepwell::bench
