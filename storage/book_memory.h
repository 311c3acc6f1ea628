// BookMemory: books of trials that were read, for the questions after, together with what must hold for a
// book to be what the database holds now:
//
//   1. No store of this process has begun to change this book since a moment before it was read (BookChanges).
//   2. The masters row has the epoch under which this process owned the database when it was read. Epochs
//      only grow, with each take-over, so nobody else has owned it in between; whoever changes a book holds
//      the masters row, or the trial under its owner's epoch, until its COMMIT, and a take-over waits for
//      both before it ends (IngestStore::FenceTrials). So nobody else has changed one either.
//   3. It is the same database: no connection of the reader was opened since (PgReadMemory).
//
// 2 is asked of the database, for a master that is stopped or cut off cannot know it by itself, once all is taken from
// memory that an answer is made from; 1 is looked at after its answer, so that both hold at the moment that it is of.
// Where rows are read beside a book, 2 is asked within their snapshot, and the book is of its moment (known_book.h).
// Where the reader keeps what it was told of the owner (OwnerSight), 2 is of a moment that may lie so far back. Only the progress of
// writers that are open (WriterRecord::committed_sequence) goes on unseen, as in snapshots.
// Bounded; what is longest out of use goes first. Thread-compatible: PgReadMemory locks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <optional>

#include "storage/read_moment.h"
#include "storage/trial_book.h"

namespace stepwell {

struct RememberedBook {
  std::shared_ptr<const TrialBook> book = {};
  ReadMoment moment = {};
};

class BookMemory {
 public:
  explicit BookMemory(std::size_t bytes_max) : bytes_max_(bytes_max) {}

  // No value = unknown.
  std::optional<RememberedBook> Find(TrialId trial_id);
  // In place of what was remembered; one that takes more than all may is not kept.
  void Note(TrialId trial_id, RememberedBook book);
  void Clear();

  std::size_t bytes() const { return bytes_; }

 private:
  struct Held {
    TrialId trial_id{};
    RememberedBook remembered;
    std::size_t bytes = 0;
  };
  void Forget(std::list<Held>::iterator held);

  const std::size_t bytes_max_;
  std::size_t bytes_ = 0;
  std::list<Held> held_;  // used last first
  std::map<TrialId, std::list<Held>::iterator> places_;
};

}  // namespace stepwell
