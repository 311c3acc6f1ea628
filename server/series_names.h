// SeriesNames: names and labels of series as they travel, made once for all answers: v1::Series in the
// form of the wire. Bounded; the trials longest out of use go first. Thread-safe.
//
//   const auto wire = names.Of(trial_id, book.series);
//   AppendBytesField(1, wire->Of(series_no), message);
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/synchronization/mutex.h"
#include "storage/model.h"
#include "storage/read_store.h"

namespace stepwell {

// Those of one trial. Immutable.
class WireSeries {
 public:
  // REQUIRES: by number, from 1 on, without holes.
  explicit WireSeries(const std::vector<Series>& all);

  // REQUIRES: 1 <= series_no <= size.
  std::string_view Of(SeriesNo series_no) const;
  std::size_t bytes() const { return bytes_.size() + ends_.size() * sizeof(std::uint32_t); }

 private:
  std::string bytes_;
  std::vector<std::uint32_t> ends_;
};

class SeriesNames {
 public:
  using All = std::shared_ptr<const std::vector<Series>>;
  // 100 bytes a series, about: 80 trials with 1000 each.
  static constexpr std::size_t kBytesMax = 8 << 20;

  explicit SeriesNames(std::size_t bytes_max = kBytesMax) : bytes_max_(bytes_max) {}

  // `all` as the reader remembers them: another list of the trial takes the place of the former.
  std::shared_ptr<const WireSeries> Of(TrialId trial_id, const All& all) ABSL_LOCKS_EXCLUDED(mu_);

  std::size_t bytes() const ABSL_LOCKS_EXCLUDED(mu_);

 private:
  struct Held {
    TrialId trial_id{};
    // Weak, not to keep what the reader has let go of; its place is not used again as long as it is here.
    std::weak_ptr<const std::vector<Series>> all;
    std::shared_ptr<const WireSeries> wire;
  };
  void ForgetLocked(std::list<Held>::iterator held) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const std::size_t bytes_max_;
  mutable absl::Mutex mu_;
  std::list<Held> held_ ABSL_GUARDED_BY(mu_);  // used last first
  absl::flat_hash_map<TrialId, std::list<Held>::iterator> places_ ABSL_GUARDED_BY(mu_);
  std::size_t bytes_ ABSL_GUARDED_BY(mu_) = 0;
};

}  // namespace stepwell
