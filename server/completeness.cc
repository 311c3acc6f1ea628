#include "server/completeness.h"

#include <algorithm>

#include "server/missing_ranks.h"
#include "server/query_range.h"
#include "server/query_wire.h"

namespace stepwell {

std::int64_t SamplesUnfolded(const std::vector<HeadChunkPtr>& chunks,
                             const std::vector<WriterRecord>& writers) {
  std::map<WriterNo, std::uint64_t> folded;
  for (const WriterRecord& writer : writers) folded[writer.writer_no] = writer.folded_sequence;
  std::int64_t count = 0;
  for (const HeadChunkPtr& chunk : chunks) {
    const auto writer = folded.find(chunk->writer_no);
    const bool counted = writer != folded.end() && chunk->sequence <= writer->second;
    if (!counted) count += chunk->sample_count;
  }
  return count;
}

std::int64_t NewestTime(const std::vector<HeadChunkPtr>& chunks) {
  std::int64_t newest_us = 0;
  for (const HeadChunkPtr& chunk : chunks) {
    for (const TickTable& table : chunk->tables) {
      const std::optional<SampleTimes> times = SampleTimesOf(table);
      if (times) newest_us = std::max(newest_us, times->last_us);
    }
  }
  return newest_us;
}

void RaiseCommitted(const std::vector<HeadChunkPtr>& chunks, std::vector<WriterRecord>& writers) {
  std::map<WriterNo, std::uint64_t> newest;
  for (const HeadChunkPtr& chunk : chunks) {
    newest[chunk->writer_no] = std::max(newest[chunk->writer_no], chunk->sequence);
  }
  for (WriterRecord& writer : writers) {
    const auto found = newest.find(writer.writer_no);
    if (found == newest.end()) continue;
    writer.committed_sequence = std::max(writer.committed_sequence, found->second);
  }
}

v1::Trial LiveTrial(const TrialRecord& record, const std::vector<HeadChunkPtr>& chunks,
                    const std::vector<WriterRecord>& writers) {
  v1::Trial trial = ToWire(record);
  trial.set_sample_count(record.sample_count + SamplesUnfolded(chunks, writers));
  for (const HeadChunkPtr& chunk : chunks) {
    for (const TickTable& table : chunk->tables) {
      const std::optional<SampleTimes> times = SampleTimesOf(table);
      if (!times) continue;
      const bool first = trial.first_sample_time_us() == 0;
      if (first || times->first_us < trial.first_sample_time_us()) {
        trial.set_first_sample_time_us(times->first_us);
      }
      if (first || times->last_us > trial.last_sample_time_us()) {
        trial.set_last_sample_time_us(times->last_us);
      }
    }
  }
  return trial;
}

std::int64_t SamplesHeld(const std::vector<UsageRecord>& usage) {
  std::int64_t held = 0;
  for (const UsageRecord& line : usage) held += line.sample_count;
  return held;
}

bool IsAccountedFor(const WriterRecord& writer, const std::map<WriterNo, WriterSeen>& seen,
                    SteadyTime now) {
  if (writer.state != WriterState::kOpen) return true;
  const auto heard = seen.find(writer.writer_no);
  return heard != seen.end() && now - heard->second.heard < kHeardOf;
}

v1::TrialState WriterStateOf(const WriterRecord& writer, const std::map<WriterNo, WriterSeen>& seen,
                             TrialState trial, SteadyTime now) {
  switch (writer.state) {
    case WriterState::kOpen: {
      const bool is_lost = seen.count(writer.writer_no) > 0 ? !IsAccountedFor(writer, seen, now)
                                                            : trial == TrialState::kLost;
      return is_lost ? v1::TRIAL_STATE_LOST : v1::TRIAL_STATE_RUNNING;
    }
    case WriterState::kClosed:
      return v1::TRIAL_STATE_COMPLETED;
    case WriterState::kDied:
      return v1::TRIAL_STATE_FAILED;
  }
  return v1::TRIAL_STATE_UNSPECIFIED;
}

v1::Completeness MakeCompleteness(const CompletenessInputs& inputs) {
  v1::Completeness completeness;
  completeness.set_samples_held(SamplesHeld(inputs.usage) + inputs.head_sample_count);
  completeness.set_samples_missing(inputs.gaps.missing_sample_count);
  for (const Gap& gap : inputs.gaps.gaps) {
    const bool concerns = inputs.metric_group.empty() || gap.metric_group.empty() ||
                          gap.metric_group == inputs.metric_group;
    if (concerns) *completeness.add_gaps() = ToWire(gap);
  }
  completeness.set_gaps_truncated(inputs.gaps.truncated);
  bool accounted_for = true;
  for (const WriterRecord& writer : inputs.writers) {
    accounted_for &= IsAccountedFor(writer, inputs.seen, inputs.now);
  }
  const MissingRanks missing = FindMissingRanks(inputs.writers);
  completeness.mutable_ranks_missing()->Assign(missing.first.begin(), missing.first.end());
  completeness.set_ranks_missing_count(missing.count);
  completeness.set_contiguous(accounted_for && !inputs.gaps.samples_missing && missing.count == 0);
  std::int64_t newest_us = inputs.head_newest_time_us;
  for (const UsageRecord& line : inputs.usage) {
    if (inputs.metric_group.empty() || line.metric_group == inputs.metric_group) {
      newest_us = std::max(newest_us, line.last_time_us);
    }
  }
  completeness.set_newest_sample_time_us(newest_us);
  completeness.set_answered_time_us(inputs.now_us);
  completeness.set_recovering(inputs.recovering);
  return completeness;
}

void AddTrial(const TrialRecord& record, const v1::Trial& trial, bool recovering,
              v1::Completeness& total) {
  total.set_samples_held(total.samples_held() + trial.sample_count());
  total.set_samples_missing(total.samples_missing() + record.missing_sample_count);
  total.set_gaps_truncated(total.gaps_truncated() || record.samples_missing);
  // A trial that is lost has a writer that was not heard of for long.
  const bool contiguous = !record.samples_missing && trial.state() != v1::TRIAL_STATE_LOST;
  total.set_contiguous(total.contiguous() && contiguous);
  total.set_newest_sample_time_us(
      std::max(total.newest_sample_time_us(), trial.last_sample_time_us()));
  total.set_recovering(total.recovering() || recovering);
}

}  // namespace stepwell
