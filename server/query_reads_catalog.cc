// The reads of QueryReads that touch no samples: trials, writers, series.
#include <map>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/time.h"
#include "base/status_macros.h"
#include "base/steady_time.h"
#include "server/completeness.h"
#include "server/page_token.h"
#include "server/query_reads.h"
#include "server/query_wire.h"

namespace stepwell {
namespace {

std::string Fingerprint(const SeriesSelection& selection) {
  std::string labels;
  for (const auto& [name, value] : selection.labels) {
    absl::StrAppend(&labels, name.size(), ":", name, value.size(), ":", value);
  }
  return absl::StrCat(selection.metric_group.size(), ":", selection.metric_group,
                      selection.name.size(), ":", selection.name, "|", labels, "|",
                      absl::StrJoin(selection.series_nos, ","));
}

absl::StatusOr<TrialPage> CheckListTrials(const v1::ListTrialsRequest& request_untrusted,
                                          const ProjectFilter& projects,
                                          std::uint32_t fingerprint) {
  TrialPage page{.readable_projects = projects};
  page.project = request_untrusted.project();
  page.name_contains = request_untrusted.name_contains();
  if (request_untrusted.state() != v1::TRIAL_STATE_UNSPECIFIED) {
    if (!v1::TrialState_IsValid(request_untrusted.state())) {
      return absl::InvalidArgumentError(absl::StrCat("state is ",
                                                     static_cast<int>(request_untrusted.state()),
                                                     "; allowed: a TrialState, 0 ... 4"));
    }
    page.state = static_cast<TrialState>(request_untrusted.state());
  }
  STEPWELL_ASSIGN_OR_RETURN(page.limit,
                            CheckSize("page_size", request_untrusted.page_size(), 100, 1000));
  if (!request_untrusted.page_token().empty()) {
    STEPWELL_ASSIGN_OR_RETURN(
        const std::vector<std::int64_t> place,
        ReadPageToken("page_token", request_untrusted.page_token(), fingerprint, 2));
    page.after = TrialPage::After{place[0], place[1]};
  }
  return page;
}

}  // namespace

absl::StatusOr<v1::ListTrialsResponse> QueryReads::ListTrials(
    const v1::ListTrialsRequest& request_untrusted, const ReadCall& call) const {
  const std::uint32_t fingerprint =
      QueryFingerprint({"trials", request_untrusted.project(), request_untrusted.name_contains(),
                        absl::StrCat(static_cast<int>(request_untrusted.state()))});
  STEPWELL_ASSIGN_OR_RETURN(
      TrialPage page, CheckListTrials(request_untrusted, call.readable_projects, fingerprint));
  // Pinned first: what a fold moves meanwhile is then in both, and told apart by its writer's mark.
  std::map<TrialId, std::vector<HeadChunkPtr>> chunks;
  const HeadsPin pin = sources_.heads.PinAll();
  for (const HeadChunkPtr& chunk : pin.chunks()) chunks[chunk->trial_id].push_back(chunk);
  STEPWELL_ASSIGN_OR_RETURN(const auto snapshot, sources_.store.OpenSnapshot(call.deadline));
  snapshot->Heed(call.cancelled);
  const std::int32_t page_size = page.limit;
  ++page.limit;  // one more tells whether there is a next page
  page.looks_max = sources_.trials_looked_at_max;
  STEPWELL_ASSIGN_OR_RETURN(TrialList list, snapshot->ListTrials(page));
  std::vector<TrialRecord>& trials = list.trials;
  v1::ListTrialsResponse response;
  std::optional<TrialPage::After> next = list.looked_up_to;
  if (static_cast<std::int32_t>(trials.size()) > page_size) {
    trials.pop_back();
    next = {trials.back().created_time_us, Value(trials.back().trial_id)};
  }
  v1::Completeness& completeness = *response.mutable_completeness();
  completeness.set_answered_time_us(absl::ToUnixMicros(sources_.clock.Now()));
  completeness.set_contiguous(true);
  for (const TrialRecord& record : trials) {
    std::vector<WriterRecord> writers;
    const std::vector<HeadChunkPtr>& unfolded = chunks[record.trial_id];
    if (!unfolded.empty()) {
      STEPWELL_ASSIGN_OR_RETURN(writers, snapshot->ListWriters(record.trial_id));
    }
    const v1::Trial& trial = *response.add_trials() = LiveTrial(record, unfolded, writers);
    AddTrial(record, trial, sources_.heads.Recovering(record.trial_id), completeness);
  }
  if (next) {
    response.set_next_page_token(
        MakePageToken(fingerprint, {next->created_time_us, next->trial_id}));
  }
  return response;
}

absl::StatusOr<v1::GetTrialResponse> QueryReads::GetTrial(
    const v1::GetTrialRequest& request_untrusted, const ReadCall& call) const {
  STEPWELL_ASSIGN_OR_RETURN(const auto view,
                            TrialView::Open(sources_, request_untrusted.trial(), call));
  v1::GetTrialResponse response;
  *response.mutable_trial() = view->Trial();
  std::vector<WriterRecord> writers = view->writers();
  RaiseCommitted(view->pin().chunks(), writers);
  const SteadyTime now = SteadyTime::Now();
  for (const WriterRecord& writer : writers) {
    const auto seen = view->seen().find(writer.writer_no);
    v1::Writer& wire = *response.add_writers() =
        ToWire(writer, seen == view->seen().end() ? WriterSeen() : seen->second);
    wire.set_state(WriterStateOf(writer, view->seen(), view->record().state, now));
  }
  STEPWELL_ASSIGN_OR_RETURN(*response.mutable_completeness(), view->Completeness(""));
  TrialProfiling profiling = view->record().profiling;
  const bool window_over = sources_.window_over(view->trial_id());
  profiling.on = profiling.on && !window_over;
  if (profiling.revision > 0 || window_over) *response.mutable_profiling() = ToWire(profiling);
  return response;
}

absl::StatusOr<v1::ListSeriesResponse> QueryReads::ListSeries(
    const v1::ListSeriesRequest& request_untrusted, const ReadCall& call) const {
  STEPWELL_ASSIGN_OR_RETURN(const SeriesSelection selection,
                            CheckSelector("selector", request_untrusted.selector()));
  STEPWELL_ASSIGN_OR_RETURN(const std::int32_t page_size,
                            CheckSize("page_size", request_untrusted.page_size(), 1000, 10'000));
  STEPWELL_ASSIGN_OR_RETURN(const auto view,
                            TrialView::Open(sources_, request_untrusted.trial(), call));
  const std::uint32_t fingerprint =
      QueryFingerprint({"series", absl::StrCat(Value(view->trial_id())), Fingerprint(selection)});
  SeriesNo after{0};
  if (!request_untrusted.page_token().empty()) {
    STEPWELL_ASSIGN_OR_RETURN(
        const std::vector<std::int64_t> place,
        ReadPageToken("page_token", request_untrusted.page_token(), fingerprint, 1));
    after = SeriesNo{static_cast<std::int32_t>(place[0])};
  }
  STEPWELL_ASSIGN_OR_RETURN(const TrialView::SeriesPage page,
                            view->ReadSeriesPage(selection, after, page_size));
  v1::ListSeriesResponse response;
  if (page.has_more) {
    response.set_next_page_token(MakePageToken(fingerprint, {Value(page.series.back().series_no)}));
  }
  for (const Series& one : page.series) *response.add_series() = ToWire(one);
  STEPWELL_ASSIGN_OR_RETURN(*response.mutable_completeness(),
                            view->Completeness(selection.metric_group));
  return response;
}

}  // namespace stepwell
