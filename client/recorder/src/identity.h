// Identity is who a writer is: the contents of writer.json. It is decided once, at open, from the
// caller's options and the environment that launchers set.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>

namespace stepwell::recorder {

struct Identity {
  std::string writer;  // a version 4 UUID
  std::string server;  // empty = the agent's own
  std::string project;
  std::string trial;  // an external id, or "id:7"
  std::string attempt_key;
  std::int32_t rank = -1;  // -1 in the wishes = from the environment, else 0
  // -1 in the wishes = from the environment; else 1 for a process that knows of no rank, 0 (unknown)
  // for one that does.
  std::int32_t world_size = -1;
  std::string token;
  std::string boot_id;
  std::map<std::string, std::string> labels;
  std::string rings;  // the directory of its rings in shared memory, empty = none
  std::int64_t pid = 0;
  std::int64_t opened_time_us = 0;
  std::uint64_t opened_monotonic_ns = 0;
};

// Reads a variable, null when it is not set; `getenv` outside tests.
using Environment = std::function<const char*(const char*)>;

// Fills what `wishes` leaves open from the environment; explicit wishes win. Without a trial name
// all ranks of a job arrive at the same one without talking. Pure.
Identity ResolveIdentity(Identity wishes, const Environment& environment);

// One JSON object, one line.
std::string ToJson(const Identity& identity);

std::string NewUuid();
std::string ReadBootId();

}  // namespace stepwell::recorder
