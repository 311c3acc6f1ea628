// ReadMoment: when something was read, by what must hold for it to be what the database holds now
// (book_memory.h says why that is enough). A value.
#pragma once

#include <cstdint>

#include "storage/book_changes.h"

namespace stepwell {

struct ReadMoment {
  BookChanges::Moment changes{};
  std::int64_t owner_epoch = 0;

  bool operator==(const ReadMoment&) const = default;
};

}  // namespace stepwell
