#include "client/agent/refusal_note.h"

#include <fcntl.h>
#include <unistd.h>

#include "client/agent/file_descriptor.h"

namespace stepwell::agent {
namespace {

constexpr char kNoteFile[] = "refused";
// A master's sentences have some hundred bytes.
constexpr std::size_t kNoteBytesMax = 1024;

}  // namespace

std::string ReadRefusalNote(int directory) {
  return ReadSmallFileAt(directory, kNoteFile, kNoteBytesMax).value_or("");
}

RefusalNote::RefusalNote(int directory)
    : directory_(directory), noted_(ReadRefusalNote(directory)) {}

void RefusalNote::Follow(const OutboundWriter::Status& status) {
  // Until the master is heard, what it told an earlier agent holds.
  if (status.refusal.empty() && !status.opened) return;
  const std::string wanted = status.refusal.substr(0, kNoteBytesMax);
  if (wanted == noted_) return;
  noted_ = wanted;
  if (wanted.empty()) {
    unlinkat(directory_, kNoteFile, 0);
    return;
  }
  const auto file = OpenAt(directory_, kNoteFile, O_WRONLY | O_CREAT | O_TRUNC);
  if (file.ok()) WriteAt(file->get(), 0, wanted).IgnoreError();
}

}  // namespace stepwell::agent
