#include "client/recorder/src/trace_note.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "client/recorder/src/catalog.h"
#include "client/recorder/src/identity.h"
#include "client/recorder/src/json_text.h"
#include "client/recorder/src/spool_file.h"
#include "client/recorder/src/spool_format.h"
#include "client/recorder/src/unique_fd.h"

namespace stepwell::recorder {
namespace {

// Thirty labels of a KiB fit many times.
constexpr std::size_t kWriterJsonBytesMax = 256 << 10;

std::string ReadWriterJson(const std::string& writer_path) {
  const UniqueFd file(
      open((writer_path + "/" + spool::kWriterFile).c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC));
  std::string text;
  char piece[4096];
  while (file.get() >= 0 && text.size() <= kWriterJsonBytesMax) {
    const ssize_t count = read(file.get(), piece, sizeof(piece));
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return count < 0 ? std::string() : text;
    text.append(piece, static_cast<std::size_t>(count));
  }
  return {};
}

std::string ToJson(const TraceNote& note, const std::string& writer) {
  std::string json = "{\"path\": " + Quoted(note.path);
  json += ", \"epoch\": " + std::to_string(note.epoch);
  json += ", \"first_batch\": " + std::to_string(note.first_batch);
  json += ", \"last_batch\": " + std::to_string(note.last_batch);
  json += std::string(", \"removes_file\": ") + (note.removes_file ? "true" : "false");
  return json + ", \"writer\": " + writer + "}\n";
}

}  // namespace

bool LeaveTraceNote(const std::string& writer_path, const TraceNote& note) {
  const std::string writer = ReadWriterJson(writer_path);
  // What is no UTF-8 would be another path in JSON.
  if (writer.empty() || !note.path.starts_with('/') || !IsUtf8(note.path)) return false;
  const std::string folder_path =
      writer_path.substr(0, writer_path.rfind('/') + 1) + spool::kTraceFolder;
  (void)mkdir(folder_path.c_str(), 0700);
  const UniqueFd folder(open(folder_path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (folder.get() < 0) return false;
  const std::string name = NewUuid() + spool::kTraceNoteEnding;
  const std::string draft = name + ".draft";
  const UniqueFd file = NewFile(folder, draft);
  const std::string text = ToJson(note, writer);
  // A short write is a full disk.
  const bool is_whole = file.get() >= 0 && write(file.get(), text.data(), text.size()) ==
                                               static_cast<ssize_t>(text.size());
  if (is_whole && renameat(folder.get(), draft.c_str(), folder.get(), name.c_str()) == 0)
    return true;
  unlinkat(folder.get(), draft.c_str(), 0);
  return false;
}

}  // namespace stepwell::recorder
