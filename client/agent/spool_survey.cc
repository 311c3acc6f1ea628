#include "client/agent/spool_survey.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/process_secrets.h"
#include "base/status_macros.h"
#include "client/agent/file_descriptor.h"
#include "client/agent/refusal_note.h"
#include "client/agent/spool.h"
#include "client/agent/spool_numbers.h"
#include "client/agent/spool_record.h"
#include "client/agent/surveyed_rings.h"
#include "client/agent/trace_outbox.h"
#include "client/agent/worker_name.h"
#include "client/recorder/src/spool_format.h"

namespace stepwell::agent {
namespace {

constexpr std::size_t kWriterJsonBytesMax = 256 << 10;
// Two segments' worth: what is larger is none of ours.
constexpr std::size_t kSegmentBytesMax = 48 << 20;

struct LockState {
  bool is_held = false;
  pid_t holder = 0;
};

// Of `bytes` bytes from `start` on. F_GETLK needs no write access and leaves no lock.
LockState AskLock(int directory, const char* name, off_t start, off_t bytes) {
  LockState state;
  const absl::StatusOr<FileDescriptor> file = OpenAt(directory, name, O_RDONLY | O_NONBLOCK);
  if (!file.ok()) return state;
  struct flock lock {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  lock.l_start = start;
  lock.l_len = bytes;
  state.is_held = fcntl(file->get(), F_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
  state.holder = state.is_held ? std::max<pid_t>(lock.l_pid, 0) : 0;
  return state;
}

// What one spool holds, as its records tell.
struct SpoolContent {
  std::vector<SurveyedFrame> frames;
  std::uint64_t acked_sequence = 0;
  Checkpoint checkpoint;

  void Take(const RecordView& record) {
    if (record.type == RecordType::kSegmentStart) {
      const auto start = SegmentStart::Decode(record.payload);
      if (start) acked_sequence = std::max(acked_sequence, start->acked_sequence);
    } else if (record.type == RecordType::kAcked) {
      const auto mark = AckedMark::Decode(record.payload);
      if (mark) acked_sequence = mark->sequence;
    } else if (record.type == RecordType::kFrame) {
      Frame frame;
      Checkpoint newer;
      if (!Frame::Decode(record.payload, frame, &newer)) return;
      checkpoint.MergeFrom(newer);
      frames.push_back({frame.sequence,
                        static_cast<std::int64_t>(record.payload.size() + kRecordHeaderBytes),
                        frame.sealed_time_us, frame.span.sample_count});
    } else if (record.type == RecordType::kCheckpoint) {
      Checkpoint newer;
      if (Checkpoint::Decode(record.payload, newer)) checkpoint.MergeFrom(newer);
    }
  }
};

bool IsSegment(const std::string& name) { return absl::EndsWith(name, ".seg"); }

std::int64_t BytesOf(int directory, const std::string& name) {
  struct stat found {};
  return fstatat(directory, name.c_str(), &found, AT_SYMLINK_NOFOLLOW) == 0 ? found.st_size : 0;
}

void ReadSegment(int directory, const std::string& name, SpoolContent& content) {
  const absl::StatusOr<std::string> bytes = ReadSmallFileAt(directory, name, kSegmentBytesMax);
  // Freed since it was listed: all of it was acked.
  if (!bytes.ok()) return;
  RecordReader reader(*bytes);
  while (const auto record = reader.Next()) content.Take(*record);
}

// The folder of the highest number is the living spool; what lower ones held has moved there.
void SurveyFrames(int writer_directory, SurveyedWriter& writer, Checkpoint& checkpoint) {
  const auto root = OpenDirectoryAt(writer_directory, "spool", WhenAbsent::kFail);
  if (!root.ok()) return;
  const absl::StatusOr<std::vector<std::string>> folders = ListNames(root->get());
  if (!folders.ok()) return;
  const std::vector<std::uint32_t> numbers = SpoolNumbers(*folders);
  const std::uint32_t living = numbers.empty() ? 0 : numbers.back();
  SpoolContent content;
  for (const std::string& folder : *folders) {
    const auto directory = OpenDirectoryAt(root->get(), folder, WhenAbsent::kFail);
    if (!directory.ok()) continue;
    absl::StatusOr<std::vector<std::string>> names = ListNames(directory->get());
    if (!names.ok()) continue;
    std::erase_if(*names, [](const std::string& name) { return !IsSegment(name); });
    std::sort(names->begin(), names->end());
    for (std::size_t i = 0; i < names->size(); ++i) {
      writer.spool_bytes += BytesOf(directory->get(), (*names)[i]);
      // An agent takes no more of them.
      const bool is_read =
          folder == absl::StrCat(living) && names->size() - i <= Spool::kSegmentCountMax;
      if (is_read) ReadSegment(directory->get(), (*names)[i], content);
    }
  }
  checkpoint = std::move(content.checkpoint);
  // The last acks are not written where nothing follows them.
  if (writer.is_done && !content.frames.empty()) {
    content.acked_sequence = std::max(content.acked_sequence, content.frames.back().sequence);
  }
  writer.acked_sequence = content.acked_sequence;
  writer.spool_number = living;
  for (const SurveyedFrame& frame : content.frames) {
    if (frame.sequence <= content.acked_sequence) continue;
    ++writer.unacked_frames;
    writer.unacked_samples += frame.sample_count;
    writer.unacked_bytes += frame.bytes;
    if (writer.unacked_since_us == 0 || frame.sealed_time_us < writer.unacked_since_us) {
      writer.unacked_since_us = frame.sealed_time_us;
    }
  }
  writer.frames = std::move(content.frames);
}

void AddRings(const SurveyedRings& rings, SurveyedWriter& writer) {
  writer.ring_events += rings.events;
  writer.ring_events_max += rings.events_max;
  writer.dropped_events += rings.dropped;
  writer.rings_in_memory |= rings.shared_count > 0;
}

void SurveyWorkers(int directory, int shared, SurveyedWriter& writer) {
  const absl::StatusOr<std::vector<std::string>> names = ListNames(directory);
  if (!names.ok()) return;
  for (const std::string& name : *names) {
    const std::optional<WorkerName> worker = ParseWorkerName(name);
    if (!worker) continue;
    const auto own = OpenDirectoryAt(directory, name, WhenAbsent::kFail);
    if (!own.ok()) continue;
    absl::StatusOr<FileDescriptor> in_memory = absl::NotFoundError("");
    if (shared >= 0) in_memory = OpenDirectoryAt(shared, name, WhenAbsent::kFail);
    // How far its rings are lies in their own tails.
    AddRings(SurveyRings(own->get(), in_memory.ok() ? in_memory->get() : -1, Checkpoint()), writer);
    if (AskLock(directory, spool::kLockFile, 1 + static_cast<off_t>(worker->index), 1).is_held) {
      ++writer.worker_count;
    }
  }
}

void SurveyProcess(int directory, const Checkpoint& checkpoint, SurveyedWriter& writer) {
  const LockState lock = AskLock(directory, spool::kLockFile, 0, 1);
  const LockState workers = AskLock(directory, spool::kLockFile, 1, spool::kWorkerCountMax);
  writer.is_live = lock.is_held || workers.is_held;
  writer.pid = lock.holder;
  absl::StatusOr<FileDescriptor> shared = absl::NotFoundError("");
  if (!writer.rings.empty()) {
    shared = OpenDirectoryAt(AT_FDCWD, writer.rings, WhenAbsent::kFail);
  }
  const int shared_fd = shared.ok() ? shared->get() : -1;
  const SurveyedRings rings = SurveyRings(directory, shared_fd, checkpoint);
  writer.is_closed = rings.is_closed;
  AddRings(rings, writer);
  SurveyWorkers(directory, shared_fd, writer);
  // A directory that an agent swept away was empty.
  writer.rings_missing =
      !writer.rings.empty() && !shared.ok() && !writer.is_closed && writer.ring_events_max == 0;
}

// kNotFound: it is no writer, not yet or never.
absl::StatusOr<std::string> ReadWriterJson(int format_directory, const std::string& name,
                                           FileDescriptor& directory) {
  STEPWELL_ASSIGN_OR_RETURN(directory, OpenDirectoryAt(format_directory, name, WhenAbsent::kFail));
  return ReadSmallFileAt(directory.get(), spool::kWriterFile, kWriterJsonBytesMax);
}

// Nothing where it is no writer.
std::optional<SurveyedWriter> SurveyWriter(int format_directory, const std::string& name) {
  SurveyedWriter writer;
  writer.name = name;
  FileDescriptor directory;
  const absl::StatusOr<std::string> json = ReadWriterJson(format_directory, name, directory);
  if (absl::IsNotFound(json.status())) return std::nullopt;
  absl::StatusOr<WriterIdentity> identity = absl::UnknownError("");
  if (json.ok()) identity = ParseWriterJson(*json);
  if (!json.ok() || !identity.ok()) {
    writer.trouble = std::string((json.ok() ? identity.status() : json.status()).message());
    return writer;
  }
  writer.identity = *std::move(identity);
  if (!writer.identity.token.empty()) KeepMemoryPrivate();
  const nlohmann::json document = nlohmann::json::parse(*json, nullptr, /*allow_exceptions=*/false);
  if (const auto rings = document.find("rings"); rings != document.end() && rings->is_string()) {
    writer.rings = rings->get<std::string>();
  }
  const auto has = [&](const char* file) {
    return faccessat(directory.get(), file, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
  };
  writer.is_done = has("done");
  writer.refusal = ReadRefusalNote(directory.get());
  Checkpoint checkpoint;
  SurveyFrames(directory.get(), writer, checkpoint);
  if (writer.identity.is_sampler) {
    writer.is_closed = has("sampler.closed");
  } else {
    SurveyProcess(directory.get(), checkpoint, writer);
  }
  return writer;
}

LockState AskAgent(const std::string& root) {
  const auto format = OpenDirectoryAt(AT_FDCWD, absl::StrCat(root, "/", spool::kFormatDirectory),
                                      WhenAbsent::kFail);
  return format.ok() ? AskLock(format->get(), spool::kAgentLockFile, 0, 1) : LockState();
}

}  // namespace

absl::StatusOr<SpoolSurvey> SurveySpool(const std::string& root, const std::string& served_by) {
  SpoolSurvey survey;
  survey.root = root;
  const auto directory = OpenDirectoryAt(AT_FDCWD, root, WhenAbsent::kFail);
  if (absl::IsFailedPrecondition(directory.status())) {
    return absl::NotFoundError(absl::StrCat(root, " is no directory, or a link to one"));
  }
  if (!directory.ok()) return Annotate(directory.status(), root);
  const auto format = OpenDirectoryAt(directory->get(), spool::kFormatDirectory, WhenAbsent::kFail);
  if (absl::IsNotFound(format.status())) {
    return absl::NotFoundError(
        absl::StrCat(root, " is no spool directory: it has no '", spool::kFormatDirectory, "'"));
  }
  if (!format.ok()) return Annotate(format.status(), root);
  LockState agent = AskLock(format->get(), spool::kAgentLockFile, 0, 1);
  if (!agent.is_held && !served_by.empty()) agent = AskAgent(served_by);
  survey.is_served = agent.is_held;
  survey.agent_pid = agent.holder;
  if (survey.is_served) survey.links = ReadLinkNote(format->get());
  absl::StatusOr<std::vector<std::string>> names = ListNames(format->get());
  if (!names.ok()) return Annotate(names.status(), root);
  std::sort(names->begin(), names->end());
  for (const std::string& name : *names) {
    if (!Uuid::FromText(name)) continue;
    std::optional<SurveyedWriter> writer = SurveyWriter(format->get(), name);
    if (writer) survey.writers.push_back(*std::move(writer));
  }
  const TraceOutbox outbox(format->get());
  for (const auto& notes : {outbox.Names(), outbox.Recordings()}) {
    if (notes.ok()) {
      survey.trace_notes += notes->size();
    } else {
      survey.traces_trouble = absl::StrCat("traces: ", notes.status().message());
    }
  }
  return survey;
}

}  // namespace stepwell::agent
