// Presence: which ticks (or buckets) of a stretch have a sample of a series, as a byte each in
// memory and as a bit each in a row. Pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "storage/bit_string.h"

namespace stepwell {

// The other way round of UnpackPresence.
BitString PackPresence(std::span<const std::uint8_t> presence);
// 1 where a bit is set. Of a damaged row that claims more bits than it has bytes for, those it has.
std::vector<std::uint8_t> UnpackPresence(const BitString& bits);
// How many have a sample.
std::size_t CountPresent(std::span<const std::uint8_t> presence);

}  // namespace stepwell
