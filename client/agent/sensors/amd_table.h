// AmdTable: what the driver's table of metrics says of throttling and of the links between GPUs, as
// both of AMD's libraries hand it out. Later releases only add behind what earlier ones have, so that
// each value stands where it always stood; how far a table reaches, its header says, and what a
// library does not fill in stays unknown. Pure.
//
//   auto table = ReadAmdTable([&](void* room) { return Call(metrics_, device, room); });
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "absl/status/statusor.h"
#include "base/status_macros.h"

namespace stepwell::agent {

inline constexpr std::size_t kXgmiLinkCount = 8;

struct AmdTable {
  // Running totals of the firmware's cycles, and of those of them that were throttled.
  struct Cycles {
    std::uint64_t all = 0;
    // A hot signal from outside the chip.
    std::uint64_t hot_signal = 0;
    std::uint64_t power = 0;
    std::uint64_t socket_hot = 0;
    std::uint64_t regulator_hot = 0;
    std::uint64_t memory_hot = 0;
  };
  // Running totals.
  using LinkKib = std::array<std::optional<std::uint64_t>, kXgmiLinkCount>;

  // 1.3, "1.6": for absences.
  int revision = 0;
  // What throttles at this moment: bits that mean the same on all chips.
  std::optional<std::uint64_t> throttlers;
  std::optional<Cycles> cycles;
  LinkKib received_kib;
  LinkKib sent_kib;
};

// The largest known has 4.5 KB.
inline constexpr std::size_t kAmdTableBytesMax = 32768;
// What is not known is filled with ones, before the call and by it.
inline constexpr std::byte kAmdUnknown{0xff};

// REQUIRES: of kAmdTableBytesMax bytes. kUnimplemented: a table of another kind.
absl::StatusOr<AmdTable> ParseAmdTable(std::span<const std::byte> bytes);

// `fill` gets room for the table and returns a status.
template <typename Fill>
absl::StatusOr<AmdTable> ReadAmdTable(Fill fill) {
  alignas(std::uint64_t) std::array<std::byte, kAmdTableBytesMax> room;
  room.fill(kAmdUnknown);
  STEPWELL_RETURN_IF_ERROR(fill(room.data()));
  return ParseAmdTable(room);
}

}  // namespace stepwell::agent
