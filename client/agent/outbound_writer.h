// OutboundWriter: one writer on the stream: what it says next, and what the master's answers to it
// mean. It joins the spool (frames), the window (order and credit) and the wire's messages; it
// knows no gRPC. Thread-safe: the agent's loop adds, the stream's two threads send and receive.
//
//   writer->AddDefinition(definition);          // loop, before the frame that uses it
//   if (auto message = writer->Next(now)) ...   // send thread
//   writer->OnMessage(answer, now);             // receive thread
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "client/agent/ready_set.h"
#include "client/agent/send_window.h"
#include "client/agent/spool.h"
#include "client/agent/trial_token.h"
#include "client/agent/writer_identity.h"
#include "stepwell/v1/ingest.pb.h"

namespace stepwell::agent {

// The master's reason to refuse an agent, whatever the writer. Sender logs it.
inline constexpr char kClientTooOld[] = "CLIENT_TOO_OLD";

// What the agent says of itself in each Open.
struct AgentFace {
  std::string agent_id;
  std::string machine;
  std::string version;
};

class OutboundWriter {
 public:
  // `token` null: it shows its own, or nothing.
  OutboundWriter(WriterIdentity identity, AgentFace face, std::shared_ptr<Spool> spool,
                 std::shared_ptr<TrialToken> token = nullptr);

  // --- the agent's loop
  // In order of refs; sent before the next frame, and after each Opened again.
  void AddDefinition(const pb::Definition& definition) ABSL_LOCKS_EXCLUDED(mu_);
  // Nothing will follow what the spool holds.
  void RequestClose(bool died) ABSL_LOCKS_EXCLUDED(mu_);
  // Its sequences must not go on: a lost or divergent spool. Only Close is left.
  void Retire() ABSL_LOCKS_EXCLUDED(mu_);
  // Sent once while the stream stands; on any thread.
  void Report(pb::CaptureReport report) ABSL_LOCKS_EXCLUDED(mu_);

  struct Status {
    SendWindow::State state = SendWindow::State::kDisconnected;
    // Its sequences must not go on; another writer has to. Stays so when it is closed.
    bool retired = false;
    // The last Opened or Ack.
    std::uint64_t acked_sequence = 0;
    bool all_acked = false;
    bool awaits_answer = false;
    // Highest that this object ever sent: what lies behind it no master has from this process.
    std::uint64_t sent_sequence = 0;
    std::string refusal;
    // An Opened came: what the master asked for is known.
    bool opened = false;
    // What the master asked for since; empty = nothing.
    std::optional<pb::Profiling> profiling;
    std::optional<pb::Capture> capture;
    std::optional<bool> sampling_on;
    // Where it is off: what other agents of this machine sample, by their label `device`.
    std::vector<std::string> others_gpus;
    // Live trials of this machine as the master knows them; 0 = it did not say.
    std::int32_t shared_with = 0;
  };
  Status status() const ABSL_LOCKS_EXCLUDED(mu_);
  // Two of them, for what asks with each answer.
  bool awaits_answer() const ABSL_LOCKS_EXCLUDED(mu_);
  std::uint64_t acked_sequence() const ABSL_LOCKS_EXCLUDED(mu_);
  // Of those that a master gives on a stream.
  bool has_place() const ABSL_LOCKS_EXCLUDED(mu_);
  const Spool& spool() const { return *spool_; }
  const WriterIdentity& identity() const { return identity_; }
  // What its last Open or Credential showed, where the master took it; else empty.
  std::string taken_token() const ABSL_LOCKS_EXCLUDED(mu_);

  // --- the stream. `now` is the monotonic clock's.
  void OnConnected() ABSL_LOCKS_EXCLUDED(mu_);
  void OnDisconnected() ABSL_LOCKS_EXCLUDED(mu_);
  // Next may give a message now. Reads no disk: asked at each visit, so that the send thread is not
  // woken for nothing.
  bool HasNext(absl::Duration now) const ABSL_LOCKS_EXCLUDED(mu_);
  // `now` or before: HasNext. Else the first time from which it may be so though nothing marks it (ready_mark).
  absl::Duration DueAt(absl::Duration now) const ABSL_LOCKS_EXCLUDED(mu_);
  // Set by whatever may give it something to send but time, once it has (ReadySet).
  ReadyMark& ready_mark() const { return *ready_mark_; }
  // The next message, if there is one to send now. Reads the spool. Confined to the send thread.
  std::optional<pb::StreamChunksRequest> Next(absl::Duration now) ABSL_LOCKS_EXCLUDED(mu_);
  // False where the master broke the protocol: the connection should be given up.
  bool OnMessage(const pb::StreamChunksResponse& message, absl::Duration now)
      ABSL_LOCKS_EXCLUDED(mu_);
  // What another writer's Opened, or the connection itself, shows of the master. A closed writer is told again only where the
  // master may have lost it: its database is another one, or it is behind that writer's acked mark.
  struct MasterSeen {
    std::string incarnation;
    bool behind = false;
  };
  void OnMasterSeen(const MasterSeen& seen) ABSL_LOCKS_EXCLUDED(mu_);

