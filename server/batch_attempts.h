// BatchAttempts: which attempt of a trial a training batch counts for. An attempt that resumed at
// batch 100 does batches over that an earlier one had done; on the batch axis the newest attempt
// whose batches span one has it. An attempt runs its batches one after the other, so its first and
// last batch tell the span. A core; a value.
#pragma once

#include <cstdint>
#include <map>
#include <optional>

namespace stepwell {

class BatchAttempts {
 public:
  // Batches first ... last were seen in `attempt`; widens its span.
  void Add(std::int32_t attempt, std::int32_t first_batch, std::int32_t last_batch);

  // False where a newer attempt has the batch. Samples without batch (-1) count for all.
  bool Counts(std::int32_t attempt, std::int32_t batch) const;
  // The newest that spans a batch of [start, end); nothing where none does.
  std::optional<std::int32_t> NewestIn(std::int64_t start, std::int64_t end) const;
  // One past the last batch of any attempt; 0 = none.
  std::int64_t end_batch() const;

 private:
  struct Span {
    std::int32_t first = INT32_MAX;
    std::int32_t last = -1;
  };
  std::map<std::int32_t, Span> spans_;
};

}  // namespace stepwell
