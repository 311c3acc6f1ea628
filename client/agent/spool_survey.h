// SpoolSurvey: what lies below a spool root: its writers, what of them waits, whether an agent serves
// it. Read without a trace: nothing is locked, cut, made or removed, so that it works beside a running
// agent and on a copy of another machine's directory. What it reads changes meanwhile: numbers are
// within a frame or two of each other.
//
//   STEPWELL_ASSIGN_OR_RETURN(const SpoolSurvey survey, SurveySpool("/tmp/stepwell-1000"));
//   if (survey.agent_pid == 0) ...
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/agent/link_note.h"
#include "client/agent/writer_identity.h"

namespace stepwell::agent {

// A frame that is in the spool, acked or not.
struct SurveyedFrame {
  std::uint64_t sequence = 0;
  std::int64_t bytes = 0;
  std::int64_t sealed_time_us = 0;
  std::uint64_t sample_count = 0;
};

// One writer's directory.
struct SurveyedWriter {
  // Its name below the format directory.
  std::string name;
  // Set: what it is cannot be told, and why; the rest is then empty.
  std::string trouble;
  WriterIdentity identity;
  // Where its rings may lie in shared memory; "" = nowhere.
  std::string rings;
  // The process lives; a machine's sampler has none.
  bool is_live = false;
  // 0 = not known: dead, or in a PID namespace that is not seen from here.
  pid_t pid = 0;
  // It said that it ended: close() of a recorder, the orderly end of a sampler.
  bool is_closed = false;
  // The master holds all of it, its end included.
  bool is_done = false;
  // "REASON: message" of a master that would not have it; empty = none did.
  std::string refusal;
  // Forked workers that live.
  int worker_count = 0;

  // Frames in the spool behind the last ack that is known here.
  std::uint64_t unacked_frames = 0;
  std::uint64_t unacked_samples = 0;
  std::int64_t unacked_bytes = 0;
  // When the oldest of them was sealed; 0 = there is none.
  std::int64_t unacked_since_us = 0;
  // Of the living spool; each retirement of the writer begins another, with sequences of its own.
  std::uint32_t spool_number = 0;
  std::uint64_t acked_sequence = 0;
  std::vector<SurveyedFrame> frames;
  // Of all segments, acked ones included.
  std::int64_t spool_bytes = 0;

  // Events in rings that are in no frame yet, and how many have room there.
  std::uint64_t ring_events = 0;
  std::uint64_t ring_events_max = 0;
  // Events that found no room.
  std::uint64_t dropped_events = 0;
  // In shared memory, which a restart of the machine clears.
  bool rings_in_memory = false;
  // They are to be in shared memory of which there is nothing here.
  bool rings_missing = false;
};

struct SpoolSurvey {
  std::string root;
  // An agent serves it; its process, 0 where that is not seen from here.
  bool is_served = false;
  pid_t agent_pid = 0;
  // What it says of its masters; nothing where it does not serve.
  LinkFacts links;
  // By name.
  std::vector<SurveyedWriter> writers;
  // Notes of traces that are to be uploaded, or finished first.
  std::uint64_t trace_notes = 0;
  std::string traces_trouble;  // why they could not be listed
};

// kNotFound: there is no such directory, or it is no spool root. `served_by`: the root whose agent
// serves this one, too (that of all users of a machine); empty = none.
absl::StatusOr<SpoolSurvey> SurveySpool(const std::string& root, const std::string& served_by = "");

}  // namespace stepwell::agent
