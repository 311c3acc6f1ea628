#include "client/agent/private_root.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <iterator>
#include <string_view>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "client/agent/agent_log.h"
#include "client/agent/file_descriptor.h"
#include "client/agent/kept_tokens.h"
#include "client/agent/link_note.h"
#include "client/recorder/src/spool_format.h"

namespace stepwell::agent {
namespace {

constexpr std::size_t kRandomLetters = 6;  // mkdtemp's
// The lock last: until it is gone nobody takes it.
constexpr const char* kOwnFiles[] = {kAgentLogOldFile,     kAgentLogFile,    kLinkNoteFile,
                                     kKeptTokensFile,      kKeptTokensDraft, spool::kTraceFolder,
                                     spool::kAgentLockFile};

bool IsOwnFile(const std::string& name) {
  return std::find(std::begin(kOwnFiles), std::end(kOwnFiles), name) != std::end(kOwnFiles);
}

}  // namespace

bool IsPrivateRoot(const std::string& root) {
  const std::string name = root.substr(root.rfind('/') + 1);
  const std::string prefix = absl::StrCat("stepwell-", geteuid(), "-");
  struct stat status {};
  return absl::StartsWith(name, prefix) && name.size() == prefix.size() + kRandomLetters &&
         lstat(root.c_str(), &status) == 0 && S_ISDIR(status.st_mode) && status.st_uid == geteuid();
}

bool RemovePrivateRoot(const std::string& root, int format_directory) {
  const absl::StatusOr<std::vector<std::string>> names = ListNames(format_directory);
  if (!names.ok() || !std::all_of(names->begin(), names->end(), IsOwnFile)) return false;
  // Where a note waits in it nothing goes.
  if (unlinkat(format_directory, spool::kTraceFolder, AT_REMOVEDIR) != 0 && errno != ENOENT)
    return false;
  for (const char* name : kOwnFiles) unlinkat(format_directory, name, 0);
  // Fails, as it should, where a writer came meanwhile.
  return rmdir(absl::StrCat(root, "/", spool::kFormatDirectory).c_str()) == 0 &&
         rmdir(root.c_str()) == 0;
}

}  // namespace stepwell::agent
