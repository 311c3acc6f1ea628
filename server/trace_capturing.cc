#include "server/trace_capturing.h"

#include <algorithm>
#include <random>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"
#include "base/log.h"
#include "base/status_macros.h"
#include "server/query_wire.h"
#include "server/rate_refusal.h"

namespace stepwell {
namespace {

constexpr std::int32_t kStepsDefault = 5;
constexpr std::int32_t kTimeoutDefault = 60;
constexpr std::int32_t kTimeoutMax = 600;
// Before a call looks whether its writers are still there.
constexpr absl::Duration kLookInterval = absl::Milliseconds(100);
// Who finds no place comes again after as long as a capture of some steps takes.
constexpr absl::Duration kPlacePatience = absl::Seconds(10);
// For what the database says at the begin.
constexpr absl::Duration kLookUpPatience = absl::Seconds(10);

absl::Status WithReason(absl::Status status, absl::string_view reason) {
  status.SetPayload("stepwell/reason", absl::Cord(reason));
  return status;
}

// Unguessable: an agent that answers an older one is not taken for this one's.
std::uint64_t NewNumber() {
  std::random_device random;
  const std::uint64_t number = std::uint64_t{random()} << 32 | random();
  return std::max<std::uint64_t>(number, 1);
}

// Why a rank that no stream holds open cannot be asked; `writers` are the trial's, by number.
CaptureTable::Rank Unasked(std::int32_t rank, const std::vector<WriterRecord>& writers) {
  const WriterRecord* newest = nullptr;
  for (const WriterRecord& writer : writers) {
    if (writer.rank == rank) newest = &writer;
  }
  CaptureTable::Rank unasked{.rank = rank};
  if (newest == nullptr) {
    unasked.reason = "UNKNOWN_RANK";
    unasked.message = absl::StrCat("the trial has no rank ", rank);
  } else if (newest->state != WriterState::kOpen) {
    unasked.reason = "WRITER_ENDED";
    unasked.message =
        absl::StrCat("the process ", newest->state == WriterState::kDied
                                         ? "ended without closing its recorder"
                                         : "ended, or its run was switched off or flushed");
  } else {
    unasked.reason = "NO_AGENT";
    unasked.message =
        absl::StrCat("no agent is connected for it; the last was on ",
                     newest->agent_id.empty() ? "a machine that gave no name" : newest->agent_id);
  }
  return unasked;
}

}  // namespace

MaybeComplaint CheckCapture(const v1::CaptureTraceRequest& request_untrusted, CaptureWish& wish) {
  const v1::CaptureTraceRequest& request = request_untrusted;
  auto trial = CheckTrialRef(request.trial());
  if (!trial.ok()) return Invalid("TRIAL_REF", std::string(trial.status().message()));
  if (request.ranks_size() > TraceCapturing::kRanksMax) {
    return Invalid("RANK_COUNT", absl::StrCat("ranks has ", request.ranks_size(),
                                              " entries; allowed: 0 (all that are open) ... ",
                                              TraceCapturing::kRanksMax));
  }
  wish.trial = *std::move(trial);
  wish.ranks.assign(request.ranks().begin(), request.ranks().end());
  std::sort(wish.ranks.begin(), wish.ranks.end());
  if (!wish.ranks.empty() && wish.ranks.front() < 0) {
    return Invalid("RANK_RANGE",
                   absl::StrCat("ranks has ", wish.ranks.front(), "; allowed: from 0"));
  }
  const auto twice = std::adjacent_find(wish.ranks.begin(), wish.ranks.end());
  if (twice != wish.ranks.end()) {
    return Invalid("RANK_TWICE",
                   absl::StrCat("ranks has ", *twice, " twice; allowed: each at most once"));
  }
  if (request.step_count() < 0 || request.step_count() > TraceCapturing::kStepsMax) {
    return Invalid("STEP_COUNT",
                   absl::StrCat("step_count is ", request.step_count(), "; allowed: 0 (",
                                kStepsDefault, "), 1 ... ", TraceCapturing::kStepsMax));
  }
  if (request.timeout_seconds() < 0 || request.timeout_seconds() > kTimeoutMax) {
    return Invalid("TIMEOUT_RANGE",
                   absl::StrCat("timeout_seconds is ", request.timeout_seconds(), "; allowed: 0 (",
                                kTimeoutDefault, "), 1 ... ", kTimeoutMax));
  }
  wish.native = request.native();
  wish.step_count = request.step_count() == 0 ? kStepsDefault : request.step_count();
  wish.timeout =
      absl::Seconds(request.timeout_seconds() == 0 ? kTimeoutDefault : request.timeout_seconds());
  return std::nullopt;
}

absl::Status TraceCapturing::Run(
    const CaptureWish& wish, const std::function<bool()>& is_asked,
    const std::function<absl::Status(const v1::CaptureTraceResponse&)>& send) {
  const SteadyTime look_up_by = SteadyTime::Now() + kLookUpPatience;
  STEPWELL_ASSIGN_OR_RETURN(const TrialId trial_id,
                            look_up_.find_trial(wish.trial, wish.projects, look_up_by));
  STEPWELL_ASSIGN_OR_RETURN(const std::vector<CaptureTable::Rank> ranks,
                            ChooseRanks(trial_id, wish, look_up_by));
  STEPWELL_ASSIGN_OR_RETURN(const std::shared_ptr<CaptureTable> table,
                            Begin(trial_id, wish, ranks));
  const absl::Cleanup end = [&] {
    absl::MutexLock lock(&mu_);
    under_way_.erase(trial_id);
  };
  return Conduct(trial_id, *table, wish, is_asked, send);
}

absl::StatusOr<std::vector<CaptureTable::Rank>> TraceCapturing::ChooseRanks(
    TrialId trial_id, const CaptureWish& wish, SteadyTime deadline) const {
  // Of two with one rank the newer one.
  std::map<std::int32_t, CaptureTable::Rank> open;
  std::map<std::int32_t, int> counts;
  for (const WriterDirector::OpenRank& each : director_.OpenRanks(trial_id)) {
    CaptureTable::Rank& rank = open[each.rank];
    rank = {.rank = each.rank, .writer_no = each.writer_no, .generation = each.generation};
    if (const int count = ++counts[each.rank]; count > 1) {
      rank.message =
          absl::StrCat("of ", count, " open processes with this rank the newest was asked");
    }
  }
  std::vector<CaptureTable::Rank> chosen;
  if (wish.ranks.empty()) {
    for (const auto& [rank, each] : open) chosen.push_back(each);
    if (chosen.empty()) {
      return WithReason(absl::FailedPreconditionError(
                            "no rank of the trial is open here: it has ended, or no agent that "
                            "serves it is connected"),
                        "NO_OPEN_RANK");
    }
    if (chosen.size() > kRanksMax) {
      return WithReason(absl::ResourceExhaustedError(absl::StrCat(
                            "ranks is empty and ", chosen.size(),
                            " ranks are open; name those that are wanted, at most ", kRanksMax)),
                        "RANK_COUNT");
    }
    return chosen;
  }
  std::optional<std::vector<WriterRecord>> writers;
  for (const std::int32_t rank : wish.ranks) {
    const auto found = open.find(rank);
    if (found != open.end()) {
      chosen.push_back(found->second);
      continue;
    }
    if (!writers) {
      STEPWELL_ASSIGN_OR_RETURN(writers, look_up_.list_writers(trial_id, deadline));
    }
    chosen.push_back(Unasked(rank, *writers));
  }
  return chosen;
}

absl::StatusOr<std::shared_ptr<CaptureTable>> TraceCapturing::Begin(
    TrialId trial_id, const CaptureWish& wish, const std::vector<CaptureTable::Rank>& ranks) {
  const auto table =
      std::make_shared<CaptureTable>(NewNumber(), wish.step_count, ranks, wish.native);
  absl::MutexLock lock(&mu_);
  if (under_way_.contains(trial_id)) {
    return WithReason(absl::FailedPreconditionError(
                          "another capture of the trial is under way; come again when it is over"),
                      "CAPTURE_UNDER_WAY");
  }
  if (under_way_.size() >= kCapturesMax) {
    return ComeAgain(absl::ResourceExhaustedError(absl::StrCat(
                         "captures of ", kCapturesMax,
                         " trials are under way, which is the limit; come again later")),
                     "CAPTURES_UNDER_WAY", kPlacePatience);
  }
  under_way_[trial_id] = table;
  return table;
}

absl::Status TraceCapturing::Conduct(
    TrialId trial_id, CaptureTable& table, const CaptureWish& wish,
    const std::function<bool()>& is_asked,
    const std::function<absl::Status(const v1::CaptureTraceResponse&)>& send) {
  const absl::Duration timeout = wish.timeout;
  const SteadyTime began = SteadyTime::Now();
  const absl::Duration patience =
      wish.native ? options_.native_answer_patience : options_.answer_patience;
  const SteadyTime answered_by = began + std::min(patience, timeout);
  const SteadyTime recorded_by = began + timeout;
  const SteadyTime stored_by = recorded_by + options_.upload_patience;
  v1::Capture asked;
  asked.set_capture(table.number());
  asked.set_timeout_ms(std::max<std::int64_t>(absl::ToInt64Milliseconds(timeout), 1));
  asked.set_native(wish.native);
  Direct(trial_id, table, v1::CAPTURE_STATE_ASKED, asked);
  log::Info("capture_began", {{"trial", Value(trial_id)}, {"steps", table.step_count()}});
  std::uint64_t version_sent = 0;
  absl::Status sent;
  while (true) {
    FailGone(trial_id, table);
    if (answered_by.HasPassed() && !table.In(v1::CAPTURE_STATE_ASKED).empty()) {
      v1::Capture late = asked;
      late.set_cancelled(true);
      Direct(trial_id, table, v1::CAPTURE_STATE_ASKED, late);
      FailLate(table, v1::CAPTURE_STATE_ASKED, "AGENT_SILENT",
               absl::StrCat("its agent has not answered within ",
                            absl::FormatDuration(answered_by - began),
                            ": it is hung, very busy, or older than captures"));
    }
    if (const auto first_batch = table.Decide()) {
      asked.set_first_batch(*first_batch);
      asked.set_step_count(table.step_count());
      Direct(trial_id, table, v1::CAPTURE_STATE_RECORDING, asked);
    }
    // Agents say themselves what they lack then; these did not.
    if ((recorded_by + options_.answer_patience).HasPassed()) {
      FailLate(table, v1::CAPTURE_STATE_RECORDING, "NO_STEPS",
               "the steps were not over in time, and its agent has not said more");
    }
    if (stored_by.HasPassed()) {
      FailLate(table, v1::CAPTURE_STATE_UPLOADING, "UPLOAD_MISSING",
               "it is recorded, and not uploaded yet: 'stepwell trace list' has it once it is");
      table.FailNative(v1::CAPTURE_STATE_RECORDING, "PROFILE_MISSING",
                       "neither its process nor its agent has said more of it, which may be of a "
                       "version before native "
                       "captures; 'stepwell trace list' has it once it is uploaded");
      table.FailNative(
          v1::CAPTURE_STATE_UPLOADING, "UPLOAD_MISSING",
          "it is handed over, and not uploaded yet: 'stepwell trace list' has it once it is");
    }
    CaptureTable::Shown shown = table.Show();
    if (shown.version != version_sent) {
      version_sent = shown.version;
      shown.answer.set_trial_id(Value(trial_id));
      sent = send(shown.answer);
      if (shown.answer.is_over() || !sent.ok()) break;
      continue;
    }
    if (!is_asked()) {
      sent = absl::CancelledError("nobody waits for the capture any more");
      break;
    }
    table.AwaitChange(version_sent, SteadyTime::Now() + kLookInterval);
  }
  // Those that were told their steps go on: their traces come to the list.
  if (!table.Show().answer.has_first_batch()) {
    asked.set_cancelled(true);
    Direct(trial_id, table, v1::CAPTURE_STATE_ASKED, asked);
    Direct(trial_id, table, v1::CAPTURE_STATE_RECORDING, asked);
  }
  log::Info("capture_over",
            {{"trial", Value(trial_id)}, {"stored", table.In(v1::CAPTURE_STATE_STORED).size()}});
  return sent;
}

void TraceCapturing::Direct(TrialId trial_id, CaptureTable& table, v1::CaptureState state,
                            const v1::Capture& asked) {
  for (const CaptureTable::Writer& writer : table.In(state)) {
    if (director_.Capture(trial_id, writer.writer_no, writer.generation, asked)) continue;
    table.Fail(writer.writer_no, v1::CAPTURE_STATE_RECORDING, "STREAM_ENDED",
               "the connection to its agent ended, or the process did");
  }
}

// Whose stream ended without a word; a trace that is recorded comes by another way.
void TraceCapturing::FailGone(TrialId trial_id, CaptureTable& table) const {
  for (const v1::CaptureState state : {v1::CAPTURE_STATE_ASKED, v1::CAPTURE_STATE_RECORDING}) {
    for (const CaptureTable::Writer& writer : table.In(state)) {
      if (director_.IsOpen(trial_id, writer.writer_no, writer.generation)) continue;
      table.Fail(writer.writer_no, v1::CAPTURE_STATE_RECORDING, "STREAM_ENDED",
                 "the connection to its agent ended, or the process did, while it was captured; "
                 "where the agent records on, 'stepwell trace list' has it later");
    }
  }
  // Whose own trace has come further already, or failed.
  for (const CaptureTable::Writer& writer : table.NativeIn(v1::CAPTURE_STATE_RECORDING)) {
    if (director_.IsOpen(trial_id, writer.writer_no, writer.generation)) continue;
    table.FailNative(
        writer.writer_no, v1::CAPTURE_STATE_RECORDING, "STREAM_ENDED",
        "the connection to its agent ended, or the process did, before its profile was "
        "handed over; where it still is, 'stepwell trace list' has it later");
  }
}

void TraceCapturing::FailLate(CaptureTable& table, v1::CaptureState state,
                              const std::string& reason, const std::string& message) {
  for (const CaptureTable::Writer& writer : table.In(state)) {
    table.Fail(writer.writer_no, state, reason, message);
  }
}

std::shared_ptr<CaptureTable> TraceCapturing::Find(TrialId trial_id) const {
  absl::MutexLock lock(&mu_);
  const auto found = under_way_.find(trial_id);
  return found == under_way_.end() ? nullptr : found->second;
}

void TraceCapturing::Reported(TrialId trial_id, WriterNo writer_no, std::uint64_t generation,
                              const v1::CaptureReport& report) {
  if (const auto table = Find(trial_id)) table->Reported(writer_no, generation, report);
}

void TraceCapturing::Uploaded(TrialId trial_id, const std::string& name, std::int32_t trace_no) {
  if (const auto table = Find(trial_id)) table->Uploaded(name, trace_no);
}

void TraceCapturing::NotUploaded(const TrialSelector& trial, const std::string& name,
                                 const absl::Status& why) {
  {
    absl::MutexLock lock(&mu_);
    if (under_way_.empty()) return;
  }
  // Nobody is told of it: whoever asked for the capture hears why nothing comes.
  const auto trial_id =
      look_up_.find_trial(trial, kAllProjects, SteadyTime::Now() + kLookUpPatience);
  if (!trial_id.ok()) return;
  if (const auto table = Find(*trial_id)) table->NotUploaded(name, why);
}

}  // namespace stepwell
