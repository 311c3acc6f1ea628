// ProgressBook: where writers stand, as the one who commits remembers it, so that a commit need not look
// through segments of progress. It holds nothing but what the database said or committed, and counts only
// while the database says, under a lock, that the newest book is the one of our number: then nobody else
// has committed since. PgWriter writes it. Confined to one thread at a time.
//
//   ProgressBook book;
//   if (!book.Holds(newest)) book.Begin(newest + 1);  // as the database has it now
//   book.Find(writer, 3);                             // nothing: is read
//   book.Note(writer, 3, 41);                         // committed
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "storage/model.h"

namespace stepwell {

class ProgressBook {
 public:
  using Key = std::pair<TrialId, WriterNo>;
  // Each takes some 40 bytes.
  static constexpr std::size_t kWritersMax = 100'000;

  explicit ProgressBook(std::size_t writers_max = kWritersMax) : writers_max_(writers_max) {}

  // An empty book of that number. REQUIRES: number > 0.
  void Begin(std::int64_t number);
  // It is no book any more: what was committed meanwhile is not known.
  void End();
  bool is_open() const { return number_ > 0; }
  // `newest_number`: of the newest book there is. An older one of ours ends.
  bool Holds(std::int64_t newest_number);

  // Where the writer stands; nothing where it is not known, or known of another generation.
  std::optional<std::uint64_t> Find(const Key& writer, std::uint64_t generation) const;
  // A full book forgets everybody: each is read again when he comes.
  void Note(const Key& writer, std::uint64_t generation, std::uint64_t committed_sequence);
  void Forget(const Key& writer) { stands_.erase(writer); }

  std::size_t writer_count() const { return stands_.size(); }

 private:
  struct Stand {
    std::uint64_t generation = 0;
    std::uint64_t committed_sequence = 0;
  };

  const std::size_t writers_max_;
  std::int64_t number_ = 0;
  absl::flat_hash_map<Key, Stand> stands_;
};

}  // namespace stepwell
