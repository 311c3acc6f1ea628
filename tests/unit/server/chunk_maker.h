// ChunkMaker: wire messages for tests of the ingest cores.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/crc32c.h"
#include "base/uuid.h"
#include "server/ref_table.h"
#include "server/wire.h"
#include "stepwell/v1/ingest.pb.h"

namespace stepwell {

inline constexpr std::int64_t kSealedTimeUs = 1'700'000'000'000'000;

inline pb::Table MakeTable(std::uint32_t ref, const std::vector<double>& values,
                           std::int64_t first_time_us = kSealedTimeUs) {
  pb::Table table;
  table.set_tick_group(1);
  table.set_first_time_us(first_time_us);
  table.set_first_batch(-1);
  for (std::size_t i = 1; i < values.size(); ++i) table.add_time_deltas_us(1000);
  pb::Column& column = *table.add_columns();
  column.set_ref(ref);
  for (const double value : values) column.add_doubles(value);
  return table;
}

inline pb::ChunkBody MakeBody(std::uint32_t ref, const std::vector<double>& values) {
  pb::ChunkBody body;
  *body.add_tables() = MakeTable(ref, values);
  return body;
}

inline pb::Chunk MakeChunk(std::uint64_t sequence, std::string body) {
  pb::Chunk chunk;
  chunk.set_sequence(sequence);
  chunk.set_sealed_time_us(kSealedTimeUs);
  chunk.set_body(std::move(body));
  chunk.set_crc32c(ChunkCrc32c(sequence, kSealedTimeUs, chunk.body()));
  return chunk;
}

inline pb::Chunk MakeChunk(std::uint64_t sequence, const pb::ChunkBody& body) {
  return MakeChunk(sequence, body.SerializeAsString());
}

// Refs 1 and 2 in tick group 1, ref 3 in tick group 2 with divisor 1000, ref 4 refused.
inline RefTable MakeRefs() {
  RefTable refs;
  refs[1] = {.series_no = static_cast<SeriesNo>(11), .tick_group = 1, .metric_group = "gpu"};
  refs[2] = {.series_no = static_cast<SeriesNo>(12), .tick_group = 1, .metric_group = "gpu"};
  refs[3] = {.series_no = static_cast<SeriesNo>(13),
             .tick_group = 2,
             .divisor = 1000,
             .metric_group = "cpu"};
  refs[4] = {.tick_group = 1, .metric_group = "gpu", .refused_reason = "SERIES_LIMIT"};
  return refs;
}

}  // namespace stepwell
