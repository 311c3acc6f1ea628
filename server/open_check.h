// OpenCheck: what a client says when it opens a writer, checked field by field. Pure functions.
#pragma once

#include "server/complaint.h"
#include "server/wire.h"
#include "stepwell/v1/ingest.pb.h"
#include "storage/ingest_store.h"

namespace stepwell {

// Fills `out` but for owner_epoch. Reasons: WRITER_UUID, TRIAL_SELECTOR, TRIAL_ID, PROJECT_NAME,
// <FIELD>_BYTES, INVALID_UTF8, CONTROL_CHARACTER, LABEL_COUNT, LABEL_RESERVED, RANK, WORLD_SIZE,
// SEQUENCE_RANGE.
MaybeComplaint CheckOpen(const pb::Open& open_untrusted, OpenWriterRequest& out);

// Labels that all series of this writer carry: its own, and agent and rank as the master knows
// them. Sorted by name.
Labels WriterLabels(const OpenWriterRequest& open);

}  // namespace stepwell
