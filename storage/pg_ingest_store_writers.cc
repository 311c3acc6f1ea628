// What PgIngestStore does for streams beside commits: opens writers, and numbers their series. Ten thousand agents come
// back at once, and their writers are of few trials: each transaction holds its trial's row until it is on the disk, so
// that those of one trial come one after the other. Whoever waits for one goes into the next together.
#include <algorithm>
#include <utility>

#include "absl/time/clock.h"
#include "base/status_macros.h"
#include "base/steady_time.h"
#include "storage/open_rules.h"
#include "storage/pg_book_change.h"
#include "storage/pg_ingest_store.h"
#include "storage/pg_series_catalog.h"
#include "storage/pg_trial_opener.h"

namespace stepwell {
namespace {

// Of a transaction: some milliseconds, and few enough that what an Open tells of rejections stays some megabytes.
constexpr std::size_t kOpensMax = 100;
// Definitions up to so many are found, or created, beside others; more of them wait for their turn.
constexpr std::size_t kFewSeries = 100;
// Of one turn and transaction: some 30 ms, so that turns are short, and one fdatasync for many.
constexpr std::size_t kSeriesPerTurn = 1000;
// Hundreds of turns of other trials.
constexpr absl::Duration kManySeriesPatience = absl::Minutes(1);

// What the database, or a rule, says of the data: it may be of one call alone, and the others are to be done.
bool IsOfData(const absl::Status& status) { return absl::IsInvalidArgument(status); }

std::size_t CountRefused(const std::vector<SeriesNo>& numbers) {
  return static_cast<std::size_t>(std::count(numbers.begin(), numbers.end(), SeriesNo{}));
}

// Or why nothing was changed.
absl::StatusOr<TrialId> ChangedTrial(
    const absl::StatusOr<std::vector<absl::StatusOr<OpenedWriter>>>& opened) {
  if (!opened.ok()) return opened.status();
  for (const absl::StatusOr<OpenedWriter>& each : *opened) {
    if (each.ok()) return each->trial_id;
  }
  return opened->front().status();
}

}  // namespace

struct PgIngestStore::OpenCall {
  const OpenWriterRequest* request;
  absl::StatusOr<OpenedWriter> opened = absl::UnknownError("open writer: not done");
};

struct PgIngestStore::SeriesCall {
  absl::Span<const SeriesDefinition> definitions;
  int series_max = 0;
  absl::StatusOr<std::vector<SeriesNo>> numbers = absl::UnknownError("series: not done");
  std::int64_t created_count = 0;
};

// Of one trial; a writer that two streams open is opened twice.
PgIngestStore::Opens::Options PgIngestStore::OpensTogether() {
  return {.count_max = kOpensMax,
          .fits = [](std::span<OpenCall* const> group, const OpenCall& next) {
            const OpenWriterRequest& first = *group.front()->request;
            return next.request->owner_epoch == first.owner_epoch &&
                   next.request->trials == first.trials &&
                   std::none_of(group.begin(), group.end(), [&](const OpenCall* each) {
                     return each->request->writer == next.request->writer;
                   });
          }};
}

PgIngestStore::SeriesCalls::Options PgIngestStore::SeriesTogether() {
  return {.count_max = kSeriesPerTurn,
          .fits = [](std::span<SeriesCall* const> group, const SeriesCall& next) {
            std::size_t count = next.definitions.size();
            for (const SeriesCall* each : group) count += each->definitions.size();
            return next.series_max == group.front()->series_max && count <= kSeriesPerTurn;
          }};
}

absl::StatusOr<OpenedWriter> PgIngestStore::OpenWriter(const OpenWriterRequest& request) {
  STEPWELL_RETURN_IF_ERROR(Annotate(CheckOpen(request), "open writer"));
  const TrialSelector& trial = request.trial;
  OpenCall call{&request};
  opens_.Do({trial.trial_id, trial.project, trial.external_id}, call, [&](const auto& take) {
    const absl::StatusOr<PgShelf::Loan> connection = shelf_.Borrow();
    const std::vector<OpenCall*> group = take();
    if (connection.ok()) return OpenAll(**connection, group);
    for (OpenCall* each : group) each->opened = connection.status();
  });
  if (!call.opened.ok()) return Annotate(call.opened.status(), "open writer");
  return std::move(call.opened);
}

void PgIngestStore::OpenAll(PgConnection& connection, std::span<OpenCall* const> calls) {
  std::vector<const OpenWriterRequest*> requests;
  for (const OpenCall* call : calls) requests.push_back(call->request);
  // Which trial it is, the transaction finds out.
  if (book_changes_ != nullptr) book_changes_->Begin(BookScope::All());
  auto opened = OpenWritersInTransaction(connection, requests);
  if (book_changes_ != nullptr) {
    const absl::StatusOr<TrialId> changed = ChangedTrial(opened);
    book_changes_->End(BookScope::All(), ChangeOutcome(changed.status()),
                       changed.ok() ? BookScope::Of(*changed) : BookScope::All());
  }
  if (calls.size() > 1 && IsOfData(opened.status())) {
    OpenAll(connection, calls.first(calls.size() / 2));
    return OpenAll(connection, calls.subspan(calls.size() / 2));
  }
  for (std::size_t i = 0; i < calls.size(); ++i) {
    if (opened.ok()) {
      calls[i]->opened = std::move((*opened)[i]);
    } else {
      calls[i]->opened = opened.status();
    }
  }
}

absl::StatusOr<std::vector<SeriesNo>> PgIngestStore::FindOrCreateSeries(
    TrialId trial_id, absl::Span<const SeriesDefinition> definitions, int series_max,
    std::int64_t* created) {
  std::int64_t uncounted = 0;
  if (definitions.size() > kFewSeries) {
    return FindManySeries(trial_id, definitions, series_max,
                          created == nullptr ? uncounted : *created);
  }
  if (definitions.empty()) return std::vector<SeriesNo>();
  SeriesCall call{definitions, series_max};
  few_series_.Do(trial_id, call, [&](const auto& take) {
    // Whoever comes meanwhile goes along.
    absl::SleepFor(refusal_rest_.End(trial_id).Left());
    const absl::StatusOr<PgShelf::Loan> connection = shelf_.Borrow();
    const std::vector<SeriesCall*> group = take();
    if (connection.ok()) return FindSeriesOfAll(**connection, trial_id, group);
    for (SeriesCall* each : group) each->numbers = connection.status();
  });
  if (created != nullptr) *created += call.created_count;
  return std::move(call.numbers);
}

void PgIngestStore::FindSeriesOfAll(PgConnection& connection, TrialId trial_id,
                                    std::span<SeriesCall* const> calls) {
  std::vector<SeriesDefinition> all;
  for (const SeriesCall* call : calls) {
    if (calls.size() == 1) break;  // nothing to put together
    all.insert(all.end(), call->definitions.begin(), call->definitions.end());
  }
  const auto definitions = calls.size() == 1 ? calls.front()->definitions : absl::MakeSpan(all);
  std::vector<std::size_t> created;
  const auto numbers = ChangeBook(book_changes_.get(), BookScope::Of(trial_id), [&] {
    return FindOrCreateSeriesRows(connection, trial_id, definitions, calls.front()->series_max,
                                  created);
  });
  if (numbers.ok()) refusal_rest_.After(trial_id, CountRefused(*numbers), SteadyTime::Now());
  // None of them was created, then.
  if (calls.size() > 1 && IsOfData(numbers.status())) {
    FindSeriesOfAll(connection, trial_id, calls.first(calls.size() / 2));
    return FindSeriesOfAll(connection, trial_id, calls.subspan(calls.size() / 2));
  }
  std::size_t begin = 0;
  for (SeriesCall* call : calls) {
    const std::size_t end = begin + call->definitions.size();
    call->created_count += std::count_if(created.begin(), created.end(), [&](std::size_t place) {
      return place >= begin && place < end;
    });
    if (numbers.ok()) {
      call->numbers = std::vector<SeriesNo>(numbers->begin() + static_cast<std::ptrdiff_t>(begin),
                                            numbers->begin() + static_cast<std::ptrdiff_t>(end));
    } else {
      call->numbers = numbers.status();
    }
    begin = end;
  }
}

absl::StatusOr<std::vector<SeriesNo>> PgIngestStore::FindManySeries(
    TrialId trial_id, absl::Span<const SeriesDefinition> definitions, int series_max,
    std::int64_t& created) {
  std::vector<SeriesNo> numbers;
  while (numbers.size() < definitions.size()) {
    SeriesCall call{definitions.subspan(numbers.size(), kSeriesPerTurn), series_max};
    many_series_.Do(trial_id, call, [&](const auto& take) {
      absl::SleepFor(refusal_rest_.End(trial_id).Left());
      take();  // nobody goes along
      FindSeriesInTurn(trial_id, call);
    });
    created += call.created_count;
    STEPWELL_RETURN_IF_ERROR(call.numbers.status());
    numbers.insert(numbers.end(), call.numbers->begin(), call.numbers->end());
  }
  return numbers;
}

void PgIngestStore::FindSeriesInTurn(TrialId trial_id, SeriesCall& call) {
  const absl::StatusOr<PgShelf::Loan> connection = many_series_shelf_.Borrow(kManySeriesPatience);
  if (!connection.ok()) {
    call.numbers = connection.status();
    return;
  }
  absl::SleepFor(many_series_rest_.end().Left());
  const SteadyTime begin = SteadyTime::Now();
  std::vector<std::size_t> created;
  call.numbers = ChangeBook(book_changes_.get(), BookScope::Of(trial_id), [&] {
    return FindOrCreateSeriesRows(**connection, trial_id, call.definitions, call.series_max,
                                  created);
  });
  call.created_count = static_cast<std::int64_t>(created.size());
  if (!call.numbers.ok()) return;
  // Series that are known, as of a training that goes on, are looked up one turn after the other.
  const std::size_t refused_count = CountRefused(*call.numbers);
  const SteadyTime end = SteadyTime::Now();
  if (!created.empty() || refused_count > 0) many_series_rest_.After(begin, end);
  refusal_rest_.After(trial_id, refused_count, end);
}

}  // namespace stepwell
