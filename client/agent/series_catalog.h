// SeriesCatalog: the refs of a writer: which series in which tick group has which number. Refs live
// as long as the writer; the spool keeps them across agents. Confined to the agent's loop.
//
//   const std::uint32_t ref = catalog.Ref({TickGroupKind::kStep, thread}, series);
//   for (const std::string& stored : catalog.TakeNew()) ...   // to the spool, then to the sender
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "stepwell/v1/ingest.pb.h"

namespace stepwell::agent {

namespace pb = ::stepwell::v1;

// What one clock stamps together.
enum class TickGroupKind : std::uint8_t {
  kStep = 1,     // step totals of a thread
  kAlone = 2,    // one ref by itself
  kCadence = 3,  // one cadence of a sampler
};

struct TickGroupKey {
  TickGroupKind kind = TickGroupKind::kAlone;
  // kStep: the thread. kCadence: which one. kAlone: 0.
  std::uint32_t index = 0;
};

struct SeriesSpec {
  std::string metric_group;
  std::string name;
  std::map<std::string, std::string> labels;
  std::string unit;
  pb::SeriesKind kind = pb::SERIES_KIND_GAUGE;
  std::uint64_t divisor = 1;
};

class SeriesCatalog {
 public:
  // Series of one writer; what comes beyond is a Loss of cause CAP.
  static constexpr std::uint32_t kRefCountMax = 8192;

  // 0 where the catalog is full.
  std::uint32_t Ref(const TickGroupKey& group, const SeriesSpec& series);
  // REQUIRES: Ref gave `ref`.
  const pb::Definition& definition(std::uint32_t ref) const { return definitions_[ref - 1]; }
  const std::vector<pb::Definition>& definitions() const { return definitions_; }

  // Definitions made since the last call, as the spool stores them.
  std::vector<std::string> TakeNew();
  // Takes over one that an earlier agent stored, in its order. False where it is none.
  bool Restore(std::string_view stored);

 private:
  void Add(const TickGroupKey& group, pb::Definition definition);

  std::vector<pb::Definition> definitions_;  // ref - 1 is the index
  std::vector<TickGroupKey> groups_;         // beside definitions_
  absl::flat_hash_map<std::string, std::uint32_t> ref_by_key_;
  std::map<std::pair<std::uint8_t, std::uint32_t>, std::uint32_t> tick_group_by_key_;
  std::uint32_t tick_group_last_ = 0;
  std::size_t taken_count_ = 0;
};

}  // namespace stepwell::agent
