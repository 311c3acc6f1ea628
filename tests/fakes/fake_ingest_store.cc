#include "tests/fakes/fake_ingest_store.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/status_macros.h"
#include "storage/advance_rules.h"
#include "storage/journal_rows.h"
#include "storage/open_rules.h"
#include "storage/pg_error.h"

namespace stepwell::testing {
namespace {

absl::Status NotOwner(std::int64_t epoch) {
  return absl::AbortedError(
      absl::StrCat("owner epoch ", epoch, " is over: another master owns it"));
}

absl::Status NoTrial(TrialId trial_id) {
  return absl::NotFoundError(absl::StrCat("trial ", Value(trial_id), ": there is none"));
}

}  // namespace

absl::StatusOr<Ownership> FakeIngestStore::AcquireOwnership(const OwnerClaim& claim) {
  absl::MutexLock lock(&mu_);
  ++ownership_calls_;
  const absl::Time now = absl::Now();
  Ownership& row = tables_.owner;
  const bool vacant = row.epoch == 0;
  const bool same_id = !vacant && row.owner_id == claim.master_id;
  const bool renews = same_id && claim.epoch != 0 && row.epoch == claim.epoch;
  const bool restarts = same_id && (claim.last_epoch == 0 || claim.last_epoch == row.epoch);
  const absl::Duration age = now - tables_.renewed_time;
  const std::int64_t renewal_us = absl::ToUnixMicros(tables_.renewed_time);
  const bool ends = renewal_us == 0 || renewal_us == claim.lapsed_renewal_us;
  const bool takes = claim.epoch == 0 && (vacant || restarts || ends);
  if (takes) {
    const std::int64_t epoch = std::max(row.epoch, claim.last_epoch) + 1;
    row = {.is_owner = true, .epoch = epoch, .owner_id = claim.master_id};
  }
  if (takes || renews) {
    row.incarnation = tables_.incarnation;
    // As it is told: in whole microseconds, and never the same twice.
    tables_.renewed_time = std::max(absl::FromUnixMicros(absl::ToUnixMicros(now)),
                                    tables_.renewed_time + absl::Microseconds(1));
    Ownership owner = row;
    owner.look = std::exchange(next_look_, absl::OkStatus());
    if (!owner.look.ok()) owner.incarnation = {};
    return owner;
  }
  Ownership other = row;
  other.is_owner = false;
  if (!vacant) other.renewed_age_seconds = absl::ToDoubleSeconds(age);
  if (!vacant) other.renewal_us = renewal_us;
  return other;
}

absl::StatusOr<Uuid> FakeIngestStore::ReadIncarnation() {
  absl::MutexLock lock(&mu_);
  return tables_.incarnation;
}

void FakeIngestStore::RenewIncarnation() {
  absl::MutexLock lock(&mu_);
  tables_.incarnation = Uuid::Random();
}

struct FakeIngestStore::Backup {
  Tables tables;
};

std::shared_ptr<const FakeIngestStore::Backup> FakeIngestStore::BackUp() const {
  absl::MutexLock lock(&mu_);
  return std::make_shared<Backup>(Backup{tables_});
}

void FakeIngestStore::PutBack(const Backup& backup) {
  absl::MutexLock lock(&mu_);
  tables_ = backup.tables;
}

void FakeIngestStore::FailNextLook(absl::Status status) {
  absl::MutexLock lock(&mu_);
  next_look_ = std::move(status);
}

absl::Status FakeIngestStore::ReleaseOwnership(const std::string& master_id, std::int64_t epoch) {
  absl::MutexLock lock(&mu_);
  if (tables_.owner.owner_id == master_id && tables_.owner.epoch == epoch)
    tables_.renewed_time = absl::UnixEpoch();
  return absl::OkStatus();
}

absl::Status FakeIngestStore::FenceTrials(std::int64_t epoch) {
  absl::MutexLock lock(&mu_);
  for (const auto& [key, writer] : tables_.writers) {
    const WriterProgress& at = writer.progress;
    if (at.state != WriterState::kOpen && at.committed_sequence == at.folded_sequence) continue;
    Trial& trial = tables_.trials.at(key.first);
    trial.owner_epoch = std::max(trial.owner_epoch, epoch);
  }
  for (auto& [trial_id, trial] : tables_.trials) {
    if (trial.state == TrialState::kRunning) trial.owner_epoch = std::max(trial.owner_epoch, epoch);
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<WriterProgress>> FakeIngestStore::ReadWriters() {
  absl::MutexLock lock(&mu_);
  std::vector<WriterProgress> unfinished;
  for (const auto& [key, writer] : tables_.writers) {
    const WriterProgress& at = writer.progress;
    const TrialState trial = tables_.trials.at(key.first).state;
    if (at.state == WriterState::kOpen || at.committed_sequence > at.folded_sequence ||
        trial == TrialState::kRunning || trial == TrialState::kLost) {
      unfinished.push_back(at);
    }
  }
  return unfinished;
}

absl::Status FakeIngestStore::ReadUnfoldedJournal(
    const std::function<absl::Status(JournalRow)>& row) {
  std::vector<JournalRow> unfolded;
  {
    absl::MutexLock lock(&mu_);
    for (const JournalRow& stored : tables_.journal) {
      JournalRow kept = stored;
      kept.ranges.clear();
      kept.payloads.clear();
      for (std::size_t i = 0; i < stored.ranges.size(); ++i) {
        JournalRow::Range range = stored.ranges[i];
        range.folded_sequence =
            tables_.writers.at({stored.trial_id, range.writer_no}).progress.folded_sequence;
        if (range.last_sequence <= range.folded_sequence) continue;
        kept.ranges.push_back(range);
        if (i < stored.payloads.size()) kept.payloads.push_back(stored.payloads[i]);
      }
      if (!kept.ranges.empty()) unfolded.push_back(std::move(kept));
    }
  }
  for (JournalRow& kept : unfolded) STEPWELL_RETURN_IF_ERROR(row(std::move(kept)));
  return absl::OkStatus();
}

FakeIngestStore::Trial* FakeIngestStore::FindOrCreateTrialLocked(const OpenWriterRequest& request,
                                                                 TrialId& trial_id) {
  const TrialSelector& by = request.trial;
  if (by.trial_id != 0) {
    trial_id = TrialId{by.trial_id};
    if (!tables_.trials.contains(trial_id) && by.trial_id >= kMasterTrialIdMin) return nullptr;
  } else {
    const TrialId next{tables_.next_trial_id};
    const auto [name, is_new] = tables_.trial_names.try_emplace({by.project, by.external_id}, next);
    if (is_new) ++tables_.next_trial_id;
    trial_id = name->second;
  }
  const auto [trial, is_new] = tables_.trials.try_emplace(trial_id);
  if (is_new) trial->second.owner_epoch = request.owner_epoch;
  return &trial->second;
}

bool FakeIngestStore::LetsThroughLocked(const OpenWriterRequest& request) const {
  const TrialSelector& by = request.trial;
  if (by.trial_id == 0) {
    const auto named = tables_.trial_names.find({by.project, by.external_id});
    const std::int64_t trial_id = named == tables_.trial_names.end() ? 0 : Value(named->second);
    return request.trials.LetsThrough(trial_id, by.project, by.external_id);
  }
  for (const auto& [name, trial_id] : tables_.trial_names) {
    if (Value(trial_id) != by.trial_id) continue;
    return request.trials.LetsThrough(by.trial_id, name.first, name.second);
  }
  // Where a trial without a name is made.
  return request.trials.LetsThrough(by.trial_id, "default", "");
}

std::int32_t FakeIngestStore::AttemptLocked(Trial& trial, const OpenWriterRequest& request) {
  std::vector<std::string>& keys = trial.attempt_keys;
  if (JoinsNewestAttempt(request) && !keys.empty()) return static_cast<std::int32_t>(keys.size());
  const std::string key = AttemptKeyOf(request);
  auto found = std::find(keys.begin(), keys.end(), key);
  if (found == keys.end()) found = std::find(keys.begin(), keys.end(), std::string());
  if (found == keys.end()) found = keys.insert(keys.end(), key);
  *found = key;
  return static_cast<std::int32_t>(found - keys.begin()) + 1;
}

absl::StatusOr<OpenedWriter> FakeIngestStore::OpenWriter(const OpenWriterRequest& request) {
  STEPWELL_RETURN_IF_ERROR(CheckOpen(request));
  absl::MutexLock lock(&mu_);
  if (tables_.owner.epoch != 0 && tables_.owner.epoch != request.owner_epoch) {
    return NotOwner(request.owner_epoch);
  }
  OpenedWriter opened;
  if (!LetsThroughLocked(request)) return NotLetThrough(request.trial);
  Trial* trial = FindOrCreateTrialLocked(request, opened.trial_id);
  if (trial == nullptr) return NoTrial(opened.trial_id);
  if (trial->owner_epoch > request.owner_epoch) return NotOwner(request.owner_epoch);
  const auto had = static_cast<std::int32_t>(trial->writer_nos.size());
  if (!trial->writer_nos.contains(request.writer)) {
    STEPWELL_RETURN_IF_ERROR(CheckRoomForWriter(request, opened.trial_id, had));
  }
  trial->owner_epoch = request.owner_epoch;
  trial->state = TrialState::kRunning;
  const auto next_no = WriterNo{had + 1};
  const auto [number, is_new] = trial->writer_nos.try_emplace(request.writer, next_no);
  Writer& writer = tables_.writers[{opened.trial_id, number->second}];
  if (is_new) {
    writer.progress = {.trial_id = opened.trial_id, .writer_no = number->second};
    writer.uuid = request.writer;
    writer.attempt = AttemptLocked(*trial, request);
  }
  writer.progress.generation = std::max(writer.progress.generation, request.last_generation) + 1;
  writer.progress.state = WriterState::kOpen;
  opened.writer_no = number->second;
  opened.attempt = writer.attempt;
  opened.generation = writer.progress.generation;
  opened.committed_sequence = writer.progress.committed_sequence;
  opened.folded_sequence = writer.progress.folded_sequence;
  opened.last_crc32c = writer.last_crc32c;
  opened.profiling = trial->profiling;
  for (const auto& [gap_no, stored] : tables_.gaps) {
    if (stored.trial_id == opened.trial_id && stored.gap.writer_no == opened.writer_no &&
        stored.gap.cause == GapCause::kRejected) {
      opened.rejections.push_back(stored.gap);
    }
  }
  return opened;
}

absl::StatusOr<std::vector<SeriesNo>> FakeIngestStore::FindOrCreateSeries(
    TrialId trial_id, absl::Span<const SeriesDefinition> definitions, int series_max,
    std::int64_t* created) {
  ActBeforeSeries();
  absl::MutexLock lock(&mu_);
  ++series_calls_;
  if (series_busy_ > 0) {
    --series_busy_;
    return absl::UnavailableError("others are busy");
  }
  series_max = std::min(series_max, series_max_);
  if (definitions.empty()) return std::vector<SeriesNo>();
  const auto trial = tables_.trials.find(trial_id);
  if (trial == tables_.trials.end()) return NoTrial(trial_id);
  std::vector<Series> series = trial->second.series;
  std::vector<SeriesNo> numbers;
  for (const SeriesDefinition& definition : definitions) {
    auto found = std::find_if(series.begin(), series.end(), [&](const Series& known) {
      return known.definition.key == definition.key;
    });
    if (found == series.end()) {
      if (series.size() >= static_cast<std::size_t>(series_max)) {
        numbers.push_back(SeriesNo{});
        continue;
      }
      const auto number = SeriesNo{static_cast<std::int32_t>(series.size()) + 1};
      found = series.insert(series.end(), {number, definition});
    }
    if (found->definition.unit != definition.unit || found->definition.kind != definition.kind) {
      return absl::InvalidArgumentError(absl::StrCat(
          "series ", definition.key.metric_group, "/", definition.key.name, " is known with unit '",
          found->definition.unit, "', given was '", definition.unit, "'"));
    }
    numbers.push_back(found->series_no);
  }
  if (created != nullptr) {
    *created += static_cast<std::int64_t>(series.size() - trial->second.series.size());
  }
  trial->second.series = std::move(series);
  return numbers;
}

absl::Status FakeIngestStore::CheckOwnerLocked(const CommitGroupRequest& request) const {
  for (const WriterAdvance& advance : request.advances) {
    const auto trial = tables_.trials.find(advance.trial_id);
    if (trial != tables_.trials.end() && trial->second.owner_epoch != request.owner_epoch) {
      return NotOwner(request.owner_epoch);
    }
  }
  return absl::OkStatus();
}

void FakeIngestStore::NoteGapLocked(TrialId trial_id, const Gap& gap) {
  GapLedger ledger;
  for (const auto& [gap_no, stored] : tables_.gaps) {
    if (stored.trial_id == trial_id) ledger.AddStored(trial_id, gap_no, stored.gap);
  }
  ledger.Note(trial_id, gap);
  for (GapChange& change : ledger.TakeChanges()) {
    if (change.gap_no == 0) change.gap_no = static_cast<std::int64_t>(tables_.gaps.size()) + 1;
    tables_.gaps[change.gap_no] = change;
  }
}

AdvanceResult FakeIngestStore::AdvanceLocked(const WriterAdvance& advance) {
  const auto found = tables_.writers.find({advance.trial_id, advance.writer_no});
  if (found == tables_.writers.end()) return JudgeAdvance(advance, std::nullopt);
  Writer& writer = found->second;
  const AdvanceResult result = JudgeAdvance(advance, writer.progress);
  if (RepeatCloses(advance, writer.progress)) writer.progress.state = *advance.closing;
  if (result.outcome != AdvanceOutcome::kCommitted) return result;
  writer.progress.committed_sequence = advance.last_sequence;
  writer.progress.state = advance.closing.value_or(WriterState::kOpen);
  if (!OnlyCloses(advance)) writer.last_crc32c = advance.last_crc32c;
  for (Gap gap : advance.gaps) {
    gap.writer_no = advance.writer_no;
    NoteGapLocked(advance.trial_id, gap);
  }
  return result;
}

void FakeIngestStore::AppendJournalLocked(const CommitGroupRequest& request,
                                          const std::vector<AdvanceResult>& results) {
  std::vector<const WriterAdvance*> accepted;
  for (std::size_t i = 0; i < results.size(); ++i) {
    if (results[i].outcome == AdvanceOutcome::kCommitted) accepted.push_back(&request.advances[i]);
  }
  std::stable_sort(
      accepted.begin(), accepted.end(), [](const WriterAdvance* a, const WriterAdvance* b) {
        return std::pair(a->trial_id, a->writer_no) < std::pair(b->trial_id, b->writer_no);
      });
  for (const JournalRowPlan& plan : PlanJournalRows(accepted)) {
    JournalRow& row = tables_.journal.emplace_back();
    row.trial_id = plan.trial_id;
    row.received_time_us = request.received_time_us;
    for (const JournalRange& range : plan.ranges) {
      row.ranges.push_back({.writer_no = range.advance->writer_no,
                            .generation = range.advance->generation,
                            .first_sequence = range.first_sequence,
                            .last_sequence = range.last_sequence});
      row.payloads.emplace_back(range.payload);
    }
  }
}

absl::StatusOr<std::vector<AdvanceResult>> FakeIngestStore::Commit(
    const CommitGroupRequest& request) {
  STEPWELL_RETURN_IF_ERROR(CheckGroup(request));
  ActBeforeCommit();
  absl::MutexLock lock(&mu_);
  const auto may_go = [this]() ABSL_SHARED_LOCKS_REQUIRED(mu_) { return !block_commits_; };
  mu_.Await(absl::Condition(&may_go));
  ++commit_count_;
  STEPWELL_RETURN_IF_ERROR(std::exchange(fail_next_, absl::OkStatus()));
  if (judge_) STEPWELL_RETURN_IF_ERROR(judge_(request));
  STEPWELL_RETURN_IF_ERROR(CheckOwnerLocked(request));
  std::vector<AdvanceResult> results;
  for (const WriterAdvance& advance : request.advances) results.push_back(AdvanceLocked(advance));
  AppendJournalLocked(request, results);
  if (fail_after_.ok()) return results;
  if (IsCommitUnknown(fail_after_)) ++commits_in_doubt_;
  return std::exchange(fail_after_, absl::OkStatus());
}

std::uint64_t FakeIngestStore::commits_in_doubt() const {
  absl::MutexLock lock(&mu_);
  return commits_in_doubt_;
}

absl::StatusOr<std::vector<WriterProgress>> FakeIngestStore::ReadProgress(
    TrialId trial_id, absl::Span<const WriterNo> writers) {
  absl::MutexLock lock(&mu_);
  ++writer_reads_;
  std::vector<WriterNo> sorted(writers.begin(), writers.end());
  std::sort(sorted.begin(), sorted.end());
  std::vector<WriterProgress> rows;
  for (const WriterNo writer_no : sorted) {
    const auto found = tables_.writers.find({trial_id, writer_no});
    if (found != tables_.writers.end()) rows.push_back(found->second.progress);
  }
  return rows;
}

absl::StatusOr<TrialWriters> FakeIngestStore::ReadTrialWriters(TrialId trial_id) {
  absl::MutexLock lock(&mu_);
  ++writer_reads_;
  TrialWriters told;
  for (auto at = tables_.writers.lower_bound({trial_id, WriterNo{}});
       at != tables_.writers.end() && at->first.first == trial_id; ++at) {
    const WriterProgress& writer = at->second.progress;
    told.any_died = told.any_died || writer.state == WriterState::kDied;
    const bool has_room = told.open.size() < static_cast<std::size_t>(kOpenWritersTold);
    if (writer.state == WriterState::kOpen && has_room) told.open.push_back(writer.writer_no);
  }
  return told;
}

int FakeIngestStore::writer_reads() const {
  absl::MutexLock lock(&mu_);
  return writer_reads_;
}

absl::Status FakeIngestStore::SetTrialState(TrialId trial_id, TrialState state,
                                            std::int64_t owner_epoch) {
  absl::MutexLock lock(&mu_);
  const auto trial = tables_.trials.find(trial_id);
  if (trial == tables_.trials.end()) return NoTrial(trial_id);
  const bool is_owner = tables_.owner.epoch == 0 || tables_.owner.epoch == owner_epoch;
  if (!is_owner || trial->second.owner_epoch > owner_epoch) return NotOwner(owner_epoch);
  trial->second.state = state;
  return absl::OkStatus();
}

void FakeIngestStore::DropTrial(TrialId trial_id) {
  absl::MutexLock lock(&mu_);
  tables_.trials.erase(trial_id);
}

absl::StatusOr<TrialProfiling> FakeIngestStore::SetProfiling(TrialId trial_id,
                                                             const TrialProfiling& wanted,
                                                             std::int64_t owner_epoch) {
  absl::MutexLock lock(&mu_);
  const auto trial = tables_.trials.find(trial_id);
  if (trial == tables_.trials.end()) return NoTrial(trial_id);
  const bool is_owner = tables_.owner.epoch == 0 || tables_.owner.epoch == owner_epoch;
  if (!is_owner || trial->second.owner_epoch > owner_epoch) return NotOwner(owner_epoch);
  const std::int64_t revision = trial->second.profiling.revision + 1;
  trial->second.profiling = wanted;
  trial->second.profiling.revision = revision;
  return trial->second.profiling;
}

void FakeIngestStore::ChangeJournal(std::size_t row,
                                    const std::function<void(JournalRow&)>& change) {
  absl::MutexLock lock(&mu_);
  change(tables_.journal.at(row));
}

void FakeIngestStore::FailNext(absl::Status status) {
  absl::MutexLock lock(&mu_);
  fail_next_ = std::move(status);
}

void FakeIngestStore::FailNextAfterStoring(absl::Status status) {
  absl::MutexLock lock(&mu_);
  fail_after_ = std::move(status);
}

void FakeIngestStore::set_block_commits(bool block) {
  absl::MutexLock lock(&mu_);
  block_commits_ = block;
}

void FakeIngestStore::OnNextCommit(std::function<void()> act) {
  absl::MutexLock lock(&mu_);
  on_next_commit_ = std::move(act);
}

void FakeIngestStore::ActBeforeCommit() {
  std::function<void()> act;
  {
    absl::MutexLock lock(&mu_);
    act = std::exchange(on_next_commit_, nullptr);
  }
  if (act) act();
}

void FakeIngestStore::set_series_max(int series_max) {
  absl::MutexLock lock(&mu_);
  series_max_ = series_max;
}

void FakeIngestStore::KeepSeriesBusy(int count) {
  absl::MutexLock lock(&mu_);
  series_busy_ = count;
}

int FakeIngestStore::commit_count() const {
  absl::MutexLock lock(&mu_);
  return commit_count_;
}

void FakeIngestStore::SetFolded(TrialId trial_id, WriterNo writer_no,
                                std::uint64_t folded_sequence) {
  absl::MutexLock lock(&mu_);
  tables_.writers.at({trial_id, writer_no}).progress.folded_sequence = folded_sequence;
}

std::vector<Gap> FakeIngestStore::gaps(TrialId trial_id) const {
  absl::MutexLock lock(&mu_);
  std::vector<Gap> found;
  for (const auto& [gap_no, stored] : tables_.gaps) {
    if (stored.trial_id == trial_id) found.push_back(stored.gap);
  }
  return found;
}

TrialState FakeIngestStore::trial_state(TrialId trial_id) const {
  absl::MutexLock lock(&mu_);
  return tables_.trials.at(trial_id).state;
}

}  // namespace stepwell::testing
