// PgTickCache: the decoded ticks that rows refer to, read page by page, unless an earlier read left them
// in memory, and kept while they are likely to be needed again. Confined to one thread.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "storage/pg_read_link.h"
#include "storage/pg_reader_leaves.h"
#include "storage/read_store.h"
#include "storage/tick_key.h"

namespace stepwell {

class PgTickCache {
 public:
  // 64 MiB of ticks at 12 bytes.
  static constexpr std::size_t kTicksMax = 64 * 1024 * 1024 / 12;

  PgTickCache(PgReadLink& link, TrialId trial_id, std::vector<LeafRange> leaves, LeafPlaces by)
      : link_(link), trial_id_(trial_id), leaves_(std::move(leaves)), by_(by) {}

  // Reads those of `keys` that are not held, in one statement; afterwards Find knows all of them.
  // What was not asked for lately makes room. kDataLoss when one does not exist.
  absl::Status Prepare(const std::vector<TickKey>& keys);
  // REQUIRES: `key` was in the last Prepare.
  std::shared_ptr<const TickVectors> Find(const TickKey& key) const;

 private:
  struct Held {
    std::shared_ptr<const TickVectors> ticks;
    std::uint64_t used = 0;  // number of the Prepare that last asked for it
  };
  void Hold(const TickKey& key, std::shared_ptr<const TickVectors> ticks);
  absl::Status Read(const std::vector<TickKey>& keys);
  void MakeRoom();

  PgReadLink& link_;
  const TrialId trial_id_;
  const std::vector<LeafRange> leaves_;
  const LeafPlaces by_;
  std::map<TickKey, Held> held_;
  std::size_t tick_count_ = 0;
  std::uint64_t prepare_count_ = 0;
};

// The columns of one encoded vector in a result: form, width, width2, base, factor, then (where
// values have them) divisor_exponent, then bits, bits2, dictionary.
struct VectorColumns {
  int form;
  int width;
  int width2;
  int base;
  int factor;
  int divisor_exponent;  // -1 = none
  int bits;
  int bits2;
  int dictionary;
  int raw;  // -1 = none
};
// In rollups NULL is what most vectors have: factor 1, width2 0, divisor_exponent 0.
EncodedVector VectorAt(const PgResult& result, int row, const VectorColumns& columns);

}  // namespace stepwell
