// Completeness: what an answer holds of what was sent, from bookkeeping alone: the ledger, the gaps,
// the heads and the writers. A core; pure.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/steady_time.h"
#include "server/heads.h"
#include "server/writer_liveness.h"
#include "stepwell/v1/model.pb.h"
#include "storage/read_store.h"

namespace stepwell {

// A writer that was heard of within this long is being heard of.
inline constexpr absl::Duration kHeardOf = absl::Seconds(60);

struct CompletenessInputs {
  const std::vector<UsageRecord>& usage;
  const GapList& gaps;
  const std::vector<WriterRecord>& writers;
  const std::map<WriterNo, WriterSeen>& seen;
  // Acked and not yet folded, see SamplesUnfolded.
  std::int64_t head_sample_count = 0;
  std::int64_t head_newest_time_us = 0;
  bool recovering = false;
  // Group that the answer is of; empty = several.
  std::string metric_group = {};
  // When it is answered: for who reads it, and for how long ago writers were heard of.
  std::int64_t now_us = 0;
  SteadyTime now = {};
};

v1::Completeness MakeCompleteness(const CompletenessInputs& inputs);

// A snapshot knows writers as of their last fold; what was acked since is in the pinned chunks.
void RaiseCommitted(const std::vector<HeadChunkPtr>& chunks, std::vector<WriterRecord>& writers);

// Samples of the pinned chunks that the ledger does not hold: a fold between the pin and the
// snapshot has moved the others into it. `writers` are of the ledger's snapshot.
std::int64_t SamplesUnfolded(const std::vector<HeadChunkPtr>& chunks,
                             const std::vector<WriterRecord>& writers);

// Of all samples of the chunks; 0 without any.
std::int64_t NewestTime(const std::vector<HeadChunkPtr>& chunks);

// The trial with what is acked and not yet folded. `writers` as above.
v1::Trial LiveTrial(const TrialRecord& record, const std::vector<HeadChunkPtr>& chunks,
                    const std::vector<WriterRecord>& writers);

// One trial of many: its sums stand for its gaps. Start with an empty `total`, answered_time_us set
// and contiguous true.
void AddTrial(const TrialRecord& record, const v1::Trial& trial, bool recovering,
              v1::Completeness& total);

// Samples of all lines.
std::int64_t SamplesHeld(const std::vector<UsageRecord>& usage);
// Closed by itself or by its agent, or heard of lately.
bool IsAccountedFor(const WriterRecord& writer, const std::map<WriterNo, WriterSeen>& seen,
                    SteadyTime now);
// Lost: open, and not heard of for as long; or where this master has not heard of it at all, as its trial is.
v1::TrialState WriterStateOf(const WriterRecord& writer, const std::map<WriterNo, WriterSeen>& seen,
                             TrialState trial, SteadyTime now);

}  // namespace stepwell
