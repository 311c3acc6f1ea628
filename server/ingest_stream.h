// IngestStream: one stream of a client, or one unary call, without gRPC: its writers' sessions,
// the checks, and what is answered. Stands between the skin, which calls Handle with one message
// after the other, and the CommitQueue; GroupCommitter reports back. Admit and Handle block where the stream
// must be slowed down; everything else returns at once. Thread-safe; Admit, Handle and NoteWaiting confined to one thread.
//
//   auto stream = IngestStream::Create(context, [&] { Kick(); });
//   if (is_large && !stream->Admit(head, bytes, before_wait)) return;   // the reader, before it parses a large one
//   stream->Handle(message);                                            // the reader
//   while (stream->board().TakeNext(answer)) ...   // the writer
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "base/steady_time.h"
#include "server/ack_board.h"
#include "server/agent_census.h"
#include "server/chunk_scratch.h"
#include "server/definition_check.h"
#include "server/group_committer.h"
#include "server/ingest_context.h"
#include "server/ingest_session.h"
#include "server/message_need.h"
#include "server/rate_allowance.h"
#include "server/writer_director.h"
#include "server/writer_registry.h"

namespace stepwell {

class RefusalSummary;
struct ChunkContent;

// How RateLimits hold a stream.
struct IngestPace {
  // Where it comes from, as AddressKey; empty = not known.
  std::string address = {};
  // Handle waits where a limit is reached. Else what is used is counted, and who called was asked before.
  bool is_slowed = true;
  // Who takes no answers for so long is taken for gone: a client gives a silent connection up after a minute, too.
  absl::Duration answers_patience = absl::Minutes(1);
  // How often it is said that a stream which is not read is still there. Who is not heard of for a minute counts as gone.
  absl::Duration say_each = absl::Seconds(10);
};

class IngestStream final : public CommitListener,
                           public DirectiveSink,
                           public std::enable_shared_from_this<IngestStream> {
 public:
  // `on_post`: something waits on board(), or the stream has ended. `caller`: whose token the call shows,
  // which is that of writers without one of their own. kUnavailable while this master is not the owner.
  static absl::StatusOr<std::shared_ptr<IngestStream>> Create(const IngestContext& context,
                                                              std::function<void()> on_post,
                                                              Caller caller = nullptr,
                                                              IngestPace pace = {});
  // Streams go by Finish().
  ~IngestStream() override = default;

  // Waits for all that a message which is not parsed yet waits for by itself: that its client takes answers, that enough of what
  // it sent is committed, for the rates of who pays, of its `bytes` too. `before_wait` is called once, before the first wait.
  // False: it is answered already, or nobody is there, and it must not be handled. The message that Handle or HandleMalformed
  // gets next is it: that waits for the queue or the database alone.
  [[nodiscard]] bool Admit(const MessageHead& head, std::size_t bytes,
                           const std::function<void()>& before_wait) ABSL_LOCKS_EXCLUDED(mu_);
  // One that was not admitted waits for the same as it goes, and is held meanwhile: for small ones.
  void Handle(const pb::StreamChunksRequest& message_untrusted);
  // A message that is no StreamChunksRequest; `writer` is what could be read of its writer. It costs its `bytes`.
  void HandleMalformed(const std::string& writer, const Complaint& complaint,
                       std::size_t bytes = 0);
  // It is not read while others' messages take all room; said now and then: the client keeps what it has, and its writers
  // count as heard.
  void NoteWaiting() ABSL_LOCKS_EXCLUDED(mu_);
  // The client has gone or will send no more and all was answered: releases its writers.
  void Finish();

  AckBoard& board() { return board_; }
  // OK while the stream goes on; else how it has to end.
  absl::Status end_status() const ABSL_LOCKS_EXCLUDED(mu_);
  // All that was taken is answered. False when the stream ends first.
  bool WaitSettled(SteadyTime deadline) ABSL_LOCKS_EXCLUDED(mu_);
  bool settled() const ABSL_LOCKS_EXCLUDED(mu_);
  // Who is at its other end; nothing while no writer was opened.
  std::optional<ConnectedAgent> agent() const ABSL_LOCKS_EXCLUDED(mu_);

  // Another stream holds the writer now.
  void Fence(const Uuid& writer, std::uint64_t generation) ABSL_LOCKS_EXCLUDED(mu_);
  // The trial takes nothing any more: its writers here are told, terminally, and let go of. Does not
  // wait for the client.
  void RefuseTrial(TrialId trial_id, const Complaint& why) ABSL_LOCKS_EXCLUDED(mu_);
  // Where the call's token has ended the stream ends, with kUnauthenticated; writers whose own has are told,
  // terminally, and let go of.
  void RefuseEndedTokens() ABSL_LOCKS_EXCLUDED(mu_);
  // DirectiveSink.
  bool Direct(const Uuid& writer, std::uint64_t version, const pb::Directive& directive) override;
  // Tells all writers their credit again.
  void RefreshCredit() ABSL_LOCKS_EXCLUDED(mu_);
  // CommitListener.
  void Committed(const CheckedChunk& chunk) override ABSL_LOCKS_EXCLUDED(mu_);
  void TellAcks() override { board_.Tell(); }
  void Refenced(const CheckedChunk& chunk) override ABSL_LOCKS_EXCLUDED(mu_);
  void End(const absl::Status& why) override ABSL_LOCKS_EXCLUDED(mu_);

 private:
  using Sessions = absl::flat_hash_map<Uuid, std::unique_ptr<IngestSession>>;

  IngestStream(const IngestContext& context, std::int64_t epoch, std::function<void()> on_post,
               Caller caller, IngestPace pace);
  // What a refusal means to the session of a writer, where it has one; of what no session pays for nothing is refused:
  // it holds the stream, whoever writes there.
  enum class Beyond { kEndsSession, kLeavesSession, kHoldsStream };
  // Whose token a writer shows, as CheckToken; false after a Refused was posted, or where the stream ended. Opens are paid
  // for: by whose token it is, and by the stream's own where it is refused, which is looked at first.
  [[nodiscard]] bool LookAtToken(const std::string& writer, const std::string& token,
                                 const TrialSelector& trial, Beyond beyond, Caller& caller)
      ABSL_LOCKS_EXCLUDED(mu_);
  // By the writer's own token, or the call's; nobody's where nobody is asked.
  MaybeComplaint CheckToken(const std::string& token, const TrialSelector& trial,
                            Caller& caller) const;
  // Of those that `concerns` chooses; does not wait for the client.
  void RefuseSessions(const std::function<bool(const IngestSession&)>& concerns,
                      const Complaint& why) ABSL_LOCKS_EXCLUDED(mu_);

  void NoteHeard();
  // False where the stream ends first, which it does where the client is too slow.
  [[nodiscard]] bool AwaitAnswersTaken() ABSL_LOCKS_EXCLUDED(mu_);
  // The part of Admit where somebody pays.
  [[nodiscard]] bool AwaitRates(const MessageHead& head, std::size_t bytes)
      ABSL_LOCKS_EXCLUDED(mu_);
  void HandleKind(const pb::StreamChunksRequest& message);
  void HandleOpen(const pb::Open& open);
  // The session has ended here other than by a Close.
  void Release(const IngestSession& session);
  // Who refused it between its session and its claim found nobody in the registry to take out.
  void ReleaseIfRefused(const Uuid& writer, const OpenedWriter& opened) ABSL_LOCKS_EXCLUDED(mu_);
  bool HasPlaceFor(const Uuid& writer) ABSL_LOCKS_EXCLUDED(mu_);
  bool LivesInOtherTrial(const OpenWriterRequest& request) ABSL_LOCKS_EXCLUDED(mu_);
  void HandleDefinitions(const pb::Definitions& definitions);
  void HandleChunk(const pb::Chunk& chunk);
  void HandleGap(const pb::GapRange& gap);
  void HandleHeartbeat(const pb::Heartbeat& heartbeat);
  void HandleClose(const pb::Close& close);
  void HandleCaptureReport(const pb::CaptureReport& report);
  void HandleCredential(const pb::Credential& credential);

  // The living session of `writer`, or null after a Refused was posted, whose `message` was paid for.
  IngestSession* FindSession(const std::string& writer,
                             const google::protobuf::MessageLite& message) ABSL_LOCKS_EXCLUDED(mu_);
  // Null where there is none that lives.
  IngestSession* LivingSession(const std::string& writer) const ABSL_LOCKS_EXCLUDED(mu_);
  // Numbers for definitions, waiting for the database; halves them to find the bad one.
  using Fresh = std::vector<CheckedDefinition>;
  void Number(const std::string& writer, IngestSession& session, Fresh fresh,
              RefusalSummary& refusals);
  void Refuse(IngestSession& session, CheckedDefinition fresh, const absl::Status& status,
              RefusalSummary& refusals);
  absl::Status FindSeries(TrialId trial_id, Fresh& fresh, std::int64_t& created,
                          std::vector<SeriesNo>& out);
  // Answers what is not taken; true when the range is, from `from` on.
  bool TakeRange(const std::string& writer, IngestSession& session, std::uint64_t first,
                 std::uint64_t last, std::uint64_t& from) ABSL_LOCKS_EXCLUDED(mu_);
  // Nothing of a session that was refused or fenced since it was looked at.
  void Enqueue(IngestSession& session, CheckedChunk chunk) ABSL_LOCKS_EXCLUDED(mu_);
  CheckedChunk NewChunk(const IngestSession& session);
  void CountOff(const CheckedChunk& chunk) ABSL_LOCKS_EXCLUDED(mu_);
  // Whether not too much of this stream is on its way to the database already.
  bool HasRoomInflightLocked() const ABSL_SHARED_LOCKS_REQUIRED(mu_);
  void AwaitInflight() ABSL_LOCKS_EXCLUDED(mu_);
  // As it is decoded and paid for; nothing where it was answered, or the stream ends first.
  std::optional<ChunkContent> AwaitContent(const pb::Chunk& chunk, IngestSession& session)
      ABSL_LOCKS_EXCLUDED(mu_);
  // Before a large chunk takes more than its bytes; false where the stream ends first.
  [[nodiscard]] bool AwaitPlace(std::size_t body_bytes) ABSL_LOCKS_EXCLUDED(mu_);
  // Takes `amount` of what `payer` may use, once anything is left of it: this stream is not read meanwhile, its client
  // keeps what it has. Tells the client now and then that it is heard, and the registry that its writers are there.
  // Whose token is used up and may hold nobody here (MayHold), `writer` is refused instead, and comes again. False where it was, or
  // the stream ended meanwhile, or `session` (null: none), who was told then: nothing was taken, and what it is for must not
  // be done.
  [[nodiscard]] bool AwaitAllowance(const std::string& writer, RateKind kind, const Caller& payer,
                                    double amount, Beyond beyond,
                                    const IngestSession* session = nullptr)
      ABSL_LOCKS_EXCLUDED(mu_);
  // Likewise, where nothing need be waited for; else false, and nothing was taken.
  [[nodiscard]] bool TryTakeSamples(const IngestSession& session, std::int64_t count);
  // Whether bytes are to be waited for, and not paid for yet.
  bool OwesBytes() const { return pace_.is_slowed && !is_admitted_; }
  // Of what `session` does.
  [[nodiscard]] bool AwaitAllowanceOf(const std::string& writer, const IngestSession& session,
                                      RateKind kind, double amount) ABSL_LOCKS_EXCLUDED(mu_);
  // Whether all that is open here pays with the token of the call, and `payer` is its: a writer with a token of its own, of an
  // agent of all users say, is not held by others' debts, nor others by its.
  bool MayHold(const Caller& payer) const ABSL_LOCKS_EXCLUDED(mu_);
  // Its session ends, where it has one; an agent shows it again after a minute, one that has none sooner.
  void RefuseWriter(const std::string& writer, const Complaint& why) ABSL_LOCKS_EXCLUDED(mu_);
  // Of a message of `session`; a unary call has paid for its own.
  [[nodiscard]] bool AwaitBytes(const std::string& writer, const IngestSession& session,
                                std::size_t bytes) ABSL_LOCKS_EXCLUDED(mu_);
  // Of a message that is refused and was not paid for: by its writer's session, where it has one that lives, else by the stream
  // itself. False where it is answered otherwise, or nobody is there any more.
  [[nodiscard]] bool AwaitBytesInVain(const std::string& writer, std::size_t bytes)
      ABSL_LOCKS_EXCLUDED(mu_);
  // Of a message that stores nothing. Those that clients send are far below what costs nothing: debts delay no heartbeat,
  // no Close and no token.
  [[nodiscard]] bool AwaitControlBytes(const google::protobuf::MessageLite& message)
      ABSL_LOCKS_EXCLUDED(mu_);
  [[nodiscard]] bool AwaitControlBytes(std::size_t bytes) ABSL_LOCKS_EXCLUDED(mu_);
  // By the token of the call and by its address.
  [[nodiscard]] bool AwaitOwnBytes(std::size_t bytes) ABSL_LOCKS_EXCLUDED(mu_);
  void SayStillHere() ABSL_LOCKS_EXCLUDED(mu_);
  bool ended() const ABSL_LOCKS_EXCLUDED(mu_) { return !end_status().ok(); }

  void PostRefused(const std::string& writer, const Complaint& complaint, bool terminal,
                   std::uint64_t expected_sequence = 0);
  // Posted without mu_: the board wakes the skin, which asks for end_status().
  // Where it says that there is no credit, that is noted.
  void PostAck(const Uuid& writer, AckBoard::Ack ack);
  void HoldAck(const Uuid& writer, AckBoard::Ack ack);
  AckBoard::Ack AckOf(const IngestSession& session) const;

  const IngestContext& context_;
  const std::int64_t epoch_;
  const Caller caller_;
  const IngestPace pace_;
  AckBoard board_;
  const std::function<void()> on_end_;
  const std::int64_t since_time_us_;
  // When the last message came.
  std::atomic<std::int64_t> heard_time_us_;
  SteadyTime said_ = SteadyTime::Now();  // that it is still here; the reader's
  // Of the chunk in hand, while it waits for nothing but the queue; the reader's.
  CommitQueue::Place queue_place_;
  ChunkScratch scratch_;  // the reader's
  // The message in hand has waited; what is called before it does. The reader's.
  bool is_admitted_ = false;
  std::function<void()> before_wait_;
  // What costs nothing of messages that store nothing, and of those that were under way as their writer was refused. The
  // reader's.
  RateAllowance control_left_;
  RateAllowance under_way_left_;
  mutable absl::Mutex mu_;
  // Entries are added and replaced by the reader alone; their state is guarded.
  Sessions sessions_ ABSL_GUARDED_BY(mu_);
  // As its newest Open said; its counts and times are filled in where it is asked for.
  std::optional<ConnectedAgent> agent_ ABSL_GUARDED_BY(mu_);
  absl::Status end_status_ ABSL_GUARDED_BY(mu_);
  int inflight_count_ ABSL_GUARDED_BY(mu_) = 0;
  std::int64_t inflight_bytes_ ABSL_GUARDED_BY(mu_) = 0;
};

}  // namespace stepwell
