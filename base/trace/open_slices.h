// OpenSlices: the slices of Perfetto's tracks that have begun and not yet ended, so that each becomes one event of
// Chrome's form (X) where its end is read. Stands within PerfettoSplitter. Pure; confined to one thread.
//
//   if (!slices.Begin(track, begin_ns, said, args)) Tell(begin of its own);
//   Tell(slices.End(track, end_ns, args));
//
// Memory: kHeldBytesMax of what they say. Beyond it, and for an end without a begin, B and E are told apart.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"

namespace stepwell {

class OpenSlices {
 public:
  static constexpr std::size_t kHeldBytesMax = 64 << 20;

  // `said`: the event's members behind its phase (",\"name\":\"a\""), `args` what stands between the brackets of its args. What
  // comes back is an event to be told now; empty: none.
  std::string Begin(std::uint64_t track, std::int64_t begin_ns, std::string said, std::string args);
  // Of the innermost that is open there. `said` and `args` are the end's own.
  std::string End(std::uint64_t track, std::int64_t end_ns, std::string_view said,
                  std::string_view args);
  // Those that never ended, as begins.
  std::vector<std::string> TakeUnfinished();

 private:
  struct Slice {
    std::int64_t begin_ns = 0;
    std::string said;
    std::string args;
  };
  struct Row {
    std::vector<Slice> open;      // the innermost last
    std::int64_t told_count = 0;  // within those: they were told at their begins
  };

  absl::flat_hash_map<std::uint64_t, Row> rows_;
  std::size_t held_bytes_ = 0;
};

}  // namespace stepwell
