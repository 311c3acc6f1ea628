// BegunSlices: the slices of one row that have begun and wait for their ends (B and E of Chrome's form). Stands within
// PerfettoMerger. A value; confined to one thread. Memory: kOpenMax of a row, and of all rows that share a Room
// kBytesMax of what is said of them; one more is refused.
//
//   if (!begun.Begin({.name = "a", .begin_ns = at, .has_args = false, .body = body}, room)) ++left_out;
//   if (std::optional<BegunSlices::Slice> slice = begun.End("a", room)) ...;
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace stepwell {

class BegunSlices {
 public:
  // More is no program's.
  static constexpr std::size_t kOpenMax = 10'000;
  static constexpr std::size_t kBytesMax = 64 << 20;
  // Among how many of the innermost an end looks for its begin; a hostile trace has thousands that are not its.
  static constexpr std::size_t kLooksMax = 256;

  struct Slice {
    std::string name;
    std::int64_t begin_ns = 0;
    bool has_args = false;
    std::string body;
  };
  struct Room {
    std::size_t used_bytes = 0;
  };

  [[nodiscard]] bool Begin(Slice slice, Room& room);
  // The innermost of that name; of an end without one the innermost.
  std::optional<Slice> End(std::string_view name, Room& room);
  std::optional<Slice> TakeInnermost(Room& room);

 private:
  static std::size_t BytesOf(const Slice& slice);
  Slice TakeAt(std::size_t at, Room& room);

  std::vector<Slice> slices_;
};

}  // namespace stepwell
