#include "server/gap_places.h"

#include <algorithm>
#include <iterator>
#include <optional>

#include "base/status_macros.h"

namespace stepwell {
namespace {

bool HasStretch(const v1::Gap& gap) {
  return gap.writer_no() != 0 && gap.first_time_us() > 0 &&
         gap.last_time_us() >= gap.first_time_us();
}

WriterStretch StretchOf(const v1::Gap& gap) {
  return {WriterNo{gap.writer_no()}, gap.first_time_us(), gap.last_time_us()};
}

void NoteHeads(const std::vector<HeadChunkPtr>& chunks, const std::vector<WriterStretch>& stretches,
               std::vector<BatchesAround>& all) {
  for (const HeadChunkPtr& chunk : chunks) {
    for (std::size_t i = 0; i < stretches.size(); ++i) {
      if (stretches[i].writer_no != chunk->writer_no) continue;
      for (const TickTable& table : chunk->tables) {
        NoteTicks(table.times_us, table.batches, stretches[i], all[i]);
      }
    }
  }
}

}  // namespace

std::vector<WriterStretch> StretchesOf(const v1::Completeness& completeness,
                                       std::size_t stretches_max) {
  std::vector<WriterStretch> stretches;
  const auto& gaps = completeness.gaps();
  for (auto gap = gaps.rbegin(); gap != gaps.rend() && stretches.size() < stretches_max; ++gap) {
    if (!HasStretch(*gap)) continue;
    const WriterStretch stretch = StretchOf(*gap);
    if (std::find(stretches.begin(), stretches.end(), stretch) == stretches.end()) {
      stretches.push_back(stretch);
    }
  }
  return stretches;
}

void SetPlace(const BatchesAround& around, const BatchAttempts& attempts, std::int32_t attempt,
              v1::Gap& gap) {
  const auto counts = [&](const std::optional<TickBatch>& tick) {
    return tick && attempts.Counts(attempt, tick->batch);
  };
  if (!counts(around.before) && !counts(around.after)) return;
  if (around.before && around.after && around.before->batch > around.after->batch) return;
  if (around.before) gap.set_batch_before(around.before->batch);
  if (around.after) gap.set_batch_after(around.after->batch);
}

absl::Status PlaceGaps(TrialView& view, const BatchAttempts& attempts,
                       v1::Completeness& completeness) {
  const std::vector<WriterStretch> stretches = StretchesOf(completeness, kStretchesMax);
  if (stretches.empty()) return absl::OkStatus();
  STEPWELL_ASSIGN_OR_RETURN(
      std::vector<BatchesAround> all,
      view.snapshot().ReadBatchesAround(view.trial_id(), stretches, view.pin().fold_no()));
  NoteHeads(view.pin().chunks(), stretches, all);
  for (v1::Gap& gap : *completeness.mutable_gaps()) {
    if (!HasStretch(gap)) continue;
    const auto found = std::find(stretches.begin(), stretches.end(), StretchOf(gap));
    if (found == stretches.end()) continue;
    const auto place = static_cast<std::size_t>(std::distance(stretches.begin(), found));
    SetPlace(all[place], attempts, view.AttemptOf(found->writer_no), gap);
  }
  return absl::OkStatus();
}

}  // namespace stepwell
