#include "server/trial_view.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/status_macros.h"
#include "server/completeness.h"
#include "server/query_range.h"
#include "server/query_wire.h"
#include "server/series_choice.h"
#include "server/series_group.h"
#include "server/series_reading.h"

namespace stepwell {
namespace {

// How long a read waits for its trial's journal to be replayed, and how often it looks.
constexpr absl::Duration kReplayPatience = absl::Seconds(20);
constexpr absl::Duration kReplayPoll = absl::Milliseconds(20);
// Trials with more are asked for what is chosen of them.
constexpr std::int32_t kSeriesRemembered = 10'000;

// Of a page of series, as they lie in memory: well below what gRPC's clients take by default.
constexpr std::size_t kPageBytes = 2 << 20;
// The list, the answer, and the answer as it is sent.
constexpr std::int64_t kPageCopies = 3;

std::vector<const Series*> ChosenOf(const std::vector<Series>& all,
                                    const std::vector<SeriesSelection>& selections) {
  std::vector<const Series*> found;
  for (const Series& series : all) {
    const auto chosen = [&](const SeriesSelection& selection) {
      return Matches(selection, series);
    };
    if (selections.empty() || std::any_of(selections.begin(), selections.end(), chosen)) {
      found.push_back(&series);
    }
  }
  return found;
}

std::int64_t OwnerEpoch(const QuerySources& sources) {
  return sources.owner_epoch == nullptr ? 0 : sources.owner_epoch();
}

constexpr absl::Duration kBulkPoll = absl::Milliseconds(100);

HeadsPin PinReplayed(const QuerySources& sources, TrialId trial_id, SteadyTime patience,
                     const ReadCall& call) {
  const auto must_wait = [&](const HeadsPin& pin) {
    return pin.recovering() && !(sources.stands_by && sources.stands_by()) &&
           !patience.HasPassed() && !call.cancelled();
  };
  HeadsPin pin = sources.heads.Pin(trial_id);
  if (!must_wait(pin)) return pin;
  call.rest([&] {
    while (must_wait(sources.heads.Pin(trial_id))) absl::SleepFor(kReplayPoll);
  });
  return sources.heads.Pin(trial_id);
}

}  // namespace

absl::Status AwaitBulk(const QuerySources& sources, TrialId trial_id, const ReadCall& call) {
  bool is_over = sources.heads.AwaitBulk(trial_id, absl::ZeroDuration());
  if (is_over) return absl::OkStatus();
  call.rest([&] {
    while (!is_over && !call.deadline.HasPassed() && !call.cancelled()) {
      is_over = sources.heads.AwaitBulk(trial_id, kBulkPoll);
    }
  });
  if (is_over) return absl::OkStatus();
  return absl::UnavailableError(
      "the trial's newest samples are on their way into the database; come again");
}

absl::StatusOr<std::unique_ptr<TrialView>> TrialView::Open(const QuerySources& sources,
                                                           const v1::TrialRef& ref_untrusted,
                                                           const ReadCall& call,
                                                           const GapFilter& gaps, Book book) {
  STEPWELL_ASSIGN_OR_RETURN(const TrialSelector selector, CheckTrialRef(ref_untrusted));
  if (const auto known = sources.store.KnownTrial(selector, call.readable_projects)) {
    auto views = OpenFound(sources, {*known}, call, gaps, book);
    if (views.ok()) return std::move(views->front());
    if (!absl::IsNotFound(views.status())) return views.status();
  }
  STEPWELL_ASSIGN_OR_RETURN(
      const TrialId trial_id,
      sources.store.FindTrial(selector, call.readable_projects, call.deadline));
  STEPWELL_ASSIGN_OR_RETURN(auto views, OpenFound(sources, {trial_id}, call, gaps));
  return std::move(views.front());
}

absl::StatusOr<std::vector<std::unique_ptr<TrialView>>> TrialView::OpenAll(
    const QuerySources& sources, const google::protobuf::RepeatedPtrField<v1::TrialRef>& refs,
    const ReadCall& call) {
  std::vector<TrialSelector> selectors;
  for (const v1::TrialRef& ref_untrusted : refs) {
    const std::string field = absl::StrCat("trials[", selectors.size(), "]");
    STEPWELL_ASSIGN_OR_RETURN(selectors.emplace_back(), CheckTrialRef(ref_untrusted, field));
  }
  std::vector<TrialId> trial_ids;
  for (const TrialSelector& selector : selectors) {
    const std::string field = absl::StrCat("trials[", trial_ids.size(), "]");
    const absl::StatusOr<TrialId> found =
        sources.store.FindTrial(selector, call.readable_projects, call.deadline);
    if (!found.ok()) return Annotate(found.status(), field);
    const auto first = std::find(trial_ids.begin(), trial_ids.end(), *found);
    if (first != trial_ids.end()) {
      return absl::InvalidArgumentError(absl::StrCat(field, " is trial ", Value(*found),
                                                     ", as trials[", first - trial_ids.begin(),
                                                     "] is; allowed: each trial once"));
    }
    trial_ids.push_back(*found);
  }
  return OpenFound(sources, trial_ids, call);
}

// Heads first: what a fold moves before the snapshot is then in both, and told apart by fold number.
absl::StatusOr<std::vector<std::unique_ptr<TrialView>>> TrialView::OpenFound(
    const QuerySources& sources, const std::vector<TrialId>& trial_ids, const ReadCall& call,
    const GapFilter& gaps, Book book) {
  const SteadyTime patience =
      std::min(SteadyTime::Now() + kReplayPatience, call.deadline - absl::Seconds(1));
  std::vector<std::unique_ptr<TrialView>> views;
  for (const TrialId trial_id : trial_ids) {
    STEPWELL_RETURN_IF_ERROR(AwaitBulk(sources, trial_id, call));
    views.emplace_back(new TrialView(sources, PinReplayed(sources, trial_id, patience, call)));
  }
  if (book == Book::kRemembered) {
    STEPWELL_ASSIGN_OR_RETURN(const bool remembered,
                              views.front()->OpenRemembered(trial_ids.front(), call));
    if (remembered) return views;
  }
  STEPWELL_ASSIGN_OR_RETURN(
      const std::shared_ptr<ReadSnapshot> snapshot,
      book == Book::kRead
          ? sources.store.OpenSnapshot(call.deadline)
          : sources.store.OpenToRemember(trial_ids.front(), OwnerEpoch(sources), call.deadline));
  snapshot->Heed(call.cancelled);
  for (const TrialId trial_id : trial_ids) snapshot->ExpectBook(trial_id, gaps);
  for (std::size_t i = 0; i < views.size(); ++i) {
    views[i]->snapshot_ = snapshot;
    if (book != Book::kRead) views[i]->PresumeBook(trial_ids[i]);
    if (views[i]->is_presumed()) continue;
    STEPWELL_RETURN_IF_ERROR(views[i]->ReadBookkeeping(trial_ids[i]));
  }
  return views;
}

absl::Status TrialView::ReadBookkeeping(TrialId trial_id) {
  STEPWELL_ASSIGN_OR_RETURN(record_, snapshot_->ReadTrial(trial_id));
  STEPWELL_ASSIGN_OR_RETURN(writers_, snapshot_->ListWriters(trial_id));
  STEPWELL_ASSIGN_OR_RETURN(usage_, snapshot_->ReadUsage(trial_id));
  for (const WriterRecord& writer : writers_) attempts_[writer.writer_no] = writer.attempt;
  seen_ = sources_.liveness.Seen(trial_id);
  return absl::OkStatus();
}

void TrialView::PresumeBook(TrialId trial_id) {
  std::optional<PresumedBook> book = snapshot_->PresumeBook(trial_id);
  if (!book) return;
  record_.trial_id = trial_id;
  record_.series_count = book->series_count;
  usage_ = std::move(book->usage);
  is_presumed_ = true;
}

absl::StatusOr<bool> TrialView::OpenRemembered(TrialId trial_id, const ReadCall& call) {
  // A journal that is being replayed is not all in heads, and nothing is lost by asking.
  if (pin_.recovering()) return false;
  snapshot_ = sources_.store.OpenRemembered(trial_id, OwnerEpoch(sources_), call.deadline);
  if (snapshot_ == nullptr) return false;
  snapshot_->Heed(call.cancelled);
  STEPWELL_RETURN_IF_ERROR(ReadBookkeeping(trial_id));
  is_presumed_ = is_remembered_ = true;
  return true;
}

absl::StatusOr<bool> TrialView::ConfirmBook() {
  // Each time: what memory holds is looked up as it is asked for, also after an earlier confirmation.
  if (is_remembered_) return snapshot_->ConfirmBook(trial_id());
  if (!std::exchange(is_presumed_, false)) return true;
  const std::int32_t series_count = record_.series_count;
  STEPWELL_RETURN_IF_ERROR(ReadBookkeeping(trial_id()));
  STEPWELL_ASSIGN_OR_RETURN(const bool held, snapshot_->ConfirmBook(trial_id()));
  return held && record_.series_count == series_count;
}

std::int64_t TrialView::HeadSampleCount() const { return SamplesUnfolded(pin_.chunks(), writers_); }

v1::Trial TrialView::Trial() const { return LiveTrial(record_, pin_.chunks(), writers_); }

std::int32_t TrialView::AttemptOf(WriterNo writer_no) const {
  const auto found = attempts_.find(writer_no);
  return found == attempts_.end() ? 0 : found->second;
}

std::int32_t TrialView::NewestAttempt() const {
  std::int32_t newest = 0;
  std::int32_t newest_with_rank = 0;
  for (const WriterRecord& writer : writers_) {
    newest = std::max(newest, writer.attempt);
    if (writer.rank) newest_with_rank = std::max(newest_with_rank, writer.attempt);
  }
  return newest_with_rank > 0 ? newest_with_rank : newest;
}

absl::StatusOr<v1::Completeness> TrialView::Completeness(const std::string& metric_group,
                                                         std::int64_t first_time_us,
                                                         std::int64_t last_time_us) {
  STEPWELL_ASSIGN_OR_RETURN(const GapList gaps,
                            snapshot_->ReadGaps(trial_id(), {.first_time_us = first_time_us,
                                                             .last_time_us = last_time_us}));
  return MakeCompleteness({.usage = usage_,
                           .gaps = gaps,
                           .writers = writers_,
                           .seen = seen_,
                           .head_sample_count = HeadSampleCount(),
                           .head_newest_time_us = NewestTime(pin_.chunks()),
                           .recovering = pin_.recovering(),
                           .metric_group = metric_group,
                           .now_us = absl::ToUnixMicros(sources_.clock.Now()),
                           .now = SteadyTime::Now(sources_.clock)});
}

absl::StatusOr<std::vector<Series>> TrialView::FindSeries(
    const std::vector<SeriesSelection>& selections) {
  STEPWELL_ASSIGN_OR_RETURN(const auto remembered, ReadRemembered());
  if (remembered != nullptr) return CopyOf(ChosenOf(*remembered, selections));
  std::map<SeriesNo, Series> found;
  for (const SeriesSelection& selection :
       selections.empty() ? std::vector<SeriesSelection>(1) : selections) {
    SeriesReading reading(*snapshot_, trial_id(), sources_.series_room, series_place_);
    SeriesNo after{0};
    for (bool is_last = false; !is_last;) {
      STEPWELL_ASSIGN_OR_RETURN(SeriesReading::Piece piece,
                                reading.Next(selection, after, kReadSeriesMax));
      is_last = piece.is_last;
      if (!piece.series.empty()) after = piece.series.back().series_no;
      for (Series& series : piece.series) found.emplace(series.series_no, std::move(series));
      if (found.size() > kReadSeriesMax) {
        return absl::ResourceExhaustedError(
            absl::StrCat("over ", kReadSeriesMax, " series are chosen, limit ", kReadSeriesMax,
                         ": narrow the selector by metric_group, name or labels"));
      }
    }
  }
  std::vector<Series> all;
  all.reserve(found.size());
  for (auto& [series_no, series] : found) all.push_back(std::move(series));
  return all;
}

absl::StatusOr<std::vector<Series>> TrialView::CopyOf(const std::vector<const Series*>& series) {
  std::size_t bytes = 0;
  for (const Series* each : series) bytes += BytesOf(*each);
  SeriesReading reading(*snapshot_, trial_id(), sources_.series_room, series_place_);
  STEPWELL_RETURN_IF_ERROR(reading.Reserve(bytes));
  std::vector<Series> copies;
  copies.reserve(series.size());
  for (const Series* each : series) copies.push_back(*each);
  return copies;
}

absl::StatusOr<TrialView::SeriesPage> TrialView::ReadSeriesPage(const SeriesSelection& selection,
                                                                SeriesNo after,
                                                                std::int32_t count) {
  SeriesReading reading(*snapshot_, trial_id(), sources_.series_room, series_place_, kPageCopies);
  SeriesPage page;
  // One more than asked for, or the last of one that is full, tells that there are more.
  const auto wanted = static_cast<std::size_t>(count) + 1;
  std::size_t bytes = 0;
  bool is_last = false;
  while (!is_last && page.series.size() < wanted && bytes < kPageBytes) {
    STEPWELL_ASSIGN_OR_RETURN(
        SeriesReading::Piece piece,
        reading.Next(selection, after, static_cast<std::int32_t>(wanted - page.series.size())));
    is_last = piece.is_last;
    if (!piece.series.empty()) after = piece.series.back().series_no;
    bytes += piece.bytes;
    std::move(piece.series.begin(), piece.series.end(), std::back_inserter(page.series));
  }
  page.has_more = page.series.size() > 1 && (page.series.size() == wanted || !is_last);
  if (page.has_more) page.series.pop_back();
  return page;
}

absl::StatusOr<std::shared_ptr<const std::vector<Series>>> TrialView::ReadRemembered() {
  if (record_.series_count > kSeriesRemembered) return nullptr;
  auto all = snapshot_->ReadAllSeries(
      trial_id(), record_.series_count,
      SeriesReading::RoomFor(trial_id(), sources_.series_room, series_place_));
  // There may be room for the few that are chosen of them.
  if (absl::IsResourceExhausted(all.status())) return nullptr;
  return all;
}

absl::StatusOr<std::vector<std::int32_t>> TrialView::CountSeries(
    const std::vector<std::string>& metric_groups) {
  STEPWELL_ASSIGN_OR_RETURN(const auto all, ReadRemembered());
  if (all == nullptr) {
    return std::vector<std::int32_t>(metric_groups.size(), record_.series_count);
  }
  return CountByGroup(*all, metric_groups);
}

std::vector<std::int32_t> NumbersOf(const std::vector<Series>& series) {
  std::vector<std::int32_t> numbers;
  numbers.reserve(series.size());
  for (const Series& one : series) numbers.push_back(Value(one.series_no));
  return numbers;
}

}  // namespace stepwell
