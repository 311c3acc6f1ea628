// FollowPlace: how far a follower has come: the sequence of each writer, and where in which log that was.
// A value with an opaque text form, the cursor: bound to its trial and database, checksummed, the same
// wherever it goes on. The sequences alone say the place; the log's index only tells better how old what
// was missed is.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/ids.h"
#include "base/uuid.h"

namespace stepwell {

// Writers are numbered from 1 without gaps: this many numbers, 8 bytes each.
inline constexpr std::int32_t kFollowWritersMax = 100'000;

class FollowPlace {
 public:
  // 0 = nothing of it.
  std::uint64_t SequenceOf(WriterNo writer_no) const;
  // Forward only. False beyond kFollowWritersMax.
  [[nodiscard]] bool Pass(WriterNo writer_no, std::uint64_t sequence);
  // The highest writer that it knows of; 0 = none.
  std::int32_t writer_no_max() const { return static_cast<std::int32_t>(sequences_.size()); }

  // Next index of the log; a log's id is never 0.
  std::uint64_t log_id = 0;
  std::uint64_t log_index = 0;
  // What is beyond the place was received at or after this, by the clock of the master of that time.
  std::int64_t received_time_us = 0;
  // Its sequences are of another incarnation of the database (docs/reliability.md), which may have given them to other
  // samples since: it says no more than from when on to read.
  bool is_of_another_database = false;

  std::string ToCursor(const Uuid& database, TrialId trial_id) const;
  // kInvalidArgument naming the field for what is not ours, of another version or trial.
  static absl::StatusOr<FollowPlace> FromCursor(const std::string& text_untrusted,
                                                const Uuid& database, TrialId trial_id);

 private:
  std::vector<std::uint64_t> sequences_;  // of writer 1, 2, ...
};

}  // namespace stepwell
