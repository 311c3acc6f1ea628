// QueryReads::ReadSamples: raw samples, page after page, in bounded memory.
#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "server/head_samples.h"
#include "server/page_token.h"
#include "server/query_range.h"
#include "server/query_reads.h"
#include "server/query_wire.h"
#include "server/row_sequence.h"
#include "server/sample_cursor.h"
#include "server/sample_stream.h"

namespace stepwell {
namespace {

constexpr std::int32_t kPageSamplesDefault = 10'000;
constexpr std::int32_t kPageSamplesMax = 100'000;

// Everything but the cursor and the size of pages.
std::uint32_t Fingerprint(v1::ReadSamplesRequest request, TrialId trial_id) {
  std::string labels;
  const std::map<std::string, std::string> sorted(request.selector().labels().begin(),
                                                  request.selector().labels().end());
  for (const auto& [name, value] : sorted) {
    absl::StrAppend(&labels, name.size(), ":", name, value.size(), ":", value);
  }
  request.mutable_selector()->clear_labels();  // a map has no order of its own
  return QueryFingerprint({"samples", absl::StrCat(Value(trial_id)), labels,
                           request.selector().SerializeAsString(),
                           request.time_range().SerializeAsString()});
}

// Reads that go on at `cursor`: what is left of its series, then the series after it.
std::vector<RowFilter> FiltersFrom(const RowFilter& filter, const SampleCursor& cursor) {
  RowFilter within = filter;
  RowFilter after = filter;
  const auto split =
      std::lower_bound(filter.series_nos.begin(), filter.series_nos.end(), Value(cursor.series_no));
  const bool in_series = split != filter.series_nos.end() && *split == Value(cursor.series_no);
  after.series_nos.assign(in_series ? split + 1 : split, filter.series_nos.end());
  std::vector<RowFilter> filters = RowSequence::Slice(after);
  if (in_series) {
    within.series_nos = {*split};
    within.start_us = std::max(within.start_us, cursor.time_us);
    filters.insert(filters.begin(), std::move(within));
  }
  return filters;
}

// Tells which samples lie before the cursor.
class Resume {
 public:
  explicit Resume(const SampleCursor& cursor) : cursor_(cursor) {}

  bool Skips(SeriesNo series_no, std::int64_t time_us) {
    if (series_no != cursor_.series_no || time_us > cursor_.time_us) return false;
    if (time_us < cursor_.time_us) return true;
    return skipped_++ < cursor_.taken_count;
  }

 private:
  const SampleCursor cursor_;
  std::int64_t skipped_ = 0;
};

// Gathers samples into messages; holds one message back, so that the last one can be told.
class Pager {
 public:
  Pager(const std::vector<Series>& series, std::int32_t page_samples, SampleCursor cursor,
        std::uint32_t fingerprint, const QueryReads::SampleSink& sink)
      : page_samples_(page_samples), cursor_(cursor), fingerprint_(fingerprint), sink_(sink) {
    for (const Series& one : series) series_[one.series_no] = &one;
  }

  // False = nobody takes more.
  bool Add(const SeriesSample& at) {
    const bool other = page_.values_size() > 0 && page_.series().series_no() != Value(at.series_no);
    if ((other || page_.values_size() >= page_samples_) && !Send()) return false;
    if (page_.values_size() == 0) *page_.mutable_series() = ToWire(*series_.at(at.series_no));
    page_.add_timestamps_us(at.sample.time_us);
    page_.add_batches(at.sample.batch);
    page_.add_values(at.sample.value);
    page_.add_attempts(at.sample.attempt);
    cursor_.Pass(at.series_no, at.sample.time_us);
    return true;
  }

  bool Finish(v1::Completeness completeness) {
    *page_.mutable_completeness() = std::move(completeness);
    return Send();
  }

 private:
  bool Send() {
    const auto& attempts = page_.attempts();
    if (std::all_of(attempts.begin(), attempts.end(),
                    [&](std::int32_t attempt) { return attempt == attempts[0]; }) &&
        attempts.size() > 1) {
      page_.mutable_attempts()->Truncate(1);
    }
    page_.set_cursor(cursor_.ToText(fingerprint_));
    const bool taken = sink_(page_);
    page_.Clear();
    return taken;
  }

  std::map<SeriesNo, const Series*> series_;
  const std::int32_t page_samples_;
  SampleCursor cursor_;
  const std::uint32_t fingerprint_;
  const QueryReads::SampleSink& sink_;
  v1::ReadSamplesResponse page_;
};

}  // namespace

absl::Status QueryReads::ReadSamples(const v1::ReadSamplesRequest& request_untrusted,
                                     const ReadCall& call, const SampleSink& sink) const {
  STEPWELL_ASSIGN_OR_RETURN(const SeriesSelection selection,
                            CheckSelector("selector", request_untrusted.selector()));
  STEPWELL_ASSIGN_OR_RETURN(const TimeBounds bounds,
                            CheckTimeRange(request_untrusted.time_range()));
  STEPWELL_ASSIGN_OR_RETURN(const std::int32_t page_samples,
                            CheckSize("page_samples", request_untrusted.page_samples(),
                                      kPageSamplesDefault, kPageSamplesMax));
  STEPWELL_ASSIGN_OR_RETURN(
      const auto view,
      TrialView::Open(sources_, request_untrusted.trial(), call,
                      {.first_time_us = bounds.GapFirst(), .last_time_us = bounds.GapLast()}));
  const std::uint32_t fingerprint = Fingerprint(request_untrusted, view->trial_id());
  STEPWELL_ASSIGN_OR_RETURN(const SampleCursor cursor,
                            SampleCursor::FromText(request_untrusted.cursor(), fingerprint));
  STEPWELL_ASSIGN_OR_RETURN(std::vector<Series> series, view->FindSeries({selection}));
  std::erase_if(series, [&](const Series& one) { return one.series_no < cursor.series_no; });

  RowFilter filter;
  filter.trial_id = view->trial_id();
  filter.series_nos = NumbersOf(series);
  filter.start_us = bounds.start_us;
  filter.end_us = bounds.end_us;
  filter.fold_no_max = view->pin().fold_no();
  const HeadSamples heads(view->pin().chunks(), filter.series_nos);
  RowSequence rows(view->snapshot(), FiltersFrom(filter, cursor));
  SampleStream stream(rows, heads,
                      {.start_us = bounds.start_us,
                       .end_us = bounds.end_us,
                       .attempt_of = [&](WriterNo writer) { return view->AttemptOf(writer); }});
  Resume resume(cursor);
  Pager pager(series, page_samples, cursor, fingerprint, sink);
  for (;;) {
    STEPWELL_ASSIGN_OR_RETURN(const std::optional<SeriesSample> at, stream.Next());
    if (!at) break;
    if (resume.Skips(at->series_no, at->sample.time_us)) continue;
    if (!pager.Add(*at)) return absl::CancelledError("the client takes no more samples");
  }
  STEPWELL_ASSIGN_OR_RETURN(
      v1::Completeness completeness,
      view->Completeness(selection.metric_group, bounds.GapFirst(), bounds.GapLast()));
  if (!pager.Finish(std::move(completeness))) {
    return absl::CancelledError("the client takes no more samples");
  }
  return absl::OkStatus();
}

}  // namespace stepwell
