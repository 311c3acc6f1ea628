// The bounds of ingest, in one place: what ServerLimits states to clients, and what bounds the
// master itself.
#pragma once

#include <cstddef>
#include <cstdint>

namespace stepwell {

// A quarter of a message, so that four full chunks of a unary call fit into one.
inline constexpr std::int64_t kChunkBytesMax = 1 << 20;
inline constexpr std::int64_t kMessageBytesMax = 4 << 20;
// What gRPC reads at all: between the two a message is read and answered precisely; beyond it gRPC
// ends the stream with RESOURCE_EXHAUSTED.
inline constexpr std::int64_t kMessageReadBytesMax = 8 << 20;
inline constexpr std::int32_t kChunkSamplesMax = 65536;
inline constexpr std::int32_t kChunkTablesMax = 4096;
inline constexpr std::int32_t kChunkLossesMax = 1000;
// Thin stretches into which a chunk's ticks may fall (storage/stretch.h), those of fewer ticks than this: each is rows and
// rollups of 2 kB, for 8 bytes on the wire at worst, and a fold takes a chunk whole. So many for each table at least: a
// machine's clock may be set between ticks, twice.
inline constexpr std::size_t kThinStretchTicks = 8;
inline constexpr std::int64_t kChunkThinStretchesMax = 4096;
inline constexpr std::int64_t kTableThinStretches = 3;
inline constexpr std::int32_t kSeriesPerWriterMax = 10'000;
inline constexpr std::int32_t kSeriesPerTrialMax = 200'000;
// Writers that a trial may ever have: kWritersPerTrialMax, where the store asks for it (storage/ingest_store.h).
inline constexpr std::int32_t kLabelsPerSeriesMax = 32;
inline constexpr std::int32_t kLabelNameBytesMax = 128;
inline constexpr std::int32_t kLabelValueBytesMax = 1024;
inline constexpr std::int32_t kMetricNameBytesMax = 256;
inline constexpr std::int32_t kMetricGroupBytesMax = 128;
inline constexpr std::int32_t kUnitBytesMax = 64;
inline constexpr std::int32_t kReasonBytesMax = 256;
inline constexpr std::int32_t kWritersPerStreamMax = 256;
inline constexpr std::int32_t kHeartbeatSecondsMax = 60;
inline constexpr std::int32_t kRejectionsPerAckMax = 1000;

// Trial ids: callers' own below, the master's from here on.
inline constexpr std::int64_t kMasterTrialIdMin = 1'000'000'000;

// What timestamptz holds, in microseconds since 1970: 4713 BC; its end lies beyond int64.
inline constexpr std::int64_t kTimeUsMin = -210'866'803'200'000'000;
inline constexpr std::int64_t kDayUs = 86'400'000'000;

static_assert(kChunkBytesMax * 4 <= kMessageBytesMax);
static_assert(kMessageBytesMax * 2 <= kMessageReadBytesMax);

}  // namespace stepwell
