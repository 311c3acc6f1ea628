// ServedWriter: one writer's whole way out: its spool on disk, its place on the stream, its end.
// Rank writers and the machine's sampler are both built on it. When the sequences of a writer must
// not go on (a lost or divergent spool), it retires that writer and goes on under a new identity.
// Confined to the agent's loop.
//
//   STEPWELL_ASSIGN_OR_RETURN(auto served, ServedWriter::Open(std::move(dir), identity, context));
//   served->builder().AddTick(...);
//   STEPWELL_RETURN_IF_ERROR(served->Seal(checkpoint));
//   served->Tend();
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/backoff.h"
#include "base/clock.h"
#include "client/agent/capture_room.h"
#include "client/agent/captured_trace.h"
#include "client/agent/epoch_log.h"
#include "client/agent/frame_sealer.h"
#include "client/agent/outbound_writer.h"
#include "client/agent/refusal_note.h"
#include "client/agent/ring_budget.h"
#include "client/agent/sender.h"
#include "client/agent/sync_pace.h"
#include "client/agent/trace_job.h"
#include "client/agent/waiting_writers.h"

namespace stepwell::agent {

class ProcessReader;

// What all writers of an agent share. The references outlive every writer.
struct ServeContext {
  Sender& sender;
  const Clock& clock;
  AgentFace face;
  Spool::Options spool;
  // Nothing is sent: the spool is as far as it goes.
  bool offline = false;
  // Outlives every writer. Null: processes are read by whoever visits them.
  ProcessReader* processes = nullptr;
  RingBudget& rings = RingBudget::Unlimited();
  // A sampler has ticks to take: called on its thread, must not block.
  std::function<void()> on_ticks = [] {};
  // Between two visits.
  absl::Duration frame_interval = absl::Milliseconds(100);
  // An agent of all users writes no trace to a path that one of them names, and takes none from there.
  bool may_record_traces = true;
  // What a master asks for has a place of the agent's own.
  bool may_capture = true;
  // One is begun: what an agent that is killed leaves is the next one's. What it gives undoes that.
  std::function<std::function<void()>(const TraceJob& job)> note_recording = [](const TraceJob&) {
    return std::function<void()>();
  };
  // A trace that was recorded is to go to the writer's master.
  std::function<absl::Status(const TraceJob& job)> leave_trace = [](const TraceJob&) {
    return absl::OkStatus();
  };
  // One that a master asked for is to be kept and go there.
  std::function<void(const WriterIdentity& writer, CapturedTrace trace)> keep_captured =
      [](const WriterIdentity&, const CapturedTrace&) {};
  // In which epochs a writer was, once that changed: traces of it are told apart by them.
  std::function<void(const Uuid& writer, const EpochLog& epochs)> note_epochs =
      [](const Uuid&, const EpochLog&) {};
  // Of all captures until they are kept.
  std::shared_ptr<CaptureRoom> capture_room = std::make_shared<CaptureRoom>();
  // What is shown for its trial; null = what its identity says.
  std::function<std::shared_ptr<TrialToken>(const WriterIdentity& writer)> token_for =
      [](const WriterIdentity&) { return nullptr; };
};

class ServedWriter {
 public:
  // Takes over the spool that earlier agents left in `directory`, and puts the writer on the
  // stream.
  static absl::StatusOr<std::unique_ptr<ServedWriter>> Open(FileDescriptor directory,
                                                            WriterIdentity identity,
                                                            const ServeContext& context);
  ~ServedWriter();
  ServedWriter(const ServedWriter&) = delete;
  ServedWriter& operator=(const ServedWriter&) = delete;

  SeriesCatalog& catalog() { return sealer_->catalog(); }
  ChunkBuilder& builder() { return sealer_->builder(); }
  // As the spool knows it: where to go on after a restart.
  const Checkpoint& recovered() const { return sealer_->spool().checkpoint(); }

  // As FrameSealer's; an earlier failure is tried again first, and then `checkpoint` waits: false.
  absl::Status Seal(const Checkpoint& checkpoint);
  bool pending() const { return sealer_->pending(); }
  absl::Status Retry();
  const Checkpoint& written() const { return sealer_->written(); }
  // Of what was sealed.
  std::uint64_t last_sequence() const { return spool_->last_sequence(); }
  // When the newest sample of what was sealed was taken; 0 where none of the newest frames has any.
  std::int64_t LastSampleUs() const;

  // Whether this agent has seen a process of it alive, at each visit. Where it has not, and the master
  // holds more than the spool does, another agent had the rings, too: those of the original of a copy, or
  // those of before a power loss. What is sealed of them may be stored, and moves to no successor.
  void NoteLife(bool seen_alive);
  // That was so: what the rings still hold is to be told as lost.
  bool gives_up_rings() const { return gives_up_rings_ && !seen_alive_; }

