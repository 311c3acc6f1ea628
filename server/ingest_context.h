// IngestContext: what all streams of a master share.
#pragma once

#include <cstdint>
#include <functional>

#include "base/clock.h"
#include "server/access_control.h"
#include "server/agent_version.h"
#include "server/commit_group.h"
#include "server/credit_plan.h"
#include "server/heads.h"
#include "server/ingest_stats.h"
#include "server/master_state.h"
#include "server/rate_limits.h"
#include "server/writer_director.h"
#include "server/writer_registry.h"
#include "storage/ingest_store.h"

namespace stepwell {

// All outlive the streams.
struct IngestContext {
  IngestStore& store;
  CommitQueue& queue;
  Heads& heads;
  MasterState& state;
  IngestStats& stats;
  WriterRegistry& registry;
  WriterDirector& director;
  const Clock& clock;
  // A Close was committed: fold soon.
  std::function<void(TrialId)> on_close = [](TrialId) {};
  // Older agents of ours are refused.
  AgentVersion minimum_agent_version = kAgentVersionMin;
  // Whether the trial's profiling window has passed; may ask the database.
  std::function<bool(TrialId)> window_over = [](TrialId) { return false; };
  // A writer's client says how far a capture of its trace is.
  std::function<void(TrialId, WriterNo, std::uint64_t generation, const v1::CaptureReport&)>
      on_capture_report = [](TrialId, WriterNo, std::uint64_t, const v1::CaptureReport&) {};
  // Asked as a writer opens, never for what it sends; null = nobody is asked for a token.
  const AccessControl* access = nullptr;
  // What each token and each address may send; null = nothing is limited.
  RateLimits* rates = nullptr;
  // Beyond which nobody has credit.
  std::int64_t unfolded_bytes_max = CreditLoad().unfolded_bytes_max;

  // What a writer may send now before it must wait for acks; see PlanCredit.
  std::int64_t Credit() const;
};

}  // namespace stepwell
