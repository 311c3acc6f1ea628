// MemoryWatch: the master's memory as a whole: what its parts may take, the rooms that messages take theirs in, and what is
// resident, which is looked at now and then. Thread-safe, Look confined to one thread.
//
//   MemoryWatch memory(shares);
//   memory.Look(SteadyTime::Now());   // "accept", ten times a second
#pragma once

#include <cstdint>

#include "base/steady_time.h"
#include "server/memory_pressure.h"
#include "server/memory_room.h"
#include "server/memory_shares.h"
#include "server/message_rooms.h"

namespace stepwell {

// Of this process; -1 = nobody knows.
std::int64_t ResidentBytes();

class MemoryWatch {
 public:
  explicit MemoryWatch(const MemoryShares& shares)
      : shares_(shares),
        rooms_(shares.of(MemoryShares::kMessages), shares.of(MemoryShares::kChunks),
               shares.of(MemoryShares::kDefinitions)),
        lists_(shares.of(MemoryShares::kLists)),
        pressure_(shares.limit_bytes) {}

  // Gives back what malloc keeps where much is resident: some milliseconds then.
  void Look(SteadyTime now);
  const MemoryShares& shares() const { return shares_; }
  MessageRooms& rooms() { return rooms_; }
  // What reads hold of lists of series.
  MemoryRoom& lists() { return lists_; }
  bool is_tight() const { return rooms_.is_tight.load(std::memory_order_relaxed); }

 private:
  const MemoryShares shares_;
  MessageRooms rooms_;
  MemoryRoom lists_;
  MemoryPressure pressure_;
};

}  // namespace stepwell