  // Frees, retires: what is due by the clock. Call it at least each 500 ms.
  void Tend();
  // Something of that has to be done now.
  bool IsTendDue() const;
  // What was written goes to the disk, once that is due (sync_pace.h). After the stream was woken: a
  // slow disk holds up nothing that is sent.
  void TendSync(absl::Duration now);
  bool IsSyncDue(absl::Duration now) const;
  void Sync();
  std::int64_t unacked_bytes() const { return spool_->BytesBehind(spool_->acked().sequence); }
  void SetBounds(const SpoolBounds& bounds) { spool_->SetBounds(bounds); }
  // Nothing will follow.
  void Close(bool died);
  bool close_requested() const { return close_requested_; }
  // The master holds all of it, Close included.
  bool done() const;
  // Offline, closed, and all of it in the spool: nothing is left to do here.
  bool spooled() const { return context_.offline && close_requested_ && !sealer_->pending(); }
  bool offline() const { return context_.offline; }
  // All of it is in the spool, and no master takes that now, or none in a long time: its place is
  // better used by another.
  bool may_wait() const;
  // As it is told to those that wait.
  AsideWriter Aside() const;
  // Infinite until Close().
  absl::Duration closed_at() const { return closed_at_; }
  // The master will not have it; waiting is pointless.
  bool refused() const { return link_->status().state == SendWindow::State::kRefused; }
  // An earlier agent saw it done: nothing is left but its acked tail.
  static bool WasDone(int directory);
  // When; now where it was not.
  static absl::Time DoneTime(int directory);

  OutboundWriter::Status status() const { return link_->status(); }
  // Its place on the stream, as of now; may outlive this.
  std::shared_ptr<OutboundWriter> link() const { return link_; }
  const WriterIdentity& identity() const { return identity_; }
  int directory() const { return directory_.get(); }

 private:
  ServedWriter(FileDescriptor directory, WriterIdentity identity, const ServeContext& context)
      : directory_(std::move(directory)), identity_(std::move(identity)), context_(context) {}

  struct Retired {
    std::shared_ptr<OutboundWriter> link;
    std::string folder;
  };
  absl::Status OpenSpools();
  absl::StatusOr<std::shared_ptr<Spool>> OpenSpool(const std::string& folder, Uuid writer);
  std::shared_ptr<OutboundWriter> Link(std::shared_ptr<Spool> spool) const;
  void DefineNew();
  // One that is not yet whole: its frames are copied in parts.
  struct Successor {
    std::shared_ptr<Spool> spool;
    std::string folder;
    std::string draft;
    // Of the living spool: up to here all is copied, or need not be.
    std::uint64_t moved_sequence = 0;
  };
  absl::Status Succeed();
  absl::Status MoveOn();
  absl::Status BeginSuccessor();
  absl::StatusOr<bool> MoveFrames();
  void SwitchToSuccessor();
  // Up to where the master may hold what the living spool has, as first decided: on the disk, so
  // that an agent that takes over from one that died on the way decides the same.
  absl::StatusOr<std::uint64_t> RememberBehind();
  absl::StatusOr<SampleSpan> SpanOfGivenUp(std::uint64_t behind) const;
  absl::Status GiveUpRings();
  absl::Status CheckRoom(std::uint64_t behind) const;
  void SyncBeforeSend();
  void NoteWritten(absl::Duration now);
  // After a sync, or one that failed.
  void NoteSynced();
  void TendRetirement(absl::Status& tended);
  void TellTrouble(const absl::Status& tended);
  void DropRetired();
  void MarkDone();

  const FileDescriptor directory_;
  const WriterIdentity identity_;
  const ServeContext context_;
  FileDescriptor spool_root_;
  std::uint32_t folder_number_ = 0;
  std::unique_ptr<FrameSealer> sealer_;
  std::shared_ptr<Spool> spool_;
  SyncPace sync_pace_{context_.frame_interval, 0};  // the spool's
  std::shared_ptr<OutboundWriter> link_;
  // Newest sequence as found at start: an earlier agent may have sent it.
  std::uint64_t recovered_sequence_ = 0;
  std::size_t defined_count_ = 0;
  std::vector<Retired> retired_;
  std::optional<Successor> successor_;
  std::optional<std::uint64_t> behind_;  // of the living spool, once it is to be succeeded
  Backoff succeed_backoff_{{absl::Seconds(2), absl::Minutes(1)}};
  absl::Duration succeed_at_ = -absl::InfiniteDuration();
  bool close_requested_ = false;
  absl::Duration closed_at_ = absl::InfiniteDuration();
  bool died_ = false;
  bool done_marked_ = false;
  bool seen_alive_ = true;
  bool set_back_at_open_ = false;  // and so succeeded before any visit
  bool gives_up_rings_ = false;
  RefusalNote refusal_note_{directory_.get()};
  absl::Duration trimmed_at_ = -absl::InfiniteDuration();
  absl::Duration marked_at_ = -absl::InfiniteDuration();
  absl::Duration trouble_logged_ = -absl::InfiniteDuration();
};

}  // namespace stepwell::agent
