// ChunkBuilder: gathers ticks into the body of a chunk. Columns are integers where every value is
// exactly integer / divisor, else doubles. Pure; confined to one thread.
//
//   builder.AddTick(tick_group, time_us, batch, {{ref, value}, ...});
//   if (builder.full()) bodies = builder.Seal();
#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "client/agent/series_catalog.h"
#include "client/agent/spool_record.h"

namespace stepwell::agent {

struct RefValue {
  std::uint32_t ref = 0;
  double value = 0;
};

// The master takes chunks of 1 MiB, 65,536 samples and 4096 tables by default; a body is closed
// well below, so that the tick which fills it still fits. (Series recorded alone have a table each.)
inline constexpr std::size_t kBodyBytesMax = 640 << 10;
inline constexpr std::uint64_t kBodySamplesMax = 32768;
inline constexpr std::size_t kBodyTablesMax = 4000;

class ChunkBuilder {
 public:
  // `catalog` outlives the builder and knows each ref that is added.
  explicit ChunkBuilder(const SeriesCatalog& catalog) : catalog_(catalog) {}

  // REQUIRES: the refs are of `tick_group`, each at most once.
  void AddTick(std::uint32_t tick_group, std::int64_t time_us, std::int32_t batch,
               std::span<const RefValue> values);
  // A ref recorded alone.
  void AddSample(std::uint32_t ref, std::int64_t time_us, std::int32_t batch, double value);
  // Losses of one cause, group, ref and reason become one.
  void AddLoss(const pb::Loss& loss);

  bool empty() const { return bodies_.empty() && tables_.empty() && losses_.empty(); }
  // A body is complete: sealing should not wait.
  bool full() const { return !bodies_.empty(); }

  struct Body {
    std::string bytes;
    SampleSpan span;
  };
  // The bodies of all that was added, in order; the builder is empty again.
  std::vector<Body> Seal();

 private:
  struct Column {
    std::uint32_t ref = 0;
    std::vector<double> values;
    std::vector<std::uint32_t> tick_indexes;
  };
  struct Table {
    std::uint32_t tick_group = 0;
    std::vector<std::int64_t> times_us;
    std::vector<std::int32_t> batches;
    std::vector<Column> columns;
    absl::flat_hash_map<std::uint32_t, std::size_t> column_by_ref;
  };

  void CloseBody();
  Table& TableOf(std::uint32_t tick_group);
  void AddValue(Table& table, std::uint32_t ref, double value);
  static void WriteTicks(const Table& table, pb::Table& out);
  void WriteColumn(const Table& table, const Column& column, pb::Column& out) const;

  const SeriesCatalog& catalog_;
  std::vector<Table> tables_;
  absl::flat_hash_map<std::uint32_t, std::size_t> table_by_group_;
  std::vector<pb::Loss> losses_;
  // Of the body, never too low.
  std::size_t bytes_estimate_ = 0;
  SampleSpan span_;
  std::vector<Body> bodies_;
};

}  // namespace stepwell::agent
