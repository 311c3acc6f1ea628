// TimeSpread: how far apart the ticks of one chunk may be. Ticks over a day apart are a row each, with rollups of its own,
// however few bytes they took on the wire: of some thousand a chunk may consist, of tens of thousands nobody's does. A core;
// pure.
#pragma once

#include "absl/types/span.h"
#include "server/complaint.h"
#include "storage/model.h"

namespace stepwell {

// TIME_SPREAD where the ticks, those of a tick group taken together, fall into more thin stretches than
// kChunkThinStretchesMax and kTableThinStretches allow. `tables` are of one chunk; their times may stand in any order.
MaybeComplaint CheckTimeSpread(absl::Span<const TickTable> tables);

}  // namespace stepwell
