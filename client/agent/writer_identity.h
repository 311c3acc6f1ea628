// WriterIdentity: who a writer is, as `writer.json` in its directory says and as Open tells the
// master. A value.
//
//   STEPWELL_ASSIGN_OR_RETURN(const WriterIdentity identity, ParseWriterJson(bytes));
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "base/uuid.h"

namespace stepwell::agent {

// What the trial wants of the machine's sampling; 0 and empty = the agent's own setting. The words
// are those of SensorSelection, unchecked.
struct SamplingWish {
  bool on = true;
  std::int64_t interval_us = 0;
  std::vector<std::string> groups = {};
  std::vector<std::string> without = {};
  std::vector<std::string> with = {};
  friend bool operator==(const SamplingWish& a, const SamplingWish& b) = default;
};

// Where its spans are recorded as a trace; "" = nowhere.
struct TracingWish {
  std::string directory = {};
  int kept_max = 0;      // finished traces of a rank; 0 = all
  bool uploads = false;  // finished ones go to the master, too
  int cycle_steps = 0;   // a file for so many batches; 0 = one for the writer
  friend bool operator==(const TracingWish& a, const TracingWish& b) = default;
};

struct WriterIdentity {
  Uuid writer;
  // HOST:PORT; "" = the agent's own default, "offline" = kept in the spool. Unchecked.
  std::string server;
  std::string project;
  // A name, or "id:7" for a number given by the caller.
  std::string trial;
  std::string attempt_key;
  bool is_sampler = false;
  std::int32_t rank = 0;
  std::int32_t world_size = 0;
  std::string token;
  // The token was fetched for this trial, and fetches the next one; else it is shown as it is.
  bool renews_token = false;
  std::string boot_id;
  std::map<std::string, std::string> labels;
  // The pod and the Slurm job of its process: "pod", "slurm_job".
  std::map<std::string, std::string> placement;
  // The directory of its rings in shared memory, "" = none.
  std::string rings;
  // Where its process has this directory, "" = it did not say.
  std::string path;
  std::string recorder_version;
  SamplingWish sampling;
  TracingWish tracing;
  // One moment on both clocks, taken by the recorder: converts times of an earlier boot.
  std::int64_t opened_time_us = 0;
  std::uint64_t opened_monotonic_ns = 0;
};

// Checks every field; the text comes from another process. Errors name the field.
absl::StatusOr<WriterIdentity> ParseWriterJson(std::string_view json);
std::string ToWriterJson(const WriterIdentity& identity);

// `text` as the wire takes it: invalid UTF-8 and control characters become '?', and what is longer
// than `bytes_max` is cut at a character and ends in '~' and a checksum, so that two long names
// stay two.
std::string CleanText(std::string_view text, std::size_t bytes_max);

}  // namespace stepwell::agent
