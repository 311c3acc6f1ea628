// MadeUpInput: what HostileInput reads as rows that an encoder wrote, some of them damaged a little: from
// here a fuzzer gets behind the checks of lengths, which random bytes never pass. Header only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "tests/fuzz/hostile_codec.h"
#include "tests/fuzz/hostile_input.h"
#include "tests/support/codec_vectors.h"
#include "tests/support/damaged_vectors.h"

namespace stepwell::testing {

inline TickTable MadeUpTable(std::mt19937_64& random) {
  TickTable table;
  std::int64_t at = static_cast<std::int64_t>(random() >> (1 + random() % 60));
  for (std::size_t left = 1 + random() % 40; left > 0; --left) {
    at += static_cast<std::int64_t>(random() >> (34 + random() % 30));
    table.times_us.push_back(at);
    table.batches.push_back(static_cast<std::int32_t>(random() % 50) - 1);
  }
  for (int left = static_cast<int>(random() % 3); left > 0; --left) {
    TickColumn& column = table.columns.emplace_back();
    column.series_no = SeriesNo{left};
    const std::vector<double> values = RandomValues(random);
    const bool has_misses = random() % 2 == 0;
    for (std::size_t i = 0; i < table.times_us.size(); ++i) {
      const bool is_present = i == 0 || !has_misses || random() % 3 != 0;
      if (has_misses) column.presence.push_back(is_present ? 1 : 0);
      if (is_present) column.values.push_back(values.empty() ? 0 : values[i % values.size()]);
    }
  }
  return table;
}

inline void PutTicks(std::mt19937_64& random, HostileOutput& output) {
  const std::uint64_t row_count = 1 + random() % 3;
  output.Put(static_cast<std::uint8_t>(row_count - 1));
  for (std::uint64_t row = 0; row < row_count; ++row) {
    EncodedTicks ticks = EncodeTicks(MadeUpTable(random))[0];
    if (random() % 4 == 0) DamageSlightly(random, ticks.times);
    if (random() % 4 == 0) DamageSlightly(random, ticks.batches);
    output.PutTicks(ticks).Put(static_cast<std::uint8_t>(ticks.columns.size()));
    for (EncodedColumn& column : ticks.columns) {
      if (random() % 4 == 0) DamageSlightly(random, column.values);
      output.PutColumn(column);
    }
  }
}

inline void PutRollup(std::mt19937_64& random, HostileOutput& output) {
  const StretchRollups stretch = RollUpStretches(MadeUpTable(random))[0];
  EncodedRollup rollup = EncodeRollup(RollupPart::Of(stretch[random() % 2]));
  if (random() % 4 == 0) DamageSlightly(random, rollup.buckets);
  if (random() % 4 == 0) DamageSlightly(random, rollup.last_offsets);
  output.PutGrid(rollup);
  if (rollup.columns.empty()) return;
  EncodedRollupColumn& column = rollup.columns[0];
  if (random() % 4 == 0) DamageSlightly(random, column.mins);
  if (column.sums.has_value() && random() % 4 == 0) DamageSlightly(random, *column.sums);
  output.PutRollup(column);
}

inline void PutVector(std::mt19937_64& random, HostileOutput& output) {
  const std::vector<double> values = RandomValues(random);
  const std::vector<std::int64_t> integers = RandomIntegers(random);
  const bool of_integers = random() % 4 == 0;
  EncodedVector encoded = of_integers ? EncodeIntegers(integers) : EncodeValues(values);
  for (std::uint64_t times = random() % 3; times > 0; --times) DamageSlightly(random, encoded);
  output.Put(static_cast<std::uint32_t>(of_integers ? integers.size() : values.size()));
  output.PutVector(encoded);
}

inline std::string MadeUpInput(std::mt19937_64& random) {
  HostileOutput output;
  const auto kind = HostileKind{static_cast<std::uint8_t>(random() % kHostileKinds)};
  output.Put(kind);
  switch (kind) {
    case HostileKind::kVector:
      PutVector(random, output);
      break;
    case HostileKind::kRollup:
      PutRollup(random, output);
      break;
    case HostileKind::kTicks:
      PutTicks(random, output);
      break;
    case HostileKind::kValues:
      for (const double value : RandomValues(random)) output.Put(value);
      break;
    case HostileKind::kIntegers:
      for (const std::int64_t integer : RandomIntegers(random)) output.Put(integer);
  }
  return output.bytes();
}

}  // namespace stepwell::testing
