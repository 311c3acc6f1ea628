// ReadHostileCodec: what must hold of any bytes that claim to be stored vectors, rollups or ticks. Both
// the fuzzer (codec_fuzz.cc) and the test that replays its finds call it. Ends the process where
// something does not hold. Header only.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "storage/encoded_rollup.h"
#include "storage/merge_plan.h"
#include "storage/vector_codec.h"
#include "tests/fuzz/hostile_input.h"

namespace stepwell::testing {

// The first byte of an input.
enum class HostileKind : std::uint8_t { kVector, kRollup, kTicks, kValues, kIntegers };
inline constexpr std::uint8_t kHostileKinds = 5;

inline void CheckSameBits(std::span<const double> left, std::span<const double> right) {
  STEPWELL_CHECK(left.size() == right.size());
  STEPWELL_CHECK(left.empty() || std::memcmp(left.data(), right.data(), left.size_bytes()) == 0);
}

// Comes back bit for bit, and never takes more than as it is.
inline void CheckRoundTrip(const std::vector<double>& values) {
  const EncodedVector encoded = EncodeValues(values);
  STEPWELL_CHECK(EncodedBytes(encoded) <=
                 kVectorHeaderBytes + kArrayOverheadBytes + values.size() * sizeof(double));
  const auto decoded = DecodeValues(encoded, values.size());
  STEPWELL_CHECK(decoded.ok());
  CheckSameBits(values, *decoded);
}

inline void CheckRoundTrip(const std::vector<std::int64_t>& integers) {
  const auto decoded = DecodeIntegers(EncodeIntegers(integers), integers.size());
  STEPWELL_CHECK(decoded.ok());
  STEPWELL_CHECK(*decoded == integers);
}

inline void ReadHostileVector(HostileInput& input) {
  const auto count =
      static_cast<std::size_t>(input.Take<std::uint32_t>() % (2 * kVectorSamplesMax));
  const EncodedVector encoded = input.TakeVector();
  const auto values = DecodeValues(encoded, count);
  const auto integers = DecodeIntegers(encoded, count);
  const std::size_t first = count / 3;
  std::vector<double> part(std::min<std::size_t>(count - first, 64));
  const absl::Status part_status = DecodePartInto(encoded, count, first, part);
  STEPWELL_CHECK(part_status.ok() || part_status.code() == absl::StatusCode::kDataLoss);
  if (values.ok()) {
    STEPWELL_CHECK(part_status.ok());
    CheckSameBits(std::span(*values).subspan(first, part.size()), part);
    // Every element is written, whatever was there before.
    std::vector<double> poisoned(count, std::bit_cast<double>(std::uint64_t{0xa5a5a5a5a5a5a5a5}));
    STEPWELL_CHECK(DecodeValuesInto(encoded, poisoned).ok());
    CheckSameBits(*values, poisoned);
    if (count <= 4096) CheckRoundTrip(*values);
  } else {
    STEPWELL_CHECK(values.status().code() == absl::StatusCode::kDataLoss);
  }
  if (!integers.ok()) return;
  STEPWELL_CHECK(values.ok());
  const std::vector<double> as_doubles(integers->begin(), integers->end());
  // A dictionary of doubles is none of integers, but an empty one is both.
  CheckSameBits(*values, as_doubles);
  if (count <= 4096) CheckRoundTrip(*integers);
}

inline void ReadHostileRollup(HostileInput& input) {
  const auto grid = DecodeRollupGrid(input.TakeGrid());
  if (!grid.ok()) return;
  const std::size_t count = grid->buckets.size();
  STEPWELL_CHECK(grid->last_times_us.size() == count && grid->last_batches.size() == count);
  const auto column = DecodeRollupColumn(input.TakeRollup(), *grid);
  if (!column.ok()) return;
  STEPWELL_CHECK(column->presence.empty() || column->presence.size() == count);
  STEPWELL_CHECK(column->mins.size() <= count);
  for (const auto* values : {&column->maxs, &column->sums, &column->lasts}) {
    STEPWELL_CHECK(values->size() == column->mins.size());
  }
}

inline void ReadHostileTicks(HostileInput& input) {
  std::vector<RecentTicksRow> ticks(1 + input.Take<std::uint8_t>() % 3);
  std::vector<RecentColumnRow> columns;
  for (std::size_t i = 0; i < ticks.size(); ++i) {
    ticks[i].place.tick_no = static_cast<std::int64_t>(i);
    ticks[i].ticks = input.TakeTicks();
    for (int left = input.Take<std::uint8_t>() % 3; left > 0; --left) {
      RecentColumnRow& column = columns.emplace_back();
      column.place.tick_no = ticks[i].place.tick_no;
      column.column = input.TakeColumn();
    }
  }
  const auto stretches = JoinRecent(ticks, columns);
  if (!stretches.ok()) return;
  // What a merge would write is read back by the next.
  for (const MergedStretch& stretch : *stretches) {
    const auto count = static_cast<std::size_t>(stretch.ticks.tick_count);
    STEPWELL_CHECK(DecodeIntegers(stretch.ticks.times, count).ok());
    for (const EncodedColumn& column : stretch.ticks.columns) {
      STEPWELL_CHECK(
          DecodeValues(column.values, static_cast<std::size_t>(column.sample_count)).ok());
    }
    for (const Rollup& rolled : stretch.rollups) {
      const EncodedRollup rollup = EncodeRollup(RollupPart::Of(rolled));
      const auto grid = DecodeRollupGrid(rollup);
      STEPWELL_CHECK(grid.ok());
      for (const EncodedRollupColumn& column : rollup.columns) {
        STEPWELL_CHECK(DecodeRollupColumn(column, *grid).ok());
      }
    }
  }
}

template <typename Number>
std::vector<Number> TakeNumbers(HostileInput& input) {
  std::vector<Number> numbers;
  while (!input.at_end() && numbers.size() < 4096) numbers.push_back(input.Take<Number>());
  return numbers;
}

inline void ReadHostileCodec(std::string_view bytes) {
  HostileInput input(bytes);
  switch (HostileKind{static_cast<std::uint8_t>(input.Take<std::uint8_t>() % kHostileKinds)}) {
    case HostileKind::kVector:
      return ReadHostileVector(input);
    case HostileKind::kRollup:
      return ReadHostileRollup(input);
    case HostileKind::kTicks:
      return ReadHostileTicks(input);
    case HostileKind::kValues:
      return CheckRoundTrip(TakeNumbers<double>(input));
    case HostileKind::kIntegers:
      return CheckRoundTrip(TakeNumbers<std::int64_t>(input));
  }
}

}  // namespace stepwell::testing
