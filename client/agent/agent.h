// Agent: ships everything that recorders below a root write to the masters they name, and samples
// the machine for their trials. Its loop looks at each writer every frame interval and visits those
// where something is new; the streams run beside it.
//
//   STEPWELL_ASSIGN_OR_RETURN(auto agent, Agent::Create(options, BootClock::Get()));
//   agent->Run();          // until RequestStop, or nothing is left to do for long enough
//
// Run is for one thread; RequestStop and summary may be called from any.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "base/clock.h"
#include "client/agent/agent_life.h"
#include "client/agent/agent_lock.h"
#include "client/agent/agent_log.h"
#include "client/agent/agent_options.h"
#include "client/agent/arrival_watch.h"
#include "client/agent/served_root.h"
#include "client/agent/system_roots.h"
#include "client/agent/visit_pace.h"

namespace stepwell::agent {

class Agent {
 public:
  // kAlreadyExists: another agent serves the directory. `clock` outlives the agent.
  static absl::StatusOr<std::unique_ptr<Agent>> Create(AgentOptions options, const Clock& clock);
  ~Agent();

  // Serves until stopped or done; then seals, sends what is left for at most stop_wait, returns.
  void Run() ABSL_LOCKS_EXCLUDED(mu_);
  void RequestStop() ABSL_LOCKS_EXCLUDED(mu_);

  // How far all writers are: of an upload as of the last visit, of others at their end.
  using Summary = ServedRoot::Summary;
  Summary summary() const ABSL_LOCKS_EXCLUDED(mu_);

 private:
  Agent(AgentOptions options, AgentLock lock, const Clock& clock);
  static absl::StatusOr<std::unique_ptr<Agent>> CreateForAll(AgentOptions options,
                                                             const Clock& clock);

  void VisitAll();
  void Serve(const std::string& name, ServedRoot::Place place);
  // Of a system agent: users come, and remove what is theirs.
  void TendRoots();
  AgentLife::Facts facts() const;
  void Summarize() ABSL_LOCKS_EXCLUDED(mu_);
  // Whether nothing is left to do, or nobody takes it, and no recorder came at the last moment.
  AgentLife::Verdict Judge(AgentLife& life);
  // Seals what there is and sends it, as far as `wait` reaches.
  void Drain(absl::Duration wait);
  // Until the next visit is due, or a writer came; settles writers that close meanwhile. False when
  // stopping.
  bool WaitForVisit() ABSL_LOCKS_EXCLUDED(mu_);
  // Until then, or something happened. False when stopping.
  bool Await(absl::Duration due) ABSL_LOCKS_EXCLUDED(mu_);
  // The master answered.
  void Wake() ABSL_LOCKS_EXCLUDED(mu_);
  void SetAwaiting(bool awaiting) ABSL_LOCKS_EXCLUDED(mu_);
  // Something new lies in a root.
  void OnArrival() ABSL_LOCKS_EXCLUDED(mu_);
  // A sampler took ticks.
  void OnTicks() ABSL_LOCKS_EXCLUDED(mu_);
  bool TakeTicked() ABSL_LOCKS_EXCLUDED(mu_);
  bool HasTicked() const ABSL_LOCKS_EXCLUDED(mu_);
  bool MaySkip(absl::Duration now) const ABSL_LOCKS_EXCLUDED(mu_);
  bool AreSamplersDue(const std::set<TrialKey>& trials) ABSL_LOCKS_EXCLUDED(mu_);
  // Visits may be far apart: what happens meanwhile says so itself.
  bool MayRest() const;

  const AgentOptions options_;
  const Clock& clock_;
  AgentLock lock_;
  std::optional<AgentLog> log_;
  absl::Duration visit_due_ = absl::ZeroDuration();
  VisitPace visits_;
  VisitPace sampler_visits_;
  bool resting_ = false;
  std::set<TrialKey> sampled_trials_;  // as they were then
  bool draining_ = false;

  mutable absl::Mutex mu_;
  Summary summary_ ABSL_GUARDED_BY(mu_);
  bool stopping_ ABSL_GUARDED_BY(mu_) = false;
  bool woken_ ABSL_GUARDED_BY(mu_) = false;
  // A recorder waits in close(): answers are looked at when they come, not at the next visit.
  bool awaiting_ ABSL_GUARDED_BY(mu_) = false;
  bool arrived_ ABSL_GUARDED_BY(mu_) = false;
  // Of interest while resting alone.
  bool ticked_ ABSL_GUARDED_BY(mu_) = false;
  // Of a system agent.
  std::unique_ptr<SystemRoots> users_;
  FileDescriptor users_format_directory_;  // of the system's root, not of theirs
  // Of all users together.
  std::shared_ptr<CaptureRoom> users_captures_;
  // By user, or the one. After what is above: their streams' threads call into what is above.
  std::map<std::string, std::unique_ptr<ServedRoot>> roots_;
  ArrivalWatch arrivals_;
};

}  // namespace stepwell::agent
