// Identity is who a writer is: the contents of writer.json. It is decided once, at open, from the
// caller's options and the environment that launchers set.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "client/recorder/src/environment.h"
#include "client/recorder/src/sampling_wish.h"

namespace stepwell::recorder {

// Where the agent records its spans as a trace: STEPWELL_TRACES, STEPWELL_TRACES_KEEP, STEPWELL_TRACES_UPLOAD.
struct TracingWish {
  std::string directory = {};    // absolute; empty = nowhere
  std::int32_t kept_max = 0;     // finished traces of this rank; 0 = all
  bool uploads = true;           // finished ones go to the master, too
  std::int32_t cycle_steps = 0;  // a file for so many batches; 0 = one for the writer
};

struct Identity {
  std::string writer;  // a version 4 UUID
  std::string server;  // empty = the agent's own; "offline" = none
  std::string project;
  std::string trial;  // an external id, or "id:7"
  std::string attempt_key;
  std::int32_t rank = -1;  // -1 in the wishes = from the environment, else 0
  // -1 in the wishes = from the environment; else 1 for a process that knows of no rank, 0 (unknown)
  // for one that does.
  std::int32_t world_size = -1;
  std::string token;
  bool renews_token =
      false;  // it was fetched for this trial, and its agent fetches the next one with it
  std::string boot_id;
  std::map<std::string, std::string> labels;
  std::map<std::string, std::string> placement;  // pod and slurm_job, where it is in such
  std::string rings;  // the directory of its rings in shared memory, empty = none
  std::string path;   // of the writer's own directory, absolute; empty = not known
  SamplingWish sampling;
  TracingWish tracing;
  std::int64_t pid = 0;
  std::int64_t opened_time_us = 0;
  std::uint64_t opened_monotonic_ns = 0;
};

// Fills what `wishes` leaves open from the environment; explicit wishes win, but for
// STEPWELL_OFFLINE, which holds for all that a person starts. Without a trial name all ranks of a
// job arrive at the same one without talking. What cannot be is told in `remarks`. Pure.
Identity ResolveIdentity(Identity wishes, const Environment& environment,
                         std::vector<std::string>& remarks);

// One JSON object, one line.
std::string ToJson(const Identity& identity);

std::string NewUuid();
std::string ReadBootId();

}  // namespace stepwell::recorder
