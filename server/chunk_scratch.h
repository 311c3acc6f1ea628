// ChunkScratch: the memory that one stream's chunks are read and journalled in, one after the other, so that
// none of them asks for what the one before has just given back: a block that malloc trims at each chunk's end is
// mapped, zeroed and touched anew for the next. Nothing in it outlives its chunk. Confined to one thread.
//
//   google::protobuf::Arena arena(scratch.ArenaFor(chunk.body().size()));   // one at a time
//   AppendJournalEntry(entry, tables, payload, scratch.journal());
//   scratch.KeepLittle();
#pragma once

#include <cstddef>
#include <memory>

#include "google/protobuf/arena.h"
#include "server/journal_ticks.h"

namespace stepwell {

class ChunkScratch {
 public:
  // For an arena that takes the message of a body of so many bytes: one block for most, where each column would
  // be several. REQUIRES: the arena of before is gone.
  google::protobuf::ArenaOptions ArenaFor(std::size_t body_bytes);
  JournalScratch& journal() { return journal_; }
  // Lets go of what a large chunk took: a master may have thousands of streams.
  void KeepLittle();

 private:
  std::unique_ptr<char[]> block_;
  std::size_t block_bytes_ = 0;
  JournalScratch journal_;
};

}  // namespace stepwell
