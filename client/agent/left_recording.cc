#include "client/agent/left_recording.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "base/trace/exact_time.h"
#include "base/trace/json_members.h"
#include "base/trace/trace_event.h"
#include "base/trace/trace_origin.h"
#include "base/trace/trace_reading.h"
#include "client/agent/trace_file.h"

namespace stepwell::agent {
namespace {

constexpr std::size_t kPieceBytes = 1 << 20;
// Of a worker's threads, as SpanTrace names them.
constexpr char kWorkerRow[] = "worker ";

std::int32_t NumberOf(std::string_view json) {
  const std::int64_t number = WholeNumber(json).value_or(-1);
  return number < 0 || number > INT32_MAX ? -1 : static_cast<std::int32_t>(number);
}

// What a recording says of itself, event by event: SpanTrace wrote it.
class RecordingScan {
 public:
  void TakeEvent(std::string_view json) {
    if (!parser_.Parse(json)) return;
    const TraceEvent& event = parser_.event();
    if (event.phase == 'M') return TakeMetadata(event);
    if (event.phase == 'C') {
      if (event.name == "\"epoch\"") NoteEpoch(MemberOf(event.args, "value"));
      return;
    }
    NoteEpoch(MemberOf(event.args, "epoch"));
    if (event.phase == 'X' && event.name == "\"step\"") TakeStep(event);
  }

  const std::string& writer() const { return writer_; }
  std::int32_t epoch() const { return epoch_; }
  // Of the process itself: workers count theirs by themselves.
  struct Batches {
    std::int32_t first = -1;
    std::int32_t last = -1;
  };
  Batches batches() const {
    Batches all;
    for (const auto& [thread, row] : rows_) {
      if (row.is_of_worker || row.batches.last < 0) continue;
      all.first = all.first < 0 ? row.batches.first : std::min(all.first, row.batches.first);
      all.last = std::max(all.last, row.batches.last);
    }
    return all;
  }

 private:
  struct Row {
    bool is_of_worker = false;
    Batches batches = {};
  };

  void TakeMetadata(const TraceEvent& event) {
    if (event.name == absl::StrCat("\"", kMachineEvent, "\"")) {
      writer_ = TextOfJson(MemberOf(event.args, "writer")).value_or("");
    } else if (event.name == "\"thread_name\"") {
      const auto name = TextOfJson(MemberOf(event.args, "name"));
      if (name) RowOf(event).is_of_worker = absl::StartsWith(*name, kWorkerRow);
    }
  }

  void TakeStep(const TraceEvent& event) {
    const std::int32_t batch = NumberOf(MemberOf(event.args, "batch"));
    if (batch < 0) return;
    Batches& batches = RowOf(event).batches;
    batches.first = batches.first < 0 ? batch : std::min(batches.first, batch);
    batches.last = std::max(batches.last, batch);
  }

  // A thread without a number has its name for one.
  Row& RowOf(const TraceEvent& event) {
    const auto [row, is_new] = rows_.try_emplace(std::string(event.tid));
    if (is_new) row->second.is_of_worker = event.tid.starts_with("\"worker ");
    return row->second;
  }

  void NoteEpoch(std::string_view json) { epoch_ = std::max(epoch_, NumberOf(json)); }

