#include "storage/trial_book.h"

#include <utility>

#include "base/status_macros.h"
#include "storage/series_pieces.h"

namespace stepwell {

absl::StatusOr<std::shared_ptr<const TrialBook>> ReadBookOf(ReadSnapshot& snapshot,
                                                            TrialId trial_id,
                                                            const ListRoom& room) {
  auto book = std::make_shared<TrialBook>();
  snapshot.ExpectBook(trial_id, {});
  STEPWELL_ASSIGN_OR_RETURN(book->record, snapshot.ReadTrial(trial_id));
  STEPWELL_ASSIGN_OR_RETURN(book->writers, snapshot.ListWriters(trial_id));
  STEPWELL_ASSIGN_OR_RETURN(book->usage, snapshot.ReadUsage(trial_id));
  STEPWELL_ASSIGN_OR_RETURN(book->gaps, snapshot.ReadGaps(trial_id, {}));
  const std::int32_t series_count = book->record.series_count;
  if (series_count <= kBookSeriesMax) {
    STEPWELL_ASSIGN_OR_RETURN(book->series, snapshot.ReadAllSeries(trial_id, series_count, room));
  }
  return std::shared_ptr<const TrialBook>(std::move(book));
}

std::size_t BytesOf(const TrialBook& book) {
  std::size_t bytes =
      sizeof(TrialBook) + book.record.project.size() + book.record.external_id.size();
  for (const WriterRecord& writer : book.writers) bytes += sizeof(writer) + writer.agent_id.size();
  for (const UsageRecord& line : book.usage) bytes += sizeof(line) + line.metric_group.size();
  for (const Gap& gap : book.gaps.gaps) {
    bytes += sizeof(gap) + gap.metric_group.size() + gap.reason.size();
  }
  if (book.series != nullptr) bytes += BytesOf(*book.series);
  return bytes;
}

// For stores that remember nothing.
absl::StatusOr<std::shared_ptr<const TrialBook>> ReadStore::ReadBook(TrialId trial_id,
                                                                     std::int64_t owner_epoch,
                                                                     SteadyTime deadline,
                                                                     const ListRoom& room) {
  STEPWELL_ASSIGN_OR_RETURN(const bool is_owned, IsOwnedUnder(owner_epoch, deadline));
  if (!is_owned) return nullptr;
  STEPWELL_ASSIGN_OR_RETURN(const auto snapshot, OpenSnapshot(deadline));
  return ReadBookOf(*snapshot, trial_id, room);
}

}  // namespace stepwell
