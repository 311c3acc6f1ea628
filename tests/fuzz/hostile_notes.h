// HostileNotes: any bytes as the notes that lie in a spool: of a trace that is to be uploaded,
// which trainings write as well, of masters that cannot be reached, of tokens that an agent keeps,
// and of where ticks ended; and any names of folders in it, whose users make what they like. What
// is taken keeps its bounds, and means the same when it is written again. Header only; confined to
// one thread.
#pragma once

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/utf8.h"
#include "client/agent/chunk_builder.h"
#include "client/agent/ended_ticks.h"
#include "client/agent/file_descriptor.h"
#include "client/agent/kept_tokens.h"
#include "client/agent/link_note.h"
#include "client/agent/spool_numbers.h"
#include "client/agent/system_roots.h"
#include "client/agent/trace_job.h"
#include "client/agent/worker_name.h"
#include "client/recorder/src/spool_format.h"
#include "tests/fuzz/hostile_bytes.h"

namespace stepwell::testing {

// The first byte of an input, in seeds a digit.
enum class HostileNotesKind : std::uint8_t {
  kJob,
  kDeepJob,
  kLinks,
  kTokens,
  kEnded,
  kNames,
  kRoots,
};
inline constexpr std::uint8_t kHostileNotesKinds = 7;
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

inline void ReadHostileEnded(std::string_view text) {
  const auto ended = agent::ParseEndedTicks(std::string(text));
  if (!ended) return;
  STEPWELL_CHECK(ended->last_time_us > 0 && ended->interval_us > 0);
  STEPWELL_CHECK(ended->sample_count <= agent::kBodySamplesMax);
  STEPWELL_CHECK(agent::ParseEndedTicks(agent::TextOf(*ended)) == ended);
}

// A line each, as folders of a writer: its spools, and its forked workers. None stands for two
// names.
inline void ReadHostileFolderNames(HostileBytes& input) {
  std::vector<std::string> names;
  while (!input.at_end()) names.emplace_back(input.TakeUntil('\n'));
  for (const std::string& name : names) {
    const auto worker = agent::ParseWorkerName(name);
    if (!worker) continue;
    STEPWELL_CHECK(agent::TextOf(*worker) == name && worker->index < spool::kWorkerCountMax);
  }
  // As a folder lists them: each once.
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  const std::vector<std::uint32_t> numbers = agent::SpoolNumbers(names);
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    STEPWELL_CHECK(i == 0 || numbers[i - 1] < numbers[i]);
    STEPWELL_CHECK(numbers[i] + 1 != 0);
    STEPWELL_CHECK(std::binary_search(names.begin(), names.end(), std::to_string(numbers[i])));
  }
}

// Folders below the root of a system agent. In the byte before a name: it has a spool's folder, it
// is closed to others. Only that of whoever owns them is served, once.
inline void ReadHostileRoots(HostileBytes& input) {
  static const HostileFolder folder;
  static FakeClock clock;
  folder.Clear();
  bool is_there = false;
  const std::string own = "u" + std::to_string(geteuid());
  for (int roots = 0; roots < 8 && !input.at_end(); ++roots) {
    const auto form = input.Take<std::uint8_t>();
    const std::string name(input.TakeUntil('\n'));
    if (!HostileFolder::IsName(name)) continue;
    const auto path = (folder.path() / name).string();
    if (mkdir(path.c_str(), 0700) != 0) continue;
    if (form % 2 != 0) mkdir((path + "/" + spool::kFormatDirectory).c_str(), 0700);
    if ((form & 2) == 0) chmod(path.c_str(), 0755);
    is_there |= name == own && (form & 3) == 3;
  }
  auto directory = agent::OpenAt(AT_FDCWD, folder.path().string(), O_RDONLY | O_DIRECTORY);
  STEPWELL_CHECK(directory.ok());
  agent::SystemRoots below(*std::move(directory), clock);
  const auto found = below.FindNew();
  STEPWELL_CHECK(found.size() == (is_there ? 1 : 0));
  if (is_there) STEPWELL_CHECK(found[0].name == own && found[0].owner.uid == geteuid());
  clock.Advance(absl::Seconds(2));
  STEPWELL_CHECK(below.FindNew().empty());
}

inline void ReadHostileNotes(std::string_view bytes) {
  static const bool is_quiet = [] {
    log::Setup({.level = log::Level::kError});
    return true;
  }();
  (void)is_quiet;
  HostileBytes input(bytes);
  switch (HostileNotesKind{
      static_cast<std::uint8_t>((input.Take<std::uint8_t>() + 1) % kHostileNotesKinds)}) {
    case HostileNotesKind::kJob:
      return ReadHostileJob(input.rest());
    case HostileNotesKind::kDeepJob:
      return ReadHostileDeepJob(input);
    case HostileNotesKind::kLinks:
      return ReadHostileLinks(input.rest());
    case HostileNotesKind::kTokens:
      return ReadHostileTokens(input.rest());
    case HostileNotesKind::kEnded:
      return ReadHostileEnded(input.rest());
    case HostileNotesKind::kNames:
      return ReadHostileFolderNames(input);
    case HostileNotesKind::kRoots:
      return ReadHostileRoots(input);
  }
}

}  // namespace stepwell::testing