  TraceEventParser parser_;
  std::map<std::string, Row> rows_;
  std::string writer_;
  std::int32_t epoch_ = -1;
};

// What is damaged, as after a power loss, is as whole as it will be: no failure.
absl::Status Scan(const TraceFile& file, const std::function<bool()>& may_go_on,
                  RecordingScan& scan) {
  absl::Status unread;
  const TraceSource source = [&](const TakeBytes& take) -> absl::Status {
    for (std::int64_t at = 0; at < file.bytes();) {
      if (!may_go_on()) return unread = absl::CancelledError("the agent is leaving");
      const absl::StatusOr<std::string> piece = file.Read(at, kPieceBytes);
      if (!piece.ok()) return unread = absl::FailedPreconditionError(piece.status().message());
      if (piece->empty()) break;
      STEPWELL_RETURN_IF_ERROR(take(*piece));
      at += static_cast<std::int64_t>(piece->size());
    }
    return absl::OkStatus();
  };
  (void)ReadTrace(source,
                  {.event =
                       [&](std::string_view json) {
                         scan.TakeEvent(json);
                         return absl::OkStatus();
                       },
                   .member = [](std::string_view, std::string_view) { return absl::OkStatus(); }});
  return unread;
}

bool DirectoryIsThere(const std::string& directory) {
  struct stat found {};
  return stat(directory.c_str(), &found) == 0 || (errno != ENOENT && errno != ENOTDIR);
}

// A note of another writer may name that path, too: its file was of that name, and is gone.
absl::StatusOr<bool> HasNoteOf(const TraceOutbox& outbox, const TraceJob& whole) {
  STEPWELL_ASSIGN_OR_RETURN(const std::vector<std::string> names, outbox.Names());
  for (const std::string& name : names) {
    const absl::StatusOr<TraceJob> job = outbox.Read(name);
    if (job.ok() && job->path == whole.path && job->writer.writer == whole.writer.writer) {
      return true;
    }
  }
  return false;
}

// Another one may lie there, of an agent that was killed before the old name was gone.
absl::Status LeaveOnce(const TraceOutbox& outbox, const TraceJob& whole) {
  if (!whole.writer.tracing.uploads) return absl::OkStatus();
  const absl::StatusOr<bool> has_note = HasNoteOf(outbox, whole);
  if (has_note.ok() && *has_note) return absl::OkStatus();
  const absl::Status left = has_note.ok() ? outbox.Leave(whole) : has_note.status();
  return left.ok() ? left : absl::FailedPreconditionError(left.message());
}

}  // namespace

absl::StatusOr<TraceJob> FinishLeftRecording(const TraceJob& note, const TraceOutbox& outbox,
                                             const std::function<bool()>& may_go_on) {
  const std::size_t name_at = note.path.rfind('/') + 1;
  const std::string name = note.path.substr(name_at);
  const WriterIdentity& writer = note.writer;
  if (name_at < 2 || !TraceFile::IsUnfinishedName(name, writer.rank)) {
    return absl::InvalidArgumentError(absl::StrCat("rank ", writer.rank, " has no such recording"));
  }
  const std::string directory = note.path.substr(0, name_at - 1);
  // As before its disk is mounted: that is not the file that is gone.
  if (!DirectoryIsThere(directory)) return absl::AbortedError(directory + " is not there");
  STEPWELL_RETURN_IF_ERROR(outbox.CheckFile(note.path));
  TraceJob whole = note;
  STEPWELL_ASSIGN_OR_RETURN(
      const std::unique_ptr<TraceFile> file,
      TraceFile::Adopt(
          {.directory = directory, .rank = writer.rank, .kept_max = writer.tracing.kept_max},
          name));
  if (file->bytes() == 0) {
    file->Remove();
    return absl::NotFoundError("nothing was written to it");
  }
  RecordingScan scan;
  STEPWELL_RETURN_IF_ERROR(Scan(*file, may_go_on, scan));
  if (scan.writer() != writer.writer.ToText()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "it does not say that writer ", writer.writer.ToText(), " recorded it; it stays"));
  }
  const RecordingScan::Batches batches = scan.batches();
  whole.epoch = scan.epoch();
  whole.first_batch = batches.first;
  whole.last_batch = batches.last;
  const auto leave = [&](const std::string& named) {
    whole.path = absl::StrCat(directory, "/", named);
    return LeaveOnce(outbox, whole);
  };
  STEPWELL_RETURN_IF_ERROR(
      file->Finish({.epoch = scan.epoch(), .batch = batches.last}, leave).status());
  return whole;
}

}  // namespace stepwell::agent
