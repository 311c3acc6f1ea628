// What IngestStream does with Definitions: checks them, finds or creates their series.
#include "server/ingest_stream.h"

#include <cstddef>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "base/backoff.h"
#include "server/definition_check.h"
#include "server/ingest_answers.h"
#include "server/limits.h"
#include "server/named_gpus.h"

namespace stepwell {
namespace {

// As many as the store asks for in one turn.
constexpr std::size_t kSeriesAskedMax = 1000;

// The refs of series of GPUs, and which GPU each is of.
std::vector<std::pair<std::uint32_t, std::string>> GpuRefs(
    const std::vector<CheckedDefinition>& fresh) {
  std::vector<std::pair<std::uint32_t, std::string>> found;
  for (const CheckedDefinition& one : fresh) {
    if (one.definition.key.metric_group != kGpuMetricGroup) continue;
    for (const auto& [name, value] : one.definition.key.labels) {
      if (name == kDeviceLabel) found.emplace_back(one.number, value);
    }
  }
  return found;
}

}  // namespace

void IngestStream::HandleDefinitions(const pb::Definitions& definitions) {
  IngestSession* session = FindSession(definitions.writer(), definitions);
  if (session == nullptr) return;
  if (!AwaitBytes(definitions.writer(), *session, definitions.ByteSizeLong())) return;
  DefinitionResult result = CheckDefinitions(definitions, session->labels(), session->refs());
  RefusalSummary refusals;
  for (RefusedDefinition& refused : result.refused) {
    refusals.Add(refused.complaint);
    if (refused.number == 0 || session->refs().size() >= kSeriesPerWriterMax) continue;
    session->refs()[refused.number] = std::move(refused.ref);
  }
  session->refs().reserve(session->refs().size() + result.fresh.size());
  const auto gpu_refs = GpuRefs(result.fresh);
  if (!result.fresh.empty())
    Number(definitions.writer(), *session, std::move(result.fresh), refusals);
  NamedGpus gpus;
  for (const auto& [ref, gpu] : gpu_refs) {
    const auto known = session->refs().find(ref);
    if (known != session->refs().end() && known->second.refused_reason.empty()) gpus.Add(gpu);
  }
  context_.director.Named(session->trial_id(), session->writer_no(), session->generation(), gpus);
  // One per reason: a unary call has nobody to empty the board meanwhile.
  for (const Complaint& complaint : refusals.Take()) {
    PostRefused(definitions.writer(), complaint, false);
  }
}

absl::Status IngestStream::FindSeries(TrialId trial_id, Fresh& fresh, std::int64_t& created,
                                      std::vector<SeriesNo>& out) {
  // Lent: there are megabytes of them, and the database may be away for hours.
  std::vector<SeriesDefinition> wanted;
  wanted.reserve(fresh.size());
  for (CheckedDefinition& one : fresh) wanted.push_back(std::move(one.definition));
  const auto give_back = absl::MakeCleanup([&] {
    for (std::size_t i = 0; i < fresh.size(); ++i) fresh[i].definition = std::move(wanted[i]);
  });
  out.clear();
  Backoff backoff({.first = absl::Milliseconds(50), .longest = absl::Seconds(1)});
  while (out.size() < wanted.size()) {
    // By turns of the store, which may have others wait long: a stream that ends waits for the next one alone.
    if (ended()) return end_status();
    NoteWaiting();
    const auto part = absl::MakeConstSpan(wanted).subspan(out.size(), kSeriesAskedMax);
    const auto found =
        context_.store.FindOrCreateSeries(trial_id, part, kSeriesPerTrialMax, &created);
    if (found.ok()) {
      out.insert(out.end(), found->begin(), found->end());
      backoff.Reset();
      continue;
    }
    switch (found.status().code()) {
      case absl::StatusCode::kInvalidArgument:
      case absl::StatusCode::kResourceExhausted:
      case absl::StatusCode::kNotFound:
        return found.status();
      default:
        break;
    }
    // The database does not answer, or others keep it busy. Were the definitions refused now, the chunks
    // behind them would be lost as unknown refs: the stream waits instead, and its client with it. Whether
    // the database counts as down, which stops everybody's credit, the owner's renewals and commits say.
    const auto has_ended = [this]() ABSL_SHARED_LOCKS_REQUIRED(mu_) { return !end_status_.ok(); };
    absl::MutexLock lock(&mu_);
    if (mu_.AwaitWithTimeout(absl::Condition(&has_ended), backoff.NextDelay())) return end_status_;
  }
  return absl::OkStatus();
}

void IngestStream::Number(const std::string& writer, IngestSession& session, Fresh fresh,
                          RefusalSummary& refusals) {
  // How many of them are new is known behind the call: whoever made too many waits with the next.
  if (!AwaitAllowanceOf(writer, session, RateKind::kSeries, 0)) return;
  std::vector<SeriesNo> numbers;
  std::int64_t created = 0;
  const absl::Status status = FindSeries(session.trial_id(), fresh, created, numbers);
  if (created > 0 && context_.rates != nullptr) {
    context_.rates->Spend(RateKind::kSeries, {pace_.address, session.caller().get()},
                          static_cast<double>(created));
  }
  if (status.ok()) {
    const absl::Status full =
        absl::ResourceExhaustedError(absl::StrCat("trial ", Value(session.trial_id()), " has its ",
                                                  kSeriesPerTrialMax, " series, the limit"));
    for (std::size_t i = 0; i < fresh.size(); ++i) {
      if (numbers[i] == SeriesNo{}) {
        Refuse(session, std::move(fresh[i]), full, refusals);
        continue;
      }
      fresh[i].ref.series_no = numbers[i];
      session.refs()[fresh[i].number] = std::move(fresh[i].ref);
    }
    return;
  }
  if (ended()) return;
  if (fresh.size() > 1) {
    const auto middle = fresh.begin() + static_cast<std::ptrdiff_t>(fresh.size() / 2);
    Fresh rest(std::make_move_iterator(middle), std::make_move_iterator(fresh.end()));
    fresh.erase(middle, fresh.end());
    Number(writer, session, std::move(fresh), refusals);
    Number(writer, session, std::move(rest), refusals);
    return;
  }
  Refuse(session, std::move(fresh.front()), status, refusals);
}

void IngestStream::Refuse(IngestSession& session, CheckedDefinition fresh,
                          const absl::Status& status, RefusalSummary& refusals) {
  const char* const reason = SeriesReason(status.code());
  if (!refusals.CountAgain(reason)) refusals.Add(SeriesComplaint(status, fresh));
  fresh.ref.refused_reason = reason;
  session.refs()[fresh.number] = std::move(fresh.ref);
}

}  // namespace stepwell
