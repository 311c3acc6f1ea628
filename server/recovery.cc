#include "server/recovery.h"

#include <memory>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "base/failpoint.h"
#include "base/log.h"
#include "base/status_macros.h"
#include "server/journal_codec.h"
#include "server/replay_coverage.h"

namespace stepwell {
namespace {

absl::StatusOr<HeadChunkPtr> DecodeHead(const JournalRow& row, const JournalRow::Range& range,
                                        const JournalEntry& entry) {
  DecodedChunk decoded;
  if (entry.has_body) STEPWELL_RETURN_IF_ERROR(DecodeJournalBody(entry, decoded));
  auto head = std::make_shared<HeadChunk>();
  head->trial_id = row.trial_id;
  head->writer_no = range.writer_no;
  head->attempt = entry.attempt;
  head->sequence = entry.last_sequence;
  head->first_sequence = entry.first_sequence;
  head->received_time_us = row.received_time_us;
  head->sample_count = decoded.sample_count;
  head->bytes = decoded.bytes + static_cast<std::int64_t>(sizeof(HeadChunk));
  head->tables = std::move(decoded.tables);
  return head;
}

void LogUnreadable(const JournalRow& row, const JournalRow::Range& range, const absl::Status& why) {
  log::Error("journal_unreadable", {{"trial", Value(row.trial_id)},
                                    {"writer_no", Value(range.writer_no)},
                                    {"first_sequence", range.first_sequence},
                                    {"last_sequence", range.last_sequence},
                                    {"status", why.ToString()}});
}

// The chunks of one range that can be read, and are in it.
absl::Status DecodeRange(const JournalRow& row, const JournalRow::Range& range,
                         absl::string_view payload, ReplayCoverage& coverage,
                         std::vector<HeadChunkPtr>& chunks) {
  std::vector<JournalEntry> entries;
  absl::Status status = DecodeJournalPayload(payload, entries);
  for (const JournalEntry& entry : entries) {
    if (entry.last_sequence <= range.folded_sequence) continue;
    if (entry.last_sequence > range.last_sequence) {
      status = absl::DataLossError(absl::StrCat("journal: an entry of sequence ",
                                                entry.last_sequence, ", out of its range"));
      continue;
    }
    auto head = DecodeHead(row, range, entry);
    if (!head.ok()) {
      status = head.status();
      continue;
    }
    coverage.Cover(row.trial_id, range.writer_no, entry.first_sequence, entry.last_sequence);
    chunks.push_back(*std::move(head));
  }
  return status;
}

// What cannot be read is told and passed over: the rest of the trial must not be lost with it.
std::vector<HeadChunkPtr> DecodeRow(const JournalRow& row, ReplayCoverage& coverage) {
  std::vector<HeadChunkPtr> chunks;
  if (!row.damage.ok()) {
    log::Error("journal_row_damaged", {{"trial", Value(row.trial_id)},
                                       {"received_time_us", row.received_time_us},
                                       {"status", row.damage.ToString()}});
    return chunks;
  }
  for (std::size_t i = 0; i < row.ranges.size() && i < row.payloads.size(); ++i) {
    const absl::Status decoded = DecodeRange(row, row.ranges[i], row.payloads[i], coverage, chunks);
    if (!decoded.ok()) LogUnreadable(row, row.ranges[i], decoded);
  }
  return chunks;
}

// Stands in for the range, so that folds pass it and declare it.
HeadChunkPtr MissingHead(const MissingRange& range) {
  auto head = std::make_shared<HeadChunk>();
  head->trial_id = range.trial_id;
  head->writer_no = range.writer_no;
  head->sequence = range.last_sequence;
  head->first_sequence = range.first_sequence;
  head->bytes = static_cast<std::int64_t>(sizeof(HeadChunk));
  Gap& gap = head->gaps.emplace_back();
  gap.writer_no = range.writer_no;
  gap.cause = GapCause::kSpoolCorrupt;
  gap.first_sequence = range.first_sequence;
  gap.last_sequence = range.last_sequence;
  gap.reason = "JOURNAL_DAMAGED";
  return head;
}

std::vector<HeadChunkPtr> MissingHeads(const ReplayCoverage& coverage, IngestStats& stats) {
  std::vector<HeadChunkPtr> heads;
  for (const MissingRange& range : coverage.Missing()) {
    log::Error("journal_sequences_lost", {{"trial", Value(range.trial_id)},
                                          {"writer_no", Value(range.writer_no)},
                                          {"first_sequence", range.first_sequence},
                                          {"last_sequence", range.last_sequence}});
    stats.sequences_lost += range.last_sequence - range.first_sequence + 1;
    heads.push_back(MissingHead(range));
  }
  return heads;
}

}  // namespace

absl::StatusOr<TakenOver> TakeOver(const RecoveryParts& parts, std::int64_t epoch) {
  STEPWELL_RETURN_IF_ERROR(Annotate(parts.store.FenceTrials(epoch), "fence trials"));
  STEPWELL_ASSIGN_OR_RETURN(const std::vector<WriterProgress> writers, parts.store.ReadWriters());
  STEPWELL_ASSIGN_OR_RETURN(const FoldNo fold_no, parts.fold_store.NextFoldNo());
  TakenOver taken;
  absl::flat_hash_set<TrialId> unfolded;
  // Nobody else is the owner, and we are not yet: what an earlier ownership of ours left is out.
  parts.heads.Clear();
  for (const WriterProgress& writer : writers) {
    parts.heads.NoteWriter(writer.trial_id, writer.writer_no, writer.folded_sequence);
    parts.registry.NoteStored(writer.trial_id, writer.writer_no, writer.state);
    if (writer.committed_sequence <= writer.folded_sequence) continue;
    unfolded.insert(writer.trial_id);
    taken.writers.push_back(writer);
  }
  taken.trials.assign(unfolded.begin(), unfolded.end());
  parts.heads.RecoveryStarted(taken.trials, fold_no);
  log::Info(
      "took_over",
      {{"epoch", epoch}, {"writers", writers.size()}, {"trials_to_replay", taken.trials.size()}});
  return taken;
}

absl::Status ReplayJournal(const RecoveryParts& parts, std::int64_t epoch, const TakenOver& taken) {
  STEPWELL_RETURN_IF_ERROR(failpoint::Check("before_replay"));
  std::uint64_t sample_count = 0;
  ReplayCoverage coverage;
  for (const WriterProgress& writer : taken.writers) coverage.Expect(writer);
  const absl::Status read = parts.store.ReadUnfoldedJournal([&](JournalRow row) -> absl::Status {
    const std::vector<HeadChunkPtr> chunks = DecodeRow(row, coverage);
    for (const HeadChunkPtr& chunk : chunks) {
      sample_count += static_cast<std::uint64_t>(chunk->sample_count);
    }
    if (parts.state.IfOwner(epoch, [&] { parts.heads.Add(chunks); })) return absl::OkStatus();
    return absl::AbortedError("the ownership ended during the replay");
  });
  STEPWELL_RETURN_IF_ERROR(read);
  parts.stats.samples_replayed += sample_count;
  const std::vector<HeadChunkPtr> missing = MissingHeads(coverage, parts.stats);
  const bool owner = parts.state.IfOwner(epoch, [&] {
    parts.heads.Add(missing);
    for (const TrialId trial_id : taken.trials) parts.heads.RecoveryDone(trial_id);
  });
  if (!owner) return absl::AbortedError("the ownership ended during the replay");
  parts.state.RecoveryDone(epoch);
  if (!taken.trials.empty()) {
    log::Info("journal_replayed", {{"trials", taken.trials.size()}, {"samples", sample_count}});
  }
  return absl::OkStatus();
}

}  // namespace stepwell
