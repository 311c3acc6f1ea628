// TraceOutbox: the folder `traces` of a spool's root: a note for each trace that is to go to a master, until it is
// there. It outlives recorders and agents. Whoever leaves a note writes it beside its name and renames it. Blocks as
// the disk does. Thread-compatible; notes of others come and go meanwhile.
//
//   STEPWELL_RETURN_IF_ERROR(TraceOutbox(format_directory).Leave(job));
//   for (const std::string& name : *outbox.Names()) ... outbox.Read(name) ... outbox.Remove(name)
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "client/agent/directory_watch.h"
#include "client/agent/file_descriptor.h"
#include "client/agent/trace_job.h"

namespace stepwell::agent {

class TraceOutbox {
 public:
  // `format_directory` outlives it.
  explicit TraceOutbox(int format_directory) : format_directory_(format_directory) {}

  // A writer.json, and a little more.
  static constexpr std::int64_t kNoteBytesMax = 512 << 10;
  // A folder that a trace has for itself, made for it and removed with it, begins so; Python's torch_profiler makes such, too.
  static constexpr char kFolderOfOne[] = "stepwell-traces-";

  [[nodiscard]] absl::Status Leave(const TraceJob& job) const;
  // Of a file that is begun, and has another name once it is whole: a note of its own kind, for the agent that comes after one
  // that was killed. Its name.
  absl::StatusOr<std::string> LeaveRecording(const TraceJob& job) const;
  // Writes a trace into a folder of its own beside the notes; its absolute path. What could not be written whole goes.
  [[nodiscard]] absl::StatusOr<std::string> KeepFile(const std::string& name,
                                                     std::string_view bytes) const;
  struct Room {
    std::int64_t kept_bytes = 0;  // of KeepFile's files, each with what its note may have
    std::int64_t free_bytes = 0;  // of the file system, for all
  };
  Room RoomOfKept() const;
  // The absolute paths of KeepFile's folders that nobody changed for so long.
  std::vector<std::string> OwnFolders(absl::Duration age = absl::ZeroDuration()) const;
  // The path is of a file that KeepFile wrote there, by no link.
  bool Holds(const std::string& path) const;

  // Another note may lie there than when this was last asked. Cheap: asked at each visit.
  bool MayHaveNew();
  // Of whole notes, the oldest first. Who cannot list them (descriptors are short) knows of none that it is gone.
  absl::StatusOr<std::vector<std::string>> Names() const;
  // Likewise, of LeaveRecording's.
  absl::StatusOr<std::vector<std::string>> Recordings() const;
  // Of a spool that was copied or moved since: with the path of the file that came along, where one did. kNotFound: it is gone;
  // kInvalidArgument: it is none.
  absl::StatusOr<TraceJob> Read(const std::string& name) const;
  void Remove(const std::string& name) const;
  // Whether a note may have that file sent: a regular one, no link, of whose outbox this is, or readable to all. kNotFound:
  // there is no such file; kFailedPrecondition: it cannot be opened for now; kInvalidArgument: it may not. Whoever may read more
  // than that user must not rely on it: the file may be exchanged behind the look.
  absl::Status CheckFile(const std::string& path) const;

 private:
  absl::StatusOr<FileDescriptor> Folder() const;
  absl::StatusOr<std::string> Write(const TraceJob& job, const char* ending) const;
  absl::StatusOr<std::vector<std::string>> NamesWith(const char* ending) const;
  // Absolute, as of now.
  absl::StatusOr<std::string> FolderPath() const;
  // Where KeepFile's file of that name lies by now; the path itself, where there is none here.
  std::string Here(const std::string& path) const;

  const int format_directory_;
  DirectoryWatch watch_;
};

}  // namespace stepwell::agent
