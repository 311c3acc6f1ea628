// The bookkeeping half of PgReaderSnapshot: trials, writers, series, gaps and the ledger.
#include <algorithm>
#include <iterator>
#include <string_view>
#include <tuple>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "storage/pg_array.h"
#include "storage/pg_profiling.h"
#include "storage/pg_reader_snapshot.h"
#include "storage/pg_reader_sql.h"
#include "storage/series_pieces.h"

namespace stepwell {
namespace {

TrialRecord TrialAt(const PgResult& result, int row) {
  TrialRecord trial;
  trial.trial_id = TrialId{result.Int64(row, 0)};
  trial.project = std::string(result.Text(row, 1));
  trial.external_id = std::string(result.Text(row, 2));
  trial.state = static_cast<TrialState>(result.Int32(row, 3));
  trial.created_time_us = result.TimestampUs(row, 4);
  trial.attempt_count = result.Int32(row, 5);
  trial.writer_count = result.Int32(row, 6);
  trial.series_count = result.Int32(row, 7);
  trial.sample_count = result.Int64(row, 8);
  trial.first_time_us = result.Int64(row, 9);
  trial.last_time_us = result.Int64(row, 10);
  trial.missing_sample_count = result.Int64(row, 11);
  trial.samples_missing = result.Bool(row, 12);
  trial.profiling = ProfilingAt(result, row, 13);
  return trial;
}

// name NUL value NUL ... to pairs.
Labels SplitLabels(std::string_view packed) {
  Labels labels;
  while (!packed.empty()) {
    const std::size_t name_end = packed.find('\0');
    const std::size_t value_end = packed.find('\0', name_end + 1);
    labels.emplace_back(std::string(packed.substr(0, name_end)),
                        std::string(packed.substr(name_end + 1, value_end - name_end - 1)));
    packed.remove_prefix(value_end + 1);
  }
  return labels;
}

Series SeriesAt(const PgResult& result, int row) {
  Series series;
  series.series_no = SeriesNo{result.Int32(row, 0)};
  series.definition.kind = static_cast<SeriesKind>(result.Int32(row, 1));
  series.definition.key.metric_group = std::string(result.Text(row, 2));
  series.definition.key.name = std::string(result.Text(row, 3));
  series.definition.unit = std::string(result.Text(row, 4));
  series.definition.key.labels = SplitLabels(result.Bytes(row, 5));
  return series;
}

Gap GapAt(const PgResult& result, int row) {
  Gap gap;
  gap.writer_no = WriterNo{result.Int32(row, 0)};
  gap.cause = static_cast<GapCause>(result.Int32(row, 1));
  gap.metric_group = std::string(result.Text(row, 2));
  gap.sample_count = result.Int64(row, 3);
  gap.first_time_us = result.Int64(row, 4);
  gap.last_time_us = result.Int64(row, 5);
  gap.first_sequence = static_cast<std::uint64_t>(result.Int64(row, 6));
  gap.last_sequence = static_cast<std::uint64_t>(result.Int64(row, 7));
  gap.reason = std::string(result.Text(row, 8));
  return gap;
}

// Those whose trials are asked for and may be told of; none = there are no such trials.
std::vector<std::string> ListedProjects(const TrialPage& page) {
  if (page.project.empty()) return page.readable_projects.named();
  if (!page.readable_projects.LetsThrough(page.project)) return {};
  return {page.project};
}

// By which index trials are looked at. Few of those that run are of other projects, so that they are found by that;
// a state that trials end in is looked for among those of the project.
enum class LookedAt { kOfAll, kOfState, kOfProjects };

LookedAt WhatIsLookedAt(const TrialPage& page, bool of_all) {
  if (page.state && (of_all || *page.state == TrialState::kRunning)) return LookedAt::kOfState;
  return of_all ? LookedAt::kOfAll : LookedAt::kOfProjects;
}

// One way to look for a page.
struct Search {
  LookedAt looked_at;
  bool of_all;
  std::vector<std::string> projects;
};

bool IsOlder(const TrialRecord& trial, const TrialPage::After& other) {
  return std::tuple(trial.created_time_us, Value(trial.trial_id)) <
         std::tuple(other.created_time_us, other.trial_id);
}

absl::StatusOr<TrialList> ListBy(PgReadLink& link, const Search& search, const TrialPage& page) {
  const std::vector<std::string>& projects = search.projects;
  // Beyond every trial; the largest that timestamptz takes is years later.
  TrialPage::After after{INT64_C(4'000'000'000'000'000), INT64_MAX};
  if (page.after) after = *page.after;
  const std::int16_t state = page.state ? static_cast<std::int16_t>(*page.state) : std::int16_t{0};
  std::int64_t looks = page.looks_max;
  if (search.looked_at == LookedAt::kOfProjects && !projects.empty()) {
    looks = std::max(INT64_C(1), looks / static_cast<std::int64_t>(projects.size()));
  }
  std::vector<PgParam> listed = {
      PgTimestamp{after.created_time_us}, after.trial_id, page.name_contains, state,
      std::int64_t{page.limit},           looks};
  std::vector<PgParam> last = {PgTimestamp{after.created_time_us}, after.trial_id, looks - 1};
  SqlText list_sql = sql::kListTrials;
  SqlText last_sql = sql::kLastLookedAt;
  switch (search.looked_at) {
    case LookedAt::kOfAll:
      break;
    case LookedAt::kOfState:
      list_sql = sql::kListTrialsOfState;
      listed.insert(listed.end(), {PgParam(search.of_all), PgParam(PgArray(projects))});
      last_sql = sql::kLastLookedAtOfState;
      last.push_back(state);
      break;
    case LookedAt::kOfProjects:
      list_sql = sql::kListTrialsOfProjects;
      listed.push_back(PgArray(projects));
      last_sql = sql::kLastLookedAtOfProjects;
      last.push_back(PgArray(projects));
      break;
  }
  STEPWELL_ASSIGN_OR_RETURN(
      const PgResult result,
      link.RunOne(ReadQuery::kTrials, std::move(list_sql), std::move(listed), ReadPlan::kOnce));
  TrialList list;
  for (int row = 0; row < result.row_count(); ++row) list.trials.push_back(TrialAt(result, row));
  // A page that is full was looked for no further than it goes, but in one of several projects.
  const bool is_full = result.row_count() == page.limit;
  if (is_full && (search.looked_at != LookedAt::kOfProjects || projects.size() == 1)) return list;
  STEPWELL_ASSIGN_OR_RETURN(const PgResult end, link.RunOne(ReadQuery::kTrials, std::move(last_sql),
                                                            std::move(last), ReadPlan::kOnce));
  if (end.row_count() == 0) return list;
  const TrialPage::After looked_up_to{end.TimestampUs(0, 0), end.Int64(0, 1)};
  while (!list.trials.empty() && IsOlder(list.trials.back(), looked_up_to)) list.trials.pop_back();
  if (static_cast<std::int32_t>(list.trials.size()) < page.limit) list.looked_up_to = looked_up_to;
  return list;
}

}  // namespace

absl::StatusOr<const TrialBook*> PgReaderSnapshot::KnownBookOf(TrialId trial_id) {
  if (!known_ || known_->trial_id != trial_id) return nullptr;
  if (owner_ == 0) return known_->book.get();
  STEPWELL_ASSIGN_OR_RETURN(const PgResult owner, link_.Take(std::exchange(owner_, 0)));
  const bool is_owned = owner.row_count() == 1 && owner.Int64(0, 0) == known_->owner_epoch;
  // After the answer: see known_book.h.
  if (!is_owned || !known_->unchanged()) {
    known_.reset();
    ExpectBook(trial_id, {});
    return nullptr;
  }
  const std::shared_ptr<const TrialBook>& book = known_->book;
  usage_[trial_id] = PgReadMemory::Usage(book, &book->usage);
  gap_sums_[trial_id] = {book->gaps.missing_sample_count, book->gaps.samples_missing};
  return book.get();
}

void PgReaderSnapshot::ExpectBook(TrialId trial_id, const GapFilter& gaps) {
  if (known_ && known_->trial_id == trial_id) return;
  books_[trial_id] = {.trial = AskTrial(trial_id),
                      .writers = AskWriters(trial_id),
                      .usage = AskUsage(trial_id),
                      .gaps = AskGaps(trial_id, gaps),
                      .gap_filter = gaps};
}

PgReadLink::Ticket PgReaderSnapshot::AskTrial(TrialId trial_id) {
  if (const auto asked = std::exchange(books_[trial_id].trial, 0); asked != 0) return asked;
  return link_.Queue(ReadQuery::kTrial, sql::kReadTrial, {Value(trial_id)}, ReadPlan::kOnce);
}

PgReadLink::Ticket PgReaderSnapshot::AskWriters(TrialId trial_id) {
  if (const auto asked = std::exchange(books_[trial_id].writers, 0); asked != 0) return asked;
  return link_.Queue(ReadQuery::kWriters, sql::kListWriters,
                     {Value(trial_id), std::int64_t{kWritersReadMax}}, ReadPlan::kOnce);
}

PgReadLink::Ticket PgReaderSnapshot::AskUsage(TrialId trial_id) {
  if (const auto asked = std::exchange(books_[trial_id].usage, 0); asked != 0) return asked;
  return link_.Queue(ReadQuery::kUsage, sql::kReadUsage, {Value(trial_id)}, ReadPlan::kOnce);
}

PgReadLink::Ticket PgReaderSnapshot::AskGaps(TrialId trial_id, const GapFilter& filter) {
  Book& book = books_[trial_id];
  if (book.gaps != 0 && book.gap_filter == filter) return std::exchange(book.gaps, 0);
  return link_.Queue(
      ReadQuery::kGaps, sql::kListGaps,
      {Value(trial_id), filter.first_time_us, filter.last_time_us, std::int64_t{filter.limit} + 1,
       static_cast<std::int16_t>(filter.cause.value_or(GapCause{})), filter.metric_group},
      ReadPlan::kOnce);
}

absl::StatusOr<TrialRecord> PgReaderSnapshot::ReadTrial(TrialId trial_id) {
  STEPWELL_ASSIGN_OR_RETURN(const TrialBook* const known, KnownBookOf(trial_id));
  if (known != nullptr) return known->record;
  STEPWELL_ASSIGN_OR_RETURN(const PgResult result, link_.Take(AskTrial(trial_id)));
  if (result.row_count() == 0) {
    return absl::NotFoundError(absl::StrCat("there is no trial with the id ", Value(trial_id)));
  }
  TrialRecord trial = TrialAt(result, 0);
  gap_sums_[trial_id] = {trial.missing_sample_count, trial.samples_missing};
  return trial;
}

absl::StatusOr<TrialList> PgReaderSnapshot::ListTrials(const TrialPage& page) {
  const bool of_all = page.project.empty() && page.readable_projects.is_all();
  Search search{WhatIsLookedAt(page, of_all), of_all, ListedProjects(page)};
  STEPWELL_ASSIGN_OR_RETURN(TrialList list, ListBy(link_, search, page));
  // The last that was looked at of a state is of any project, and who lists some is told of no other: where more are in
  // that state than may be looked at, which is rare, theirs alone are looked at.
  if (search.looked_at != LookedAt::kOfState || of_all || !list.looked_up_to) return list;
  search.looked_at = LookedAt::kOfProjects;
  return ListBy(link_, search, page);
}

absl::StatusOr<std::vector<WriterRecord>> PgReaderSnapshot::ListWriters(TrialId trial_id) {
  STEPWELL_ASSIGN_OR_RETURN(const TrialBook* const known, KnownBookOf(trial_id));
  if (known != nullptr) return known->writers;
  STEPWELL_ASSIGN_OR_RETURN(const PgResult result, link_.Take(AskWriters(trial_id)));
  std::vector<WriterRecord> writers;
  for (int row = 0; row < result.row_count(); ++row) {
    WriterRecord writer;
    writer.writer_no = WriterNo{result.Int32(row, 0)};
    writer.attempt = result.Int32(row, 1);
    if (!result.IsNull(row, 2)) writer.rank = result.Int32(row, 2);
    writer.agent_id = std::string(result.Text(row, 3));
    writer.state = static_cast<WriterState>(result.Int32(row, 4));
    writer.committed_sequence = static_cast<std::uint64_t>(result.Int64(row, 5));
    writer.folded_sequence = static_cast<std::uint64_t>(result.Int64(row, 6));
    writer.world_size = result.Int32(row, 7);
    writers.push_back(std::move(writer));
  }
  return writers;
}

absl::StatusOr<std::optional<std::int64_t>> PgReaderSnapshot::ReadAttemptCreated(
    TrialId trial_id, std::int32_t attempt) {
  STEPWELL_ASSIGN_OR_RETURN(const PgResult result,
                            link_.RunOne(ReadQuery::kTrial, sql::kReadAttemptCreated,
                                         {Value(trial_id), attempt}, ReadPlan::kOnce));
  if (result.row_count() == 0) return std::nullopt;
  return result.TimestampUs(0, 0);
}

absl::StatusOr<std::vector<Series>> PgReaderSnapshot::ListSeries(TrialId trial_id,
                                                                 const SeriesSelection& selection,
                                                                 SeriesNo after,
                                                                 std::int32_t limit) {
  std::vector<std::string> names;
  std::vector<std::string> values;
  for (const auto& [name, value] : selection.labels) {
    names.push_back(name);
    values.push_back(value);
  }
  STEPWELL_ASSIGN_OR_RETURN(
      const PgResult result,
      link_.RunOne(
          ReadQuery::kSeries, sql::kListSeries,
          {Value(trial_id), selection.metric_group, selection.name, PgArray(names), PgArray(values),
           PgArray(selection.series_nos), Value(after), std::int64_t{limit}}));
  std::vector<Series> series;
  for (int row = 0; row < result.row_count(); ++row) series.push_back(SeriesAt(result, row));
  return series;
}

absl::StatusOr<std::shared_ptr<const std::vector<Series>>> PgReaderSnapshot::ReadAllSeries(
    TrialId trial_id, std::int32_t series_count, const ListRoom& room) {
  const auto wanted = static_cast<std::size_t>(series_count);
  const PgReadMemory::AllSeries known = memory_.SeriesOf(trial_id);
  if (known != nullptr && known->size() == wanted) return known;
  if (memory_.HasTooLargeSeries(trial_id)) return nullptr;
  absl::Cleanup give_back = [&] { room(0).IgnoreError(); };
  // More than there are: somebody's newer snapshot has noted them already.
  const bool is_newest = known == nullptr || known->size() < wanted;
  STEPWELL_ASSIGN_OR_RETURN(PgReadMemory::AllSeries read,
                            ReadSeriesBeyond(trial_id, wanted, known, room));
  if (read == nullptr) return nullptr;
  const bool is_dense =
      read->size() == wanted && (wanted == 0 || Value(read->back().series_no) == series_count);
  if (is_dense && is_newest) {
    auto kept = memory_.NoteSeries(trial_id, read, link_.memory_age());
    if (kept != nullptr) return kept;
  }
  std::move(give_back).Cancel();
  return read;
}

// Those of `known`, and what comes after them.
absl::StatusOr<PgReadMemory::AllSeries> PgReaderSnapshot::ReadSeriesBeyond(
    TrialId trial_id, std::size_t wanted, const PgReadMemory::AllSeries& known,
    const ListRoom& room) {
  std::vector<Series> all;
  if (known != nullptr) {
    STEPWELL_RETURN_IF_ERROR(room(BytesOf(*known)));
    all.assign(known->begin(), known->begin() + std::min(wanted, known->size()));
  }
  SeriesPieces pieces;
  std::size_t bytes = BytesOf(all);
  for (bool is_last = all.size() >= wanted; !is_last;) {
    const auto left = static_cast<std::int32_t>(wanted - all.size());
    const std::int32_t asked = std::min(left, pieces.count());
    STEPWELL_RETURN_IF_ERROR(
        room(bytes + pieces.BytesExpected(asked) * SeriesPieces::kWhileItIsRead));
    const SeriesNo after = all.empty() ? SeriesNo{0} : all.back().series_no;
    STEPWELL_ASSIGN_OR_RETURN(std::vector<Series> more, ListSeries(trial_id, {}, after, asked));
    is_last = asked == left || static_cast<std::int32_t>(more.size()) < asked;
    const std::size_t more_bytes = BytesOf(more);
    pieces.Note(more.size(), more_bytes);
    bytes += more_bytes;
    if (bytes > memory_.series_bytes_max()) {
      memory_.NoteTooLargeSeries(trial_id, link_.memory_age());
      return nullptr;
    }
    std::move(more.begin(), more.end(), std::back_inserter(all));
  }
  STEPWELL_RETURN_IF_ERROR(room(bytes));
  return std::make_shared<const std::vector<Series>>(std::move(all));
}

absl::StatusOr<GapList> PgReaderSnapshot::ReadGaps(TrialId trial_id, const GapFilter& filter) {
  STEPWELL_ASSIGN_OR_RETURN(const TrialBook* const known, KnownBookOf(trial_id));
  // The book has those of GapFilter{}.
  if (known != nullptr && filter == GapFilter{}) return known->gaps;
  const PgReadLink::Ticket asked = AskGaps(trial_id, filter);
  if (!gap_sums_.contains(trial_id)) STEPWELL_RETURN_IF_ERROR(ReadTrial(trial_id).status());
  STEPWELL_ASSIGN_OR_RETURN(const PgResult result, link_.Take(asked));
  const GapSums& sums = gap_sums_[trial_id];
  GapList list;
  list.missing_sample_count = sums.missing_sample_count;
  list.samples_missing = sums.samples_missing;
  list.truncated = result.row_count() > filter.limit;
  for (int row = 0; row < std::min(result.row_count(), filter.limit); ++row) {
    list.gaps.push_back(GapAt(result, row));
  }
  return list;
}

absl::StatusOr<std::vector<UsageRecord>> PgReaderSnapshot::ReadUsage(TrialId trial_id) {
  STEPWELL_ASSIGN_OR_RETURN(const PgReadMemory::Usage usage, UsageOf(trial_id));
  return *usage;
}

absl::StatusOr<PgReadMemory::Usage> PgReaderSnapshot::UsageOf(TrialId trial_id) {
  STEPWELL_RETURN_IF_ERROR(KnownBookOf(trial_id).status());
  const auto known = usage_.find(trial_id);
  if (known != usage_.end()) return known->second;
  STEPWELL_ASSIGN_OR_RETURN(const PgResult result, link_.Take(AskUsage(trial_id)));
  std::vector<UsageRecord> usage;
  for (int row = 0; row < result.row_count(); ++row) {
    UsageRecord line;
    line.received_day = result.DateDays(row, 0);
    line.keep_class = static_cast<std::int16_t>(result.Int32(row, 1));
    line.metric_group = std::string(result.Text(row, 2));
    line.row_count = result.Int64(row, 3);
    line.sample_count = result.Int64(row, 4);
    line.byte_count = result.Int64(row, 5);
    line.first_time_us = result.Int64(row, 6);
    line.last_time_us = result.Int64(row, 7);
    line.has_rollups = result.Bool(row, 8);
    line.rollup_byte_count = result.Int64(row, 9);
    line.removed_sample_count = result.Int64(row, 10);
    usage.push_back(std::move(line));
  }
  const PgReadMemory::Usage read =
      std::make_shared<const std::vector<UsageRecord>>(std::move(usage));
  usage_[trial_id] = read;
  memory_.NoteUsage(trial_id, read, link_.memory_age());
  return read;
}

}  // namespace stepwell
