// TraceSender: takes the traces of a root's outbox to their masters, one after the other, on a thread of its own: neither
// a file system that hangs nor a master that is slow holds up the agent's loop. The thread begins with the first note.
// A trace whose master cannot be reached stays, also for the next agent; one that no master will ever take is given up
// and logged.
//
//   TraceSender traces(format_directory, {.machine = name}, resolve, MakeTraceCalls(tls));
//   traces.Leave(job);              // the loop: a note, sent when its turn comes
//   traces.Keep(writer, captured);  // the loop: steps that a master asked for, not yet a file
//   traces.Tend();                  // the loop, at each visit
//   if (traces.is_done()) ...       // nothing that could be sent waits
//
// Leave, Keep, NoteEpochs, Tend and Stop are the loop's; the rest is thread-safe.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "base/backoff.h"
#include "base/steady_time.h"
#include "base/uuid.h"
#include "base/worker.h"
#include "client/agent/captured_trace.h"
#include "client/agent/epoch_log.h"
#include "client/agent/recording_notes.h"
#include "client/agent/trace_calls.h"
#include "client/agent/trace_outbox.h"
#include "client/agent/trace_tally.h"
#include "client/traces/trace_upload.h"

namespace stepwell::agent {

class TraceSender {
 public:
  struct Options {
    std::string machine;  // as people know it
    Backoff::Options retry = {.first = absl::Milliseconds(500), .longest = absl::Seconds(30)};
    // Its trial or its writer may come to the master yet: so long is that believed.
    absl::Duration unknown_max = absl::Minutes(10);
    // Also files that lie elsewhere than beside the notes. Whose notes are not known to be one's own leaves those alone: a note
    // names whatever its writer wants read, and removed.
    bool sends_named_files = true;
    // What KeepFile's files and their notes may take together, where that is less than a twentieth of the free disk; and how long a
    // captured trace waits for a master that takes it. No bounds: the folder is the user's whose traces they are.
    std::int64_t kept_bytes_max = INT64_MAX;
    absl::Duration kept_age_max = absl::InfiniteDuration();
    // Of a writer that brought one: the agent's own is another user's.
    bool shows_writers_token = false;
    // A master that takes nothing of a call for so long has others wait: the call is ended, and tried again.
    absl::Duration stall_max = absl::Minutes(10);
    // JSON of more bytes is not packed: it would have to become a sixteenth to be below a master's cap, as that is at first.
    std::int64_t packed_of_max = std::int64_t{16} * (256 << 20);
    // What those that wait for another try hold meanwhile, in TMPDIR or as open files: so much, beside the largest.
    std::int64_t prepared_bytes_max = std::int64_t{2} * (256 << 20);
    // Of what is recorded; its `sends_named_files` and `absent_max` are those above.
    RecordingNotes::Options recordings = {};
  };
  static constexpr std::size_t kKeptMax = 32;
  static constexpr std::size_t kEpochsMax = 4096;  // writers
  // Where the traces of a writer that asked for this server go: HOST:PORT, or "offline". Called on the sender's thread.
  using Resolve = std::function<std::string(const std::string& server)>;

  // `format_directory` and what `resolve` holds outlive it.
  TraceSender(int format_directory, Options options, Resolve resolve,
              std::unique_ptr<TraceCalls> calls);
  ~TraceSender() { Stop(); }

  // What could not be noted is told in the log.
  [[nodiscard]] absl::Status Leave(const TraceJob& job);
  // A file is begun that is finished by another agent, should this one be killed. The loop calls what it gives once it has its
  // name; this outlives that. Nothing: no note could be left.
  std::function<void()> NoteRecording(const TraceJob& job);
  // The thread makes its bytes and writes them beside the notes, then leaves one: before the next part of what it is sending, and
  // it is sent before what is not begun yet. Of an agent that is killed before, it is lost; where that cannot be done, trace.fail
  // says so. At most kKeptMax wait; their memory is CaptureRoom's.
  void Keep(const WriterIdentity& writer, CapturedTrace trace) ABSL_LOCKS_EXCLUDED(mu_);
  // What is known of a writer: a trace of known batches that came without its epoch, as a native profiler's do, is of that one.
  void NoteEpochs(const Uuid& writer, const EpochLog& epochs) ABSL_LOCKS_EXCLUDED(mu_);
  void Tend() ABSL_LOCKS_EXCLUDED(mu_);
  // Cuts the call under way; what is not sent stays.
  void Stop() ABSL_LOCKS_EXCLUDED(mu_);

