// HostileSurvey: a writer's folder in a spool with any files in it, as `stepwell agent status`
// reads it: whatever they say, it tells of one writer, whose numbers hold together, twice the same.
// Header only; confined to one thread.
#pragma once

#include <sys/prctl.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "absl/strings/str_split.h"
#include "base/check.h"
#include "client/agent/spool_survey.h"
#include "client/recorder/src/spool_format.h"
#include "tests/fuzz/hostile_bytes.h"
#include "tests/fuzz/hostile_segment.h"

namespace stepwell::testing {

inline constexpr char kSurveyedWriter[] = "30313233-3435-4637-b839-616263646566";

// A name of at most three parts, each one that a folder can have.
inline bool IsSurveyedPath(std::string_view path) {
  int parts = 0;
  for (const absl::string_view part :
       absl::StrSplit(absl::string_view(path.data(), path.size()), '/')) {
    if (!HostileFolder::IsName({part.data(), part.size()}) || ++parts > 3) return false;
  }
  return true;
}

inline void CheckSurveyed(const agent::SurveyedWriter& writer) {
  STEPWELL_CHECK(writer.name == kSurveyedWriter);
  if (!writer.trouble.empty()) {
    STEPWELL_CHECK(writer.frames.empty() && writer.refusal.empty() && writer.spool_bytes == 0);
    return;
  }
  STEPWELL_CHECK(!writer.identity.trial.empty() && writer.refusal.size() <= 1024);
  // Nobody holds a lock in it.
  STEPWELL_CHECK(!writer.is_live && writer.pid == 0 && writer.worker_count == 0);
  STEPWELL_CHECK(writer.ring_events <= writer.ring_events_max);
  std::uint64_t frames = 0;
  std::uint64_t samples = 0;
  std::int64_t bytes = 0;
  std::int64_t unacked_bytes = 0;
  for (const agent::SurveyedFrame& frame : writer.frames) {
    STEPWELL_CHECK(frame.bytes > 0);
    bytes += frame.bytes;
    if (frame.sequence <= writer.acked_sequence) continue;
    ++frames;
    samples += frame.sample_count;
    unacked_bytes += frame.bytes;
  }
  STEPWELL_CHECK(bytes <= writer.spool_bytes);
  STEPWELL_CHECK(frames == writer.unacked_frames && samples == writer.unacked_samples);
  STEPWELL_CHECK(unacked_bytes == writer.unacked_bytes);
  STEPWELL_CHECK(frames > 0 || writer.unacked_since_us == 0);
}

inline agent::SpoolSurvey SurveyHostile(const HostileFolder& folder) {
  const auto survey = agent::SurveySpool(folder.path().string());
  STEPWELL_CHECK(survey.ok() && survey->writers.size() <= 1 && !survey->is_served);
  // Where it saw a token it keeps this process from others, leak checks among them.
  prctl(PR_SET_DUMPABLE, 1);
  return *survey;
}

// Files of: a path's line, u16 length, what it says; a segment's as records.
inline void ReadHostileSurvey(HostileBytes& input) {
  static const HostileFolder folder;
  folder.Clear();
  const std::string home = std::string(spool::kFormatDirectory) + "/" + kSurveyedWriter + "/";
  std::filesystem::create_directories(folder.path() / home);
  bool is_writer = false;
  for (int files = 0; files < 8 && !input.at_end(); ++files) {
    const std::string path(input.TakeUntil('\n'));
    std::string content(input.TakeBytes(input.Take<std::uint16_t>()));
    if (path.ends_with(".seg")) {
      HostileBytes records(content);
      content = HostileSegment(records);
    }
    if (!IsSurveyedPath(path)) continue;
    is_writer |= folder.TryWrite(home + path, content) && path == spool::kWriterFile;
  }
  const agent::SpoolSurvey survey = SurveyHostile(folder);
  // Without its file it is none yet.
  STEPWELL_CHECK(survey.writers.empty() || is_writer ||
                 std::filesystem::exists(folder.path() / home / spool::kWriterFile));
  if (survey.writers.empty()) return;
  const agent::SurveyedWriter& writer = survey.writers.front();
  CheckSurveyed(writer);
  const agent::SpoolSurvey again = SurveyHostile(folder);
  STEPWELL_CHECK(again.writers.size() == 1);
  STEPWELL_CHECK(again.writers.front().trouble == writer.trouble);
  STEPWELL_CHECK(again.writers.front().frames.size() == writer.frames.size());
  STEPWELL_CHECK(again.writers.front().spool_bytes == writer.spool_bytes);
  STEPWELL_CHECK(again.writers.front().ring_events == writer.ring_events);
}

}  // namespace stepwell::testing
