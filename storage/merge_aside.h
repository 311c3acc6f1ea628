// MergeAside: stretches of recent rows whose merge failed, and until when it is not tried again, so that what
// cannot be merged holds up nothing else. A core; confined to the folder's thread.
//
//   const auto ruling = aside.Failed(key, status, now);   // kPutAside: go on with others
//   for (const StretchKey& key : aside.Held(now)) ...     // these are not picked
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <tuple>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "base/ids.h"
#include "base/steady_time.h"

namespace stepwell {

// trial, writer, tick group, received day
using StretchKey = std::tuple<TrialId, WriterNo, std::int32_t, std::int32_t>;

class MergeAside {
 public:
  // What the database refused may be mended meanwhile: an index built anew, a leaf that has its disk again.
  static constexpr absl::Duration kRefused = absl::Minutes(5);
  // Rows that cannot be decoded do not heal; nor are they forgotten, should somebody restore them.
  static constexpr absl::Duration kDamaged = absl::Hours(1);
  static constexpr std::size_t kCountMax = 10'000;
  // So many refusals without a merge between them are not of single stretches.
  static constexpr int kInARowMax = 8;

  enum class Ruling { kPutAside, kTryAgain };

  // What is refused for what it is waits at once; any other failure where the stretch fails twice and nothing
  // was merged between. After kInARowMax of them whoever merges rests before the next.
  Ruling Failed(const StretchKey& key, const absl::Status& status, SteadyTime now);
  void Damaged(const StretchKey& key, SteadyTime now) { Put(key, now + kDamaged); }
  void Succeeded();
  // Those that still wait.
  std::vector<StretchKey> Held(SteadyTime now);

 private:
  void Put(const StretchKey& key, SteadyTime until);

  std::map<StretchKey, SteadyTime> until_;
  std::optional<StretchKey> failed_last_;
  int in_a_row_ = 0;
};

}  // namespace stepwell
