// HostileNotes: any bytes as the notes that lie in a spool: of a trace that is to be uploaded, which trainings write as well, of
// masters that cannot be reached, and of tokens that an agent keeps. What is taken keeps its bounds, and means the same when it is written again. Header
// only; confined to one thread.
#pragma once

#include <fcntl.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/check.h"
#include "base/utf8.h"
#include "client/agent/file_descriptor.h"
#include "client/agent/kept_tokens.h"
#include "client/agent/link_note.h"
#include "client/agent/trace_job.h"
#include "tests/fuzz/hostile_bytes.h"

namespace stepwell::testing {

// The first byte of an input, in seeds a digit.
enum class HostileNotesKind : std::uint8_t { kJob, kDeepJob, kLinks, kTokens };
inline constexpr std::uint8_t kHostileNotesKinds = 4;
// An agent reads no more of one.
inline constexpr std::size_t kHostileNoteBytesMax = 512 << 10;

inline void ReadHostileJob(std::string_view json) {
  const auto job = agent::ParseTraceJob(json);
  if (!job.ok()) {
    STEPWELL_CHECK(absl::IsInvalidArgument(job.status()) && !job.status().message().empty());
    return;
  }
  STEPWELL_CHECK(job->path.front() == '/' && job->path.size() <= 4096);
  STEPWELL_CHECK(job->path.find('\0') == std::string::npos);
  STEPWELL_CHECK(!job->writer.trial.empty() && job->writer.rank >= 0);
  for (const std::int32_t number : {job->epoch, job->first_batch, job->last_batch}) {
    STEPWELL_CHECK(number >= -1);
  }
  const std::string text = agent::ToTraceJobJson(*job);
  const auto again = agent::ParseTraceJob(text);
  STEPWELL_CHECK(again.ok() && agent::ToTraceJobJson(*again) == text);
  STEPWELL_CHECK(again->path == job->path && again->removes_file == job->removes_file);
  STEPWELL_CHECK(again->writer.token == job->writer.token);
}

// As deep as a note has room for, in each of its places.
inline void ReadHostileDeepJob(HostileBytes& input) {
  const std::size_t depth = input.Take<std::uint8_t>() * std::size_t{256};
  const bool is_list = input.Take<std::uint8_t>() % 2 == 0;
  std::string json(R"({"path":"/x","writer":)");
  std::string behind;
  for (std::size_t i = 0; i < depth && json.size() + i < kHostileNoteBytesMax; ++i) {
    json += is_list ? "[" : "{\"a\":";
    behind += is_list ? "]" : "}";
  }
  json += input.at_end() ? "1" : input.rest();
  ReadHostileJob(json + behind + "}");
}

inline void ReadHostileLinks(std::string_view bytes) {
  static const HostileFolder folder;
  folder.Write(agent::kLinkNoteFile, bytes);
  const auto directory = agent::OpenAt(AT_FDCWD, folder.path().string(), O_RDONLY | O_DIRECTORY);
  STEPWELL_CHECK(directory.ok());
  const agent::LinkFacts facts = agent::ReadLinkNote(directory->get());
  std::size_t size = facts.server.size();
  for (const auto& [address, why] : facts.troubles) size += address.size() + why.size();
  STEPWELL_CHECK(size <= bytes.size());
  agent::LinkNote note(directory->get(), facts.server);
  note.Follow(facts.troubles);
  // JSON was UTF-8, and so is what it says.
  STEPWELL_CHECK(agent::ReadLinkNote(directory->get()) == facts);
}

inline void ReadHostileTokens(std::string_view bytes) {
  static const HostileFolder folder;
  folder.Write(agent::kKeptTokensFile, bytes);
  const auto directory = agent::OpenAt(AT_FDCWD, folder.path().string(), O_RDONLY | O_DIRECTORY);
  STEPWELL_CHECK(directory.ok());
  const auto tokens = agent::ReadKeptTokens(directory->get(), absl::UnixEpoch());
  for (const agent::KeptToken& each : tokens) {
    STEPWELL_CHECK(agent::IsTokenText(each.text) && each.ends > absl::UnixEpoch());
  }
  STEPWELL_CHECK(agent::WriteKeptTokens(directory->get(), tokens).ok());
  const auto again = agent::ReadKeptTokens(directory->get(), absl::UnixEpoch());
  // Written with every name, they may take more than was read.
  STEPWELL_CHECK(again.size() <= tokens.size());
  STEPWELL_CHECK(std::equal(again.begin(), again.end(), tokens.begin()));
}

inline void ReadHostileNotes(std::string_view bytes) {
  HostileBytes input(bytes);
  switch (HostileNotesKind{
      static_cast<std::uint8_t>(input.Take<std::uint8_t>() % kHostileNotesKinds)}) {
    case HostileNotesKind::kJob:
      return ReadHostileJob(input.rest());
    case HostileNotesKind::kDeepJob:
      return ReadHostileDeepJob(input);
    case HostileNotesKind::kLinks:
      return ReadHostileLinks(input.rest());
    case HostileNotesKind::kTokens:
      return ReadHostileTokens(input.rest());
  }
}

}  // namespace stepwell::testing
