// MissingRanks: which ranks of a trial's newest attempt never opened, by what those say that did. A
// core; pure.
//
//   const MissingRanks missing = FindMissingRanks(writers);
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "storage/read_store.h"

namespace stepwell {

struct MissingRanks {
  std::vector<std::int32_t> first;  // ascending, at most kMissingRanksMax
  std::int32_t count = 0;
};

// A list for people: whom of a thousand to look after first.
inline constexpr std::size_t kMissingRanksMax = 1000;

// The newest attempt is the newest one with a rank; its size is the largest that its ranks give (a
// client's number: the work is bounded by the writers and the list). None are missing where none gave
// it, or where `writers` may not be all.
MissingRanks FindMissingRanks(const std::vector<WriterRecord>& writers);

}  // namespace stepwell
