// What a rank wrote whose machine's clock loses against its master's: a slice of 40 s, one within it that ends with it, and
// what its agent exchanged with the master, each ten seconds of a hundred. For tests of merges.
#pragma once

#include <string>

#include "absl/strings/str_cat.h"

namespace stepwell::testing {

// In JSON; `loses_us_per_s` microseconds a second.
inline std::string DriftingRank(int rank, int loses_us_per_s) {
  std::string text = absl::StrCat("{\"distributedInfo\":{\"rank\":", rank, "},\"traceEvents\":[");
  const std::string common = absl::StrCat(",\"pid\":", rank + 1, ",\"tid\":7");
  absl::StrAppend(&text, R"({"ph":"M","name":"machine")", common, R"(,"args":{"name":"machine )",
                  rank, "\"}}");
  const auto slice = [&](const char* name, int begin_s, int length_s) {
    absl::StrAppend(&text, R"(,{"ph":"X","name":")", name, "\"", common, ",\"ts\":", begin_s,
                    "000000,\"dur\":", length_s, "000000}");
  };
  slice("whole", 0, 100);
  slice("outer", 50, 40);
  slice("inner", 70, 20);
  for (int second = 0; second <= 100; second += 10) {
    absl::StrAppend(&text, R"(,{"ph":"M","name":"master_clock")", common, R"(,"args":{"at_ns":)",
                    second, "000000000,\"ahead_ns\":", second * loses_us_per_s * 1000,
                    R"(,"error_ns":100,"trial":"t"}})");
  }
  return text + "]}";
}

}  // namespace stepwell::testing
