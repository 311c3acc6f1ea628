// CapUnits: caps as people write and read them. What is printed can be given again and means the same.
// Pure functions.
//
//   ParseAge("--raw-age", "30d")     // 2'592'000; 0 for "none"
//   AgeText(5400)                    // "1h30m"
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "stepwell/v1/caps.pb.h"

namespace stepwell::cli {

// Each: "none" = 0 = no bound; kInvalidArgument says what is allowed.
// Numbers with y (365 days), w, d, h, m, s: 30d, 1h30m.
[[nodiscard]] absl::StatusOr<std::int64_t> ParseAge(std::string_view option, std::string_view text);
// A number with B, KiB ... PiB (by 1024), kB ... PB (by 1000), or none of them: 50GiB, 1.5TB, 4096.
[[nodiscard]] absl::StatusOr<std::int64_t> ParseBytes(std::string_view option,
                                                      std::string_view text);
// A number, with k, M, G (by 1000) or none of them: 1000000, 1M.
[[nodiscard]] absl::StatusOr<std::int64_t> ParseSamples(std::string_view option,
                                                        std::string_view text);

std::string AgeText(std::int64_t seconds);
std::string BytesText(std::int64_t bytes);
std::string SamplesText(std::int64_t samples);

// One cap, in a person's words and the wire's.
struct CapOption {
  const char* name;         // raw-age
  const char* placeholder;  // AGE
  const char* help;
  const char* field;  // raw_age_seconds
  absl::StatusOr<std::int64_t> (*parse)(std::string_view option, std::string_view text);
  std::string (*text)(std::int64_t value);
  bool (v1::Caps::*has)() const;
  std::int64_t (v1::Caps::*get)() const;
  void (v1::Caps::*set)(std::int64_t value);
};
// In the order of the wire contract.
const std::vector<CapOption>& CapOptions();
// By the name of its field; null for one that a newer master has.
const CapOption* FindCap(const std::string& field);

}  // namespace stepwell::cli