 private:
  std::optional<pb::StreamChunksRequest> NextOpen(absl::Duration now) ABSL_LOCKS_EXCLUDED(mu_);
  std::optional<pb::StreamChunksRequest> NextItem(std::uint64_t sequence, absl::Duration now)
      ABSL_LOCKS_EXCLUDED(mu_);
  // Another token is to be shown than the one that was, or that one again.
  bool IsTokenStaleLocked(absl::Duration now) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // The master knew no such writer after its Close, and has not acked that: it is opened again, and Opened tells.
  bool IsCloseMissingLocked(absl::Duration now) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // After a refusal.
  bool MayReopenLocked(absl::Duration now) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // What is shown now, which is remembered as that.
  std::string ShowTokenLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  std::optional<pb::StreamChunksRequest> DefinitionsLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  bool HasNextLocked(absl::Duration now) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  SendWindow::Action ActionLocked(absl::Duration now) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  void OnOpened(const pb::Opened& opened, absl::Duration now) ABSL_LOCKS_EXCLUDED(mu_);
  bool OnAck(const pb::Ack& ack, absl::Duration now) ABSL_LOCKS_EXCLUDED(mu_);
  void OnRefused(const pb::Refused& refused, absl::Duration now);
  bool IsEchoLocked(absl::Duration now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // How long nothing is sent.
  absl::Duration OnTerminalLocked(const pb::Refused& refused, absl::Duration now)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void OnDirectiveLocked(const pb::Directive& directive) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void LogRejections(const google::protobuf::RepeatedPtrField<pb::Rejection>& rejections,
                     absl::Duration now) ABSL_LOCKS_EXCLUDED(mu_);
  bool MayLogLocked(const std::string& reason, absl::Duration now)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const WriterIdentity identity_;
  const AgentFace face_;
  const std::shared_ptr<Spool> spool_;
  const std::shared_ptr<TrialToken> token_;  // null = none is fetched

  const std::shared_ptr<ReadyMark> ready_mark_ = std::make_shared<ReadyMark>();  // also spool_'s

  // Confined to the send thread: read, but not yet within the credit.
  std::optional<SpoolItem> read_ahead_;
  std::uint64_t read_ahead_sequence_ = 0;

  mutable absl::Mutex mu_;
  SendWindow window_ ABSL_GUARDED_BY(mu_);
  // What was read and did not fit: there is nothing to say before an answer makes room for it, but for a heartbeat.
  std::uint64_t held_sequence_ ABSL_GUARDED_BY(mu_) = 0;  // 0 = nothing
  std::int64_t held_bytes_ ABSL_GUARDED_BY(mu_) = 0;
  std::vector<pb::Definition> definitions_ ABSL_GUARDED_BY(mu_);
  std::size_t definitions_sent_count_ ABSL_GUARDED_BY(mu_) = 0;
  TrialToken::Shown shown_ ABSL_GUARDED_BY(mu_);  // as of the last Open or Credential
  // The master could not look at it just then. What else there is to send does not wait for that.
  absl::Duration shows_again_at_ ABSL_GUARDED_BY(mu_) = absl::InfiniteDuration();
  std::uint64_t generation_ ABSL_GUARDED_BY(mu_) = 0;
  // Of the database, as the last Opened told it.
  std::string incarnation_ ABSL_GUARDED_BY(mu_);
  // Newest that the spool held when this began: an earlier agent may have sent it.
  const std::uint64_t recovered_sequence_;
  std::uint64_t sent_sequence_ ABSL_GUARDED_BY(mu_) = 0;
  bool close_wanted_ ABSL_GUARDED_BY(mu_) = false;
  bool died_ ABSL_GUARDED_BY(mu_) = false;
  absl::Duration not_before_ ABSL_GUARDED_BY(mu_) = -absl::InfiniteDuration();
  absl::Duration closes_by_ ABSL_GUARDED_BY(mu_) = absl::InfiniteDuration();
  // A session was refused: until then come answers to what was under way, which are no Open's.
  absl::Duration echoes_until_ ABSL_GUARDED_BY(mu_) = -absl::InfiniteDuration();
  absl::Duration sent_at_ ABSL_GUARDED_BY(mu_) = -absl::InfiniteDuration();
  std::map<std::string, absl::Duration> reasons_logged_ ABSL_GUARDED_BY(mu_);
  std::string refusal_ ABSL_GUARDED_BY(mu_);
  bool opened_ ABSL_GUARDED_BY(mu_) = false;
  std::optional<pb::Profiling> profiling_ ABSL_GUARDED_BY(mu_);
  std::optional<pb::Sampling> sampling_ ABSL_GUARDED_BY(mu_);
  std::optional<pb::Capture> capture_ ABSL_GUARDED_BY(mu_);
  // Not sent yet; of this stream.
  std::deque<pb::CaptureReport> reports_ ABSL_GUARDED_BY(mu_);
};

}  // namespace stepwell::agent
