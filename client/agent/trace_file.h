// TraceFile: a trace that grows on the disk while its process runs, with a name of its own once that is over. It stands
// behind SpanTrace. Confined to the agent's loop; blocks as the disk does.
//
//   STEPWELL_ASSIGN_OR_RETURN(auto file, TraceFile::Create({.directory = "/data/traces", .rank = 3}));
//   STEPWELL_RETURN_IF_ERROR(file->Append(packet));
//   file->Finish({.epoch = 0, .batch = 7});      // ep0-ba8-rank3.pftrace
//
// Until then it is recording-rank3-N.pftrace, and readable at each moment, also where the agent was killed: its lock says
// whether somebody still writes it, and where not another agent finishes it (Adopt). Packets are
// appended whole; one that finds no room (the file's bound, a full disk) is left out, with all that follow, and the last
// whole one stays the last: what was written is a trace.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "client/agent/file_descriptor.h"

namespace stepwell::agent {

class TraceFile {
 public:
  static constexpr std::int64_t kBytesMax = 64 << 20;

  struct Options {
    std::string directory;  // made where it is not there, without its parents
    std::int32_t rank = 0;
    std::int64_t bytes_max = kBytesMax;
    // Finished ones of this rank, and as many without a step (ba0); the oldest go. 0 = all are kept.
    int kept_max = 0;
  };
  // Where the training was when it ended; -1: unknown.
  struct Place {
    std::int64_t epoch = -1;
    std::int64_t batch = -1;  // the last that ended
  };

  static absl::StatusOr<std::unique_ptr<TraceFile>> Create(Options options);
  // One that whoever wrote it left unfinished. kUnavailable: it is still written, or begun just now; kNotFound: it is not
  // there; kInvalidArgument: it is no file; kFailedPrecondition: its directory is not there, it cannot be
  // opened, or its file system has no locks, and nothing tells.
  static absl::StatusOr<std::unique_ptr<TraceFile>> Adopt(Options options, const std::string& name);
  // "recording-rank3-0.pftrace" of that rank.
  static bool IsUnfinishedName(const std::string& name, std::int32_t rank);
  // A file that was never finished keeps its name.
  ~TraceFile() = default;
  TraceFile(const TraceFile&) = delete;
  TraceFile& operator=(const TraceFile&) = delete;

  // kResourceExhausted: nothing more is taken.
  [[nodiscard]] absl::Status Append(std::string_view packet);
  // Called with the name that it gets: whoever is killed from then on leaves word of it.
  using LeaveWord = std::function<absl::Status(const std::string& name)>;
  // Once. The name it has from then on, within the directory. It has both names while word of it is left, where the file system
  // has links; where that fails, as it says, the old one stays and another look finishes it. kNotFound: its name is another's
  // by now, which stays; kFailedPrecondition: it gets no name.
  [[nodiscard]] absl::StatusOr<std::string> Finish(
      const Place& place,
      const LeaveWord& leave = [](const std::string&) { return absl::OkStatus(); });

  std::int64_t bytes() const { return bytes_; }
  // Its name as of now, within the directory.
  const std::string& name() const { return name_; }
  // What was written, up to `size` bytes from there on; fewer at its end.
  absl::StatusOr<std::string> Read(std::int64_t offset, std::size_t size) const;
  // It is of nobody: it goes, where its name is its own still.
  void Remove() const;

  // "ep0-ba8-rank3.pftrace"; batches count from 1 there, as those that are over.
  static std::string NameOf(const Place& place, std::int32_t rank);

 private:
  TraceFile(Options options, FileDescriptor directory, FileDescriptor file, std::string name);

  // A lock is of the file, and what is done goes by its name.
  absl::Status CheckName() const;
  void RemoveOlder() const;

  const Options options_;
  const FileDescriptor directory_;
  const FileDescriptor file_;
  std::string name_;
  std::int64_t bytes_ = 0;
  bool is_full_ = false;
  // It may be older than those that are finished.
  bool is_adopted_ = false;
};

}  // namespace stepwell::agent
