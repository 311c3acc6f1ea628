// WorkerPlace is the place of a forked child in its parent's writer: one byte of the writer's lock,
// and a directory w<k>-<n> of its own (spool_format.h). No two living processes have the same.
//
//   std::string why;
//   if (auto place = TakeWorkerPlace(writer_directory, &why)) ...
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "client/recorder/src/unique_fd.h"

namespace stepwell::recorder {

struct WorkerPlace {
  std::uint32_t index = 0;  // k
  UniqueFd lock;            // holds the byte while the process lives
  std::string name;         // of the directory
  UniqueFd directory;
};

// The lowest index whose byte is free. Nothing with the reason in `message` where there is none, or
// no room. Blocks on the file system.
std::optional<WorkerPlace> TakeWorkerPlace(const UniqueFd& writer, std::string* message);

}  // namespace stepwell::recorder
