// CapsWire: caps, places and what sweeps remove in the words of the wire contract, and back. Stands
// between AdminService and CapsStore. Pure functions.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "server/complaint.h"
#include "server/wire.h"
#include "stepwell/v1/admin.pb.h"
#include "storage/caps_store.h"

namespace stepwell {

// Reasons of all: PLACE, TRIAL_REF, PROJECT_BYTES and the like, METRIC_GROUP_BYTES, CAPS, CLEAR. Messages
// begin with the field's path.
MaybeComplaint CheckPlace(const pb::CapsPlace& place_untrusted, CapsTarget& target);

struct CapsChange {
  CapsTarget target = {};
  Caps caps = {};
  std::vector<std::string> clear = {};
};
MaybeComplaint CheckGetCaps(const pb::GetCapsRequest& request_untrusted, CapsTarget& target);
MaybeComplaint CheckSetCaps(const pb::SetCapsRequest& request_untrusted, CapsChange& change);
MaybeComplaint CheckPreviewCaps(const pb::PreviewCapsRequest& request_untrusted,
                                PreviewRequest& preview);
// No target for a place that names nothing: that is all trials.
MaybeComplaint CheckSweepCaps(const pb::SweepCapsRequest& request_untrusted,
                              std::optional<CapsTarget>& target);

pb::CapsPlace ToWire(const CapsPlace& place);
pb::Caps ToWire(const Caps& caps);
pb::CapRemoval ToWire(const CapRemoval& removal);
// One per field of Caps, in their order.
std::vector<pb::EffectiveCap> ToWire(const EffectiveCaps& effective);
pb::GetCapsResponse ToWire(const CapsReport& report);

// A preview's answer and a sweep's begin alike.
template <typename Response>
void FillRemovals(const CapRemovals& removals, Response& response) {
  for (const CapRemoval& each : removals.removals) *response.add_removals() = ToWire(each);
  response.set_sample_count(removals.sample_count);
  response.set_raw_bytes(removals.raw_bytes);
  response.set_rollup_bytes(removals.rollup_bytes);
  response.set_truncated(removals.truncated);
}

}  // namespace stepwell
