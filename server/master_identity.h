// MasterIdentity: who this master is across restarts, so that it takes its own database over at
// once while another has to wait.
#pragma once

#include <string>

#include "absl/status/statusor.h"

namespace stepwell {

// Kept in DIRECTORY/master-id, made there at first. The directory exists.
absl::StatusOr<std::string> MasterIdOf(const std::string& data_directory);
// For a master without a directory: this machine (a digest of its id, or its host name where it has none) and where it
// listens.
std::string MasterIdOf(const std::string& host, int port,
                       const std::string& machine_id_file = "/etc/machine-id");

// Who asks; empty = not set.
struct HomeFacts {
  bool is_root = false;
  std::string xdg_data_home = {};
  std::string home = {};
};
// /var/lib/stepwell for root, else $XDG_DATA_HOME/stepwell, else ~/.local/share/stepwell.
// kFailedPrecondition when there is no home.
absl::StatusOr<std::string> DefaultDataDirectory(const HomeFacts& facts);
// Of this process.
absl::StatusOr<std::string> DefaultDataDirectory();

// Writes `text` under `path` so that a reader sees all of it or nothing.
absl::Status WriteFileAtomically(const std::string& path, const std::string& text);
absl::StatusOr<std::string> ReadWholeFile(const std::string& path);

}  // namespace stepwell
