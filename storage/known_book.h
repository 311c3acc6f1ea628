// KnownBook: a book that is remembered, for a snapshot of the database in which rows are read beside it: instead of
// reading it once more the snapshot asks who owns the database, and looks then whether nothing has changed. What must hold
// is that of book_memory.h; both looks tell of the snapshot's own moment, for the owner is read in it, and what this process
// had begun to change by then is seen behind it. So book and rows are of one moment, as if both had been read.
// A value.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "base/ids.h"
#include "storage/trial_book.h"

namespace stepwell {

struct KnownBook {
  TrialId trial_id{};
  std::shared_ptr<const TrialBook> book;
  // Under which it was read.
  std::int64_t owner_epoch = 0;
  // Whether this process has begun no change of it since it was read. Asked once, behind the snapshot's first answer.
  std::function<bool()> unchanged;
};

}  // namespace stepwell
