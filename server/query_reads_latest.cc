// The newest values. Those of a trial whose rows were asked once are in heads, and what is known of the
// trial beside them, names and how complete they are, is its book, which the reader remembers as long as
// nothing has changed it (storage/book_memory.h): such an answer costs the database one look at who
// owns it at most. Heads are pinned before the book is read, as before every snapshot: what a fold moves in between is
// in both, and told apart by its writer's mark. Values are looked up last, so that none is older than what
// the answer says of itself. A master that does not own the database, whether it knows that or not, has
// heads in which newer values may be missing: it takes all from rows and notes nothing.
#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "base/status_macros.h"
#include "server/completeness.h"
#include "server/query_reads.h"
#include "server/query_wire.h"
#include "server/series_choice.h"
#include "server/series_reading.h"
#include "storage/trial_book.h"

namespace stepwell {
namespace {

bool ChoosesAll(const SeriesSelection& selection) {
  return selection.metric_group.empty() && selection.name.empty() && selection.labels.empty() &&
         selection.series_nos.empty();
}

bool AnyRowsAsked(const Heads::LatestList& latest) {
  return std::any_of(latest.begin(), latest.end(),
                     [](const auto& each) { return each.second.rows_asked; });
}

// Of what is chosen of `all`; no value where some series' rows were not asked. Both are by number.
std::optional<LatestAnswer> AnswerOf(const std::vector<Series>& all,
                                     const Heads::LatestList& latest, const WireSeries& wire,
                                     const SeriesSelection& selection) {
  const bool chooses_all = ChoosesAll(selection);
  LatestAnswer answer;
  answer.Reserve(chooses_all ? all.size() : 0);
  auto held = latest.begin();
  for (const Series& series : all) {
    if (!chooses_all && !Matches(selection, series)) continue;
    while (held != latest.end() && held->first < series.series_no) ++held;
    const bool known =
        held != latest.end() && held->first == series.series_no && held->second.rows_asked;
    if (!known) return std::nullopt;
    if (held->second.has_sample()) answer.Add(wire.Of(series.series_no), held->second);
  }
  return answer;
}

}  // namespace

absl::StatusOr<Heads::Latest> QueryReads::ReadLatest(TrialView& view,
                                                     const std::vector<Series>& series,
                                                     HeadsHold heads_hold) const {
  const TrialId trial_id = view.trial_id();
  const bool may_be_old = heads_hold == HeadsHold::kPerhaps;
  Heads::Latest latest = may_be_old ? Heads::Latest() : sources_.heads.LatestOf(trial_id);
  std::vector<SeriesNo> missing;
  for (const Series& one : series) {
    const auto held = latest.find(one.series_no);
    if (held == latest.end() || !held->second.rows_asked) missing.push_back(one.series_no);
  }
  if (missing.empty()) return latest;
  std::vector<std::int32_t> numbers;
  for (const SeriesNo series_no : missing) numbers.push_back(Value(series_no));
  STEPWELL_ASSIGN_OR_RETURN(
      const std::vector<StoredLatest> rows,
      view.snapshot().ReadLatest(trial_id, numbers,
                                 may_be_old ? FoldNo{INT64_MAX} : view.pin().fold_no()));
  Heads::Latest stored;
  for (const StoredLatest& row : rows) {
    const LatestValue value{.time_us = row.time_us, .batch = row.batch, .value = row.value};
    stored.emplace(row.series_no, value);
    const auto [place, is_new] = latest.emplace(row.series_no, value);
    if (!is_new) place->second = Newer(place->second, value);
  }
  if (!may_be_old) sources_.heads.NoteLatest(trial_id, missing, stored);
  return latest;
}

absl::StatusOr<std::optional<LatestAnswer>> QueryReads::AnswerLatestFromMemory(
    TrialId trial_id, const SeriesSelection& selection, const ReadCall& call) const {
  const std::optional<LatestAnswer> unknown;
  const std::int64_t owner_epoch = sources_.owner_epoch == nullptr ? 0 : sources_.owner_epoch();
  if (owner_epoch == 0 || !AnyRowsAsked(sources_.heads.ListLatest(trial_id))) return unknown;
  STEPWELL_RETURN_IF_ERROR(AwaitBulk(sources_, trial_id, call));
  const HeadsPin pin = sources_.heads.Pin(trial_id);
  if (pin.recovering()) return unknown;
  MemoryRoom::Place place;
  const auto book =
      sources_.store.ReadBook(trial_id, owner_epoch, call.deadline,
                              SeriesReading::RoomFor(trial_id, sources_.series_room, place));
  // By its name it may be found again as another trial; and where there is no room for all of its series, there may be for those that
  // are chosen.
  if (absl::IsNotFound(book.status()) || absl::IsResourceExhausted(book.status())) return unknown;
  if (!book.ok()) return book.status();
  if (*book == nullptr) return unknown;
  const auto& series = (*book)->series;
  if (series == nullptr) return unknown;
  std::optional<LatestAnswer> answer = AnswerOf(*series, sources_.heads.ListLatest(trial_id),
                                                *names_->Of(trial_id, series), selection);
  if (!answer) return unknown;
  const std::vector<WriterRecord>& writers = (*book)->writers;
  answer->completeness() =
      MakeCompleteness({.usage = (*book)->usage,
                        .gaps = (*book)->gaps,
                        .writers = writers,
                        .seen = sources_.liveness.Seen(trial_id),
                        .head_sample_count = SamplesUnfolded(pin.chunks(), writers),
                        .head_newest_time_us = NewestTime(pin.chunks()),
                        .recovering = false,
                        .metric_group = selection.metric_group,
                        .now_us = absl::ToUnixMicros(sources_.clock.Now()),
                        .now = SteadyTime::Now(sources_.clock)});
  return answer;
}

absl::StatusOr<QueryReads::HeadsHold> QueryReads::WhetherHeadsHold(const ReadCall& call) const {
  if (sources_.owner_epoch == nullptr) return HeadsHold::kAllThatIsNewest;
  const std::int64_t owner_epoch = sources_.owner_epoch();
  if (owner_epoch == 0) return HeadsHold::kPerhaps;
  STEPWELL_ASSIGN_OR_RETURN(const bool is_owned,
                            sources_.store.IsOwnedUnder(owner_epoch, call.deadline));
  return is_owned ? HeadsHold::kAllThatIsNewest : HeadsHold::kPerhaps;
}

absl::StatusOr<LatestAnswer> QueryReads::AnswerLatestFromRows(TrialView& view,
                                                              const SeriesSelection& selection,
                                                              HeadsHold heads_hold) const {
  STEPWELL_ASSIGN_OR_RETURN(const std::vector<Series> series, view.FindSeries({selection}));
  STEPWELL_ASSIGN_OR_RETURN(const Heads::Latest latest, ReadLatest(view, series, heads_hold));
  LatestAnswer answer;
  for (const Series& one : series) {
    const auto found = latest.find(one.series_no);
    if (found == latest.end() || !found->second.has_sample()) continue;
    answer.Add(ToWire(one).SerializeAsString(), found->second);
  }
  STEPWELL_ASSIGN_OR_RETURN(answer.completeness(), view.Completeness(selection.metric_group));
  return answer;
}

absl::StatusOr<LatestAnswer> QueryReads::AnswerLatest(
    const v1::LatestValuesRequest& request_untrusted, const ReadCall& call) const {
  STEPWELL_ASSIGN_OR_RETURN(const SeriesSelection selection,
                            CheckSelector("selector", request_untrusted.selector()));
  STEPWELL_ASSIGN_OR_RETURN(const TrialSelector trial, CheckTrialRef(request_untrusted.trial()));
  if (const auto known = sources_.store.KnownTrial(trial, call.readable_projects)) {
    STEPWELL_ASSIGN_OR_RETURN(auto answer, AnswerLatestFromMemory(*known, selection, call));
    if (answer) return *std::move(answer);
  }
  STEPWELL_ASSIGN_OR_RETURN(const HeadsHold heads_hold, WhetherHeadsHold(call));
  STEPWELL_ASSIGN_OR_RETURN(const auto view,
                            TrialView::Open(sources_, request_untrusted.trial(), call));
  return AnswerLatestFromRows(*view, selection, heads_hold);
}

absl::StatusOr<v1::LatestValuesResponse> QueryReads::LatestValues(
    const v1::LatestValuesRequest& request_untrusted, const ReadCall& call) const {
  STEPWELL_ASSIGN_OR_RETURN(const LatestAnswer answer, AnswerLatest(request_untrusted, call));
  return answer.ToMessage();
}

}  // namespace stepwell
