// Agent: ships everything that recorders below one root write to one master, and samples the
// machine. Its loop visits each writer every frame interval; the stream runs beside it.
//
//   STEPWELL_ASSIGN_OR_RETURN(auto agent, Agent::Create(options, RealClock::Get()));
//   agent->Run();          // until RequestStop, or idle for long enough
//
// Run is for one thread; RequestStop may be called from any.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "base/clock.h"
#include "client/agent/agent_lock.h"
#include "client/agent/agent_options.h"
#include "client/agent/rank_writer.h"
#include "client/agent/sampler_writer.h"
#include "client/agent/sender.h"
#include "client/agent/stream.h"
#include "client/agent/writer_finder.h"

namespace stepwell::agent {

class Agent {
 public:
  // kAlreadyExists: another agent serves the directory. `clock` outlives the agent.
  static absl::StatusOr<std::unique_ptr<Agent>> Create(AgentOptions options, const Clock& clock);
  ~Agent();

  // Serves until stopped or idle; then seals, sends what is left for at most stop_wait, returns.
  void Run() ABSL_LOCKS_EXCLUDED(mu_);
  void RequestStop() ABSL_LOCKS_EXCLUDED(mu_);

  // How far all writers are, as of the last visit; from any thread, and after Run.
  struct Summary {
    int writer_count = 0;
    int acked_count = 0;    // closed, and the master holds all of it
    int refused_count = 0;  // the master will not have it
    std::int64_t unacked_bytes = 0;
    std::string refusal;  // of one of them: REASON: text
  };
  Summary summary() const ABSL_LOCKS_EXCLUDED(mu_);

 private:
  Agent(AgentOptions options, FileDescriptor format_directory, AgentLock lock, const Clock& clock);

  void VisitAll();
  void TendAll();
  void ServeNew();
  void ServeRank(FoundWriter found);
  void ServeSampler(FoundWriter found);
  // Those that found no room are served again later.
  void NoteUnserved(const std::string& name, const absl::Status& why);
  // Makes this machine a sampler of the trial that was asked for, if none was found, and another
  // with each attempt.
  void TendSampler();
  void StartSampler();
  void FollowAttempt();
  // kResourceExhausted and the like, told in the log; kUnavailable: it failed just before.
  absl::StatusOr<FoundWriter> MakeSampler();
  // Once a minute.
  void LogUnservable(const absl::Status& why);
  // Of the live ranks here of the trial that is sampled, the one that opened last; null = none.
  const WriterIdentity* NewestLiveRank() const;
  // As given, else that of the newest live rank. Empty: the master's newest attempt.
  std::string WantedAttemptKey() const;
  bool IsSampled(const RankWriter& writer) const;
  bool IsOurSampler(const FoundWriter& found) const;
  SamplerWriter::Surroundings Surroundings() const;
  void ShareSpool();
  void RemoveOld();
  bool IdleForLong();
  bool AllDone() const;
  bool AllAcked() const;
  void Summarize() ABSL_LOCKS_EXCLUDED(mu_);
  void Drain();
  // Until the next visit is due; settles writers that close meanwhile. False when stopping.
  bool WaitForVisit() ABSL_LOCKS_EXCLUDED(mu_);
  void Wake() ABSL_LOCKS_EXCLUDED(mu_);

  const AgentOptions options_;
  const Clock& clock_;
  const FileDescriptor format_directory_;
  const AgentLock lock_;
  Sender sender_;
  ServeContext context_;
  WriterFinder finder_;
  std::map<std::string, std::unique_ptr<RankWriter>> writers_;  // by directory name
  // Of this run, null without a trial.
  std::unique_ptr<SamplerWriter> sampler_;
  // When the rank opened whose attempt is sampled: an older attempt that outlives a newer one does
  // not take the sampler back.
  std::int64_t attempt_opened_us_ = INT64_MIN;
  // Samplers of earlier agents and attempts: only their rest and their Close are left to send.
  struct Ended {
    std::unique_ptr<ServedWriter> served;
    absl::Duration done_at = absl::InfiniteDuration();
  };
  std::map<std::string, Ended> ended_samplers_;  // by directory name
  // Directories that only wait for their time to go.
  std::map<std::string, absl::Duration> left_since_;
  std::vector<std::string> roomless_;
  absl::Duration roomless_at_ = absl::ZeroDuration();
  absl::Time sampler_logged_ = absl::InfinitePast();
  absl::Duration sampler_tried_at_ = -absl::InfiniteDuration();
  absl::Duration visit_due_ = absl::ZeroDuration();
  bool any_seen_ = false;
  absl::Duration busy_at_ = absl::ZeroDuration();
  absl::Duration bound_read_at_ = -absl::InfiniteDuration();
  std::int64_t spool_bytes_max_ = 0;  // as last read: of all spools

  mutable absl::Mutex mu_;
  Summary summary_ ABSL_GUARDED_BY(mu_);
  bool stopping_ ABSL_GUARDED_BY(mu_) = false;
  bool woken_ ABSL_GUARDED_BY(mu_) = false;
  // Last: its threads call into what is above.
  std::unique_ptr<Stream> stream_;
};

}  // namespace stepwell::agent
