// RefTable: what the refs of one Open mean. Confined to the stream that owns the session.
#pragma once

#include <cstdint>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "base/ids.h"

namespace stepwell {

struct Ref {
  SeriesNo series_no{};  // 0 = its definition was refused: its samples are dropped and counted
  std::uint32_t tick_group = 0;
  std::uint64_t divisor = 1;
  std::string metric_group = {};
  // Why it was refused.
  std::string refused_reason = {};
  // What was defined, so that a repeat is told from a change.
  std::uint64_t fingerprint = 0;
};

using RefTable = absl::flat_hash_map<std::uint32_t, Ref>;

}  // namespace stepwell
