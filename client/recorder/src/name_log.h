// NameLog appends definitions to the writer's `names` file, in the format of spool_format.h, and
// remembers which scope paths it has given an id.
//
// Thread-compatible: Process locks.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "client/recorder/src/catalog.h"
#include "client/recorder/src/spool_format.h"

namespace stepwell::recorder {

class NameLog {
 public:
  // `room` and `committed_bytes` outlive the log; room is what the reader maps as `names`.
  NameLog(std::span<std::byte> room, std::atomic<std::uint64_t>& committed_bytes);

  // The id of the catalog's `scope`, which is `definition`, within the scope path `parent` (kNoName =
  // at the top). kNoName when full.
  std::uint32_t FindOrAddPath(std::uint32_t parent, std::uint32_t scope,
                              const ScopeDefinition& definition);
  // A new id. kNoName when full.
  std::uint32_t AddSeries(const SeriesDefinition& series);
  // From here on everything is full: the room may go away.
  void Close() { room_ = {}; }

 private:
  std::uint32_t Append(spool::NameRecord record, const std::vector<std::string_view>& texts);

  std::span<std::byte> room_;
  std::atomic<std::uint64_t>& committed_bytes_;
  std::uint32_t name_count_ = 0;
  std::unordered_map<std::uint64_t, std::uint32_t> paths_;  // parent << 32 | scope
};

}  // namespace stepwell::recorder