  // What is there is sent, given up, or for no master. False from a note's coming on.
  bool is_done() const ABSL_LOCKS_EXCLUDED(mu_);
  // Grows with each part that is taken.
  std::uint64_t progress() const { return progress_; }
  TraceTally::Counts counts() const { return tally_.counts(); }

 private:
  // One note, as far as it is.
  struct Sending {
    TraceJob job;
    std::optional<traces::PreparedTrace> prepared = {};
    Backoff backoff;
    // Since an answer that may be the last word, where nothing else was answered since.
    std::optional<SteadyTime> doubted_since = {};
    std::string doubt = {};  // that answer
    SteadyTime due = {};
    bool is_told = false;
    std::string prepared_of = {};  // the file as it was then
  };
  enum class Outcome { kOver, kLater };

  void Run() ABSL_LOCKS_EXCLUDED(mu_);
  bool IsStopping() const ABSL_LOCKS_EXCLUDED(mu_);
  void StartLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // The loop's.
  void EndStalledCall();
  // False: the agent is leaving.
  bool AwaitWork() ABSL_LOCKS_EXCLUDED(mu_);
  void WriteKept() ABSL_LOCKS_EXCLUDED(mu_);
  absl::Status CheckRoom(std::size_t bytes) const;
  // What an agent that was killed wrote and left no note of.
  void SweepFiles();
  // All notes once; whether some wait for another try.
  bool SendAll();
  void CountRefused();
  // Captures first: somebody waits for them.
  absl::StatusOr<std::vector<std::string>> NamesInTurn() const;
  // Where it is not, that is told once.
  bool IsSent(Sending& sending);
  // What was captured so long ago that nobody waits for it.
  bool IsTooOld(const Sending& sending) const;
  void GiveUp(const std::string& name, const Sending& sending, const absl::Status& why);
  Outcome Send(const std::string& name, Sending& sending);
  // Once for each state of its file.
  [[nodiscard]] absl::Status Prepare(Sending& sending) const;
  std::int32_t EpochOf(const TraceJob& job) const ABSL_LOCKS_EXCLUDED(mu_);
  // Those that wait hold no more than they may, beside the largest.
  void BoundPrepared();
  absl::StatusOr<v1::UploadTraceResponse> Upload(const std::string& server, Sending& sending);
  Outcome Judge(const absl::Status& failed, Sending& sending);

  const Options options_;
  const Resolve resolve_;
  const std::unique_ptr<TraceCalls> calls_;
  TraceOutbox outbox_;                       // the loop's
  const TraceOutbox sent_outbox_;            // the thread's
  std::map<std::string, Sending> sendings_;  // the thread's, by note
  std::set<std::string> unusable_;           // the thread's: notes that are none
  TraceTally tally_;
  RecordingNotes recordings_;  // the thread's
  SteadyTime sweep_due_;       // the thread's
  bool has_captures_ = false;  // the thread's: one was written since all notes were listed
  bool has_aging_ = false;  // the thread's: some that is kept waits for no try, and becomes too old
  std::atomic<std::uint64_t> progress_{0};
  std::atomic<std::uint64_t> call_count_{0};
  std::uint64_t seen_progress_ = 0;  // the loop's: of both
  SteadyTime moved_;                 // the loop's: when that was another

  mutable absl::Mutex mu_;
  bool is_stopping_ ABSL_GUARDED_BY(mu_) = false;
  bool has_news_ ABSL_GUARDED_BY(mu_) = false;
  bool is_waiting_ ABSL_GUARDED_BY(mu_) = false;  // some note has another try before it
  bool is_sending_ ABSL_GUARDED_BY(mu_) = false;
  bool is_started_ ABSL_GUARDED_BY(mu_) = false;
  std::deque<std::pair<WriterIdentity, CapturedTrace>> kept_ ABSL_GUARDED_BY(mu_);
  std::map<Uuid, EpochLog> epochs_ ABSL_GUARDED_BY(mu_);
  std::deque<Uuid> epoch_writers_ ABSL_GUARDED_BY(mu_);  // the oldest first
  Worker worker_;
};

}  // namespace stepwell::agent
