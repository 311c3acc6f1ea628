// AgentStatusView: the text and the JSON of `stepwell agent status`: what waits on this machine,
// whether it is being shipped, and what to do about it. Pure; tested against golden files.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "client/cli/terminal.h"

namespace stepwell::cli {

// One writer, as its directory tells.
struct SpooledWriter {
  std::string writer;
  // Set: it cannot be told what it is, and why; the rest is then empty.
  std::string trouble;
  std::string project;
  std::string trial;
  bool is_sampler = false;
  int rank = 0;
  // live, ended (it said so), died, sampling, or stored (the master holds all of it).
  std::string state;
  int pid = 0;  // 0 = not known
  int worker_count = 0;
  // Empty = its agent's; "offline" = nobody's until an upload.
  std::string server;
  // "REASON: message" of a master that would not have it; empty = none did.
  std::string refusal;
  // Why its master cannot be reached now; empty = nothing is known.
  std::string unreachable;
  // `server` is no address: as offline.
  bool is_server_unusable = false;
  std::uint64_t unacked_frames = 0;
  std::uint64_t unacked_samples = 0;
  std::int64_t unacked_bytes = 0;
  std::int64_t unacked_since_us = 0;  // 0 = nothing is
  std::int64_t spool_bytes = 0;
  std::uint64_t ring_events = 0;
  std::uint64_t ring_events_max = 0;
  std::uint64_t dropped_events = 0;
  bool rings_in_memory = false;
  bool rings_missing = false;

  bool is_live() const { return state == "live"; }
  // No agent sends it: it stays for an upload.
  bool is_kept() const { return server == "offline" || is_server_unusable; }
  // Something of it is not known to be stored.
  bool waits() const {
    return trouble.empty() && state != "stored" && (unacked_frames > 0 || ring_events > 0);
  }
};

struct SpoolStatus {
  std::string root;
  bool is_served = false;
  int agent_pid = 0;  // 0 = none, or not known
  std::vector<SpooledWriter> writers;
};

// What a person should know or do about `spool`, in sentences; never empty.
std::vector<std::string> AdviceFor(const SpoolStatus& spool, std::int64_t now_us);

// `places`: where was looked, for who has no spool.
std::string AgentStatusText(const std::vector<SpoolStatus>& spools,
                            const std::vector<std::string>& places, std::int64_t now_us,
                            const Paint& paint);
// {"spools": [{"root": ..., "agent": {...}, "writers": [...], "advice": [...]}]}
std::string AgentStatusJson(const std::vector<SpoolStatus>& spools, std::int64_t now_us);

}  // namespace stepwell::cli
