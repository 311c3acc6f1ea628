// AnchorKeeper: when a writer's clock anchor is due: each 10 s, because the wall clock is steered and
// set. The monotonic clock of an earlier boot stands still in the recorder's own pair: that is taken
// once. It stands between RankWriter and RecordedSamples. Confined to the agent's loop.
//
//   AnchorKeeper anchors(clock, std::nullopt);
//   if (const auto anchor = anchors.TakeDue()) samples.SetAnchor(*anchor);
#pragma once

#include <functional>
#include <optional>
#include <utility>

#include "base/clock.h"
#include "client/agent/clock_anchor.h"

namespace stepwell::agent {

class AnchorKeeper {
 public:
  static constexpr absl::Duration kInterval = absl::Seconds(10);

  // `clock` outlives this; it tells what is due alone. `fixed`: that of an earlier boot.
  AnchorKeeper(const Clock& clock, std::optional<ClockAnchor> fixed,
               std::function<ClockAnchor()> take = &ClockAnchor::Take)
      : clock_(clock), fixed_(fixed), take_(std::move(take)) {}

  // None: the one before holds on.
  std::optional<ClockAnchor> TakeDue() {
    const absl::Duration now = clock_.Monotonic();
    if (now - taken_at_ < (fixed_ ? absl::InfiniteDuration() : kInterval)) return std::nullopt;
    taken_at_ = now;
    return fixed_ ? *fixed_ : take_();
  }

 private:
  const Clock& clock_;
  const std::optional<ClockAnchor> fixed_;
  const std::function<ClockAnchor()> take_;
  absl::Duration taken_at_ = -absl::InfiniteDuration();
};

}  // namespace stepwell::agent
