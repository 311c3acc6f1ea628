// What IngestStream does with its writers: they open, are heard of, and close.
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/log.h"
#include "server/ingest_answers.h"
#include "server/ingest_stream.h"
#include "server/limits.h"
#include "server/open_check.h"

namespace stepwell {
namespace {

// An ack is given once it is committed for good: a database that holds less was set back to an older copy without a
// word, or the client comes from another one. Its clients tell again what they still have, the rest as gaps.
void TellIfAckedIsNotHeld(const pb::Open& open, const OpenedWriter& opened) {
  if (open.acked_sequence() <= opened.committed_sequence) return;
  log::Warning("acked_not_held",
               {{"trial", Value(opened.trial_id)},
                {"writer_no", Value(opened.writer_no)},
                {"acked", open.acked_sequence()},
                {"committed", opened.committed_sequence},
                {"why", "the database was set back, or the writer is another's"}});
}

}  // namespace

bool IngestStream::HasPlaceFor(const Uuid& writer) {
  absl::MutexLock lock(&mu_);
  // A machine's stream outlives its trials: writers that are closed give up their places, and where that is not enough
  // those that were refused or went to another stream. What of theirs is not committed yet is only counted off.
  for (const auto over : {IngestSession::State::kClosed, IngestSession::State::kFenced}) {
    if (sessions_.contains(writer) || sessions_.size() < kWritersPerStreamMax) return true;
    absl::erase_if(sessions_, [over](const auto& entry) { return entry.second->state() == over; });
  }
  return sessions_.size() < kWritersPerStreamMax;
}

bool IngestStream::LivesInOtherTrial(const OpenWriterRequest& request) {
  absl::MutexLock lock(&mu_);
  const auto place = sessions_.find(request.writer);
  if (place == sessions_.end()) return false;
  const IngestSession::State state = place->second->state();
  const bool lives =
      state == IngestSession::State::kOpen || state == IngestSession::State::kClosing;
  return lives && place->second->IsOtherTrial(request.trial);
}

MaybeComplaint IngestStream::CheckToken(const std::string& token, const TrialSelector& trial,
                                        Caller& caller) const {
  caller = caller_;
  if (context_.access == nullptr || !context_.access->asks()) return std::nullopt;
  if (!token.empty()) {
    auto own = context_.access->IdentifyToken(token);
    if (context_.rates != nullptr) {
      own = context_.rates->JudgeToken(pace_.address, std::move(own));
    }
    if (!own.ok()) return TokenComplaint(own.status());
    caller = *std::move(own);
  }
  const absl::Status may = context_.access->CheckOpen(caller, trial);
  if (!may.ok()) return TokenComplaint(may);
  return std::nullopt;
}

bool IngestStream::LookAtToken(const std::string& writer, const std::string& token,
                               const TrialSelector& trial, Beyond beyond, Caller& caller) {
  // A stream that owes has none looked at: each may cost a question to the database.
  if (!AwaitAllowance(writer, RateKind::kOpens, caller_, 0, beyond)) return false;
  if (auto complaint = CheckToken(token, trial, caller)) {
    if (context_.rates != nullptr) {
      context_.rates->Spend(RateKind::kOpens, {pace_.address, caller_.get()}, 1);
    }
    // An agent keeps what it has, and shows the writer again later.
    const bool terminal =
        beyond == Beyond::kEndsSession && complaint->code != absl::StatusCode::kUnavailable;
    PostRefused(writer, *complaint, terminal);
    return false;
  }
  return AwaitAllowance(writer, RateKind::kOpens, caller, 1, beyond);
}

void IngestStream::HandleOpen(const pb::Open& open) {
  OpenWriterRequest request;
  MaybeComplaint complaint = CheckOpen(open, request);
  if (!complaint) {
    complaint = CheckAgentVersion(request.agent_version, context_.minimum_agent_version);
  }
  if (complaint) {
    if (!AwaitBytesInVain(open.writer(), open.ByteSizeLong())) return;
    return PostRefused(open.writer(), *complaint, true);
  }
  if (!AwaitControlBytes(open)) return;
  Caller caller;
  if (!LookAtToken(open.writer(), open.token(), request.trial, Beyond::kEndsSession, caller)) {
    return;
  }
  if (!HasPlaceFor(request.writer)) {
    return PostRefused(open.writer(),
                       {absl::StatusCode::kResourceExhausted, "WRITERS_PER_STREAM",
                        absl::StrCat("the stream holds ", kWritersPerStreamMax,
                                     " writers, which is the limit; use another stream")},
                       true);
  }
  if (LivesInOtherTrial(request)) {
    // Not terminal: the one that is open goes on.
    return PostRefused(open.writer(),
                       {absl::StatusCode::kAlreadyExists, "WRITER_IN_OTHER_TRIAL",
                        "open.writer is open on this stream in another trial, and messages name the"
                        " writer alone; close it first, or use another stream"},
                       false);
  }
  request.owner_epoch = epoch_;
  request.trials = IngestibleTrials(caller);
  const auto opened = context_.store.OpenWriter(request);
  if (!opened.ok()) {
    if (opened.status().code() == absl::StatusCode::kAborted) context_.state.ReportLost(epoch_);
    complaint = OpenComplaint(opened.status(), request);
    // What the client cannot mend by itself and time will not heal is terminal.
    const bool terminal = complaint->code != absl::StatusCode::kUnavailable;
    return PostRefused(open.writer(), *complaint, terminal);
  }
  context_.state.IfOwner(epoch_, [&] {
    context_.heads.NoteWriter(opened->trial_id, opened->writer_no, opened->folded_sequence);
  });
  std::unique_ptr<IngestSession> before;
  const Caller shown = caller;
  {
    absl::MutexLock lock(&mu_);
    auto& place = sessions_[request.writer];
    // The old one's inflight chunks come back as another writer's, or under an older generation,
    // and are only counted off.
    before =
        std::exchange(place, std::make_unique<IngestSession>(*opened, WriterLabels(request),
                                                             request.trial, std::move(caller)));
    agent_ = ConnectedAgent{.agent_id = request.agent_id, .agent_version = request.agent_version};
  }
  if (before != nullptr && before->trial_id() != opened->trial_id) Release(*before);
  // In this order: what the director asks for meanwhile travels in Opened, not before it.
  board_.Expect(request.writer, opened->generation);
  context_.director.Opened({.trial_id = opened->trial_id,
                            .writer_no = opened->writer_no,
                            .generation = opened->generation,
                            .uuid = request.writer,
                            .machine = request.machine,
                            .is_sampler = request.is_sampler,
                            .rank = request.rank,
                            .profiling = opened->profiling,
                            .window_over = context_.window_over(opened->trial_id)},
                           weak_from_this());
  const std::int64_t credit_bytes = context_.Credit();
  board_.PostOpened(request.writer,
                    MakeOpened(open, *opened, context_.state.incarnation(), credit_bytes,
                               absl::ToUnixMicros(context_.clock.Now())));
  if (credit_bytes == 0) context_.registry.NoteStopped();
  if (!context_.registry.Claim(request.writer, *opened, shared_from_this())) {
    Fence(request.writer, opened->generation);
  }
  // While the database opened it nobody could be told through its session, which was not there.
  ReleaseIfRefused(request.writer, *opened);
  if (HasEnded(shown)) RefuseEndedTokens();
  log::Info("writer_opened", {{"trial", Value(opened->trial_id)},
                              {"writer_no", Value(opened->writer_no)},
                              {"writer", request.writer.ToText()},
                              {"generation", opened->generation},
                              {"committed", opened->committed_sequence}});
  TellIfAckedIsNotHeld(open, *opened);
}

void IngestStream::ReleaseIfRefused(const Uuid& writer, const OpenedWriter& opened) {
  MaybeComplaint why;
  {
    absl::MutexLock lock(&mu_);
    const auto place = sessions_.find(writer);
    if (place != sessions_.end()) why = place->second->refused();
  }
  if (!why) return;
  board_.DropDirectives(writer, opened.generation);
  context_.registry.Release(opened.trial_id, opened.writer_no, opened.generation);
  context_.director.Lost(opened.trial_id, opened.writer_no, opened.generation);
  // Once more: the client was told of it before it was told that it is open.
  PostRefused(writer.ToBytes(), *why, true);
}

IngestSession* IngestStream::FindSession(const std::string& writer,
                                         const google::protobuf::MessageLite& message) {
  const auto uuid = Uuid::FromBytes(writer);
  MaybeComplaint complaint;
  {
    absl::MutexLock lock(&mu_);
    const auto place = uuid ? sessions_.find(*uuid) : sessions_.end();
    if (place != sessions_.end()) {
      if (place->second->state() != IngestSession::State::kFenced) return place->second.get();
      complaint = place->second->refused();
      if (!complaint) {
        complaint = Complaint{absl::StatusCode::kAborted, "FENCED",
                              "another stream has opened this writer since"};
      }
    }
  }
  if (!complaint) {
    complaint = Complaint{absl::StatusCode::kFailedPrecondition, "NOT_OPEN",
                          "the writer is not open on this stream; send Open first"};
  }
  if (AwaitBytesInVain(writer, message.ByteSizeLong())) PostRefused(writer, *complaint, true);
  return nullptr;
}

void IngestStream::HandleHeartbeat(const pb::Heartbeat& heartbeat) {
  IngestSession* session = FindSession(heartbeat.writer(), heartbeat);
  if (session == nullptr || !AwaitControlBytes(heartbeat)) return;
  context_.registry.Heard(session->trial_id(), session->writer_no());
}

void IngestStream::HandleClose(const pb::Close& close) {
  IngestSession* session = FindSession(close.writer(), close);
  if (session == nullptr || !AwaitControlBytes(close)) return;
  MaybeComplaint complaint;
  std::uint64_t next_sequence = 0;
  bool already = false;
  bool closed = false;
  {
    absl::MutexLock lock(&mu_);
    already = session->state() != IngestSession::State::kOpen;
    complaint = session->OfferClose(close.final_sequence());
    next_sequence = session->next_sequence();
    closed = session->state() == IngestSession::State::kClosed;
  }
  if (complaint) return PostRefused(close.writer(), *complaint, false, next_sequence);
  if (closed) {
    AckBoard::Ack ack = AckOf(*session);
    ack.closed = true;
    PostAck(*Uuid::FromBytes(close.writer()), std::move(ack));
  }
  if (already) return;
  CheckedChunk checked = NewChunk(*session);
  checked.writer = *Uuid::FromBytes(close.writer());
  checked.first_sequence = next_sequence;
  checked.last_sequence = next_sequence - 1;
  checked.closing = close.died() ? WriterState::kDied : WriterState::kClosed;
  Enqueue(*session, std::move(checked));
}

void IngestStream::HandleCredential(const pb::Credential& credential) {
  IngestSession* session = FindSession(credential.writer(), credential);
  if (session == nullptr || !AwaitControlBytes(credential)) return;
  Caller caller;
  // It costs what an Open's does.
  if (!LookAtToken(credential.writer(), credential.token(), session->asked(),
                   Beyond::kLeavesSession, caller)) {
    return;
  }
  const Caller shown = caller;
  {
    absl::MutexLock lock(&mu_);
    session->SetCaller(std::move(caller));
  }
  // Who told of its end meanwhile did not find it here.
  if (HasEnded(shown)) RefuseEndedTokens();
}

void IngestStream::HandleCaptureReport(const pb::CaptureReport& report) {
  IngestSession* session = FindSession(report.writer(), report);
  if (session == nullptr || !AwaitControlBytes(report)) return;
  context_.on_capture_report(session->trial_id(), session->writer_no(), session->generation(),
                             report);
}

}  // namespace stepwell
