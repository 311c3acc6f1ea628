// AdvanceRules: what becomes of a writer's advance, decided from what is stored: the rules of
// exactly-once, without SQL. PgWriter applies them to writers whose rows it holds, the fake store to its
// own. Pure functions.
#pragma once

#include <cstdint>
#include <optional>

#include "absl/status/status.h"
#include "storage/ingest_store.h"

namespace stepwell {

// The greatest sequence of a writer, and the greatest generation. The one behind it fits a column, too:
// what only closes begins there.
inline constexpr std::uint64_t kSequenceMax = (std::uint64_t{1} << 63) - 2;

// True for an advance that moves no sequence and only closes.
inline bool OnlyCloses(const WriterAdvance& advance) {
  return advance.last_sequence < advance.first_sequence;
}

// kInvalidArgument for what no caller of ours may send: empty ranges without a Close, sequences
// that are not 1 to kSequenceMax, two entries of one writer, gaps with text that no database takes.
absl::Status CheckGroup(const CommitGroupRequest& request);

// `stored` empty: there is no such writer.
AdvanceResult JudgeAdvance(const WriterAdvance& advance,
                           const std::optional<WriterProgress>& stored);

// True when a repeat brings a Close that is not stored yet.
bool RepeatCloses(const WriterAdvance& advance, const WriterProgress& stored);

// After a COMMIT in doubt: does `stored` show that this advance, which the guard had let through,
// was committed?
bool ShowsCommitted(const WriterAdvance& advance, const WriterProgress& stored);

}  // namespace stepwell
