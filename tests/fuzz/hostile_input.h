// HostileInput: any bytes as encoded vectors and rows, the way a fuzzer makes them: never refuses, reads
// zeros behind the end. HostileOutput writes what it would read, for the seeds. Header only.
// Confined to one thread.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "storage/encoded_rollup.h"
#include "storage/encoded_ticks.h"
#include "storage/encoded_vector.h"

namespace stepwell::testing {

class HostileInput {
 public:
  explicit HostileInput(std::string_view bytes) : bytes_(bytes) {}

  template <typename T>
  T Take() {
    T value{};
    const std::size_t count = std::min(sizeof(T), bytes_.size());
    std::memcpy(&value, bytes_.data(), count);
    bytes_.remove_prefix(count);
    return value;
  }

  // Mostly as long as it claims.
  BitString TakeBits() {
    BitString bits;
    bits.bit_count = Take<std::uint16_t>();
    std::size_t byte_count = (bits.bit_count + 7) / 8;
    if (const auto lie = Take<std::uint8_t>(); lie >= 0xf0) {
      byte_count = Take<std::uint8_t>();
      if (lie == 0xff) bits.bit_count = Take<std::uint64_t>();
    }
    bits.bytes = bytes_.substr(0, std::min(byte_count, bytes_.size()));
    if (bits.bit_count <= 0xffff) bits.bytes.resize(byte_count);
    bytes_.remove_prefix(std::min(byte_count, bytes_.size()));
    return bits;
  }

  EncodedVector TakeVector() {
    EncodedVector encoded;
    encoded.form = Form{Take<std::int8_t>()};
    encoded.width = Take<std::int8_t>();
    encoded.width2 = Take<std::int8_t>();
    encoded.divisor_exponent = Take<std::int16_t>();
    encoded.base = Take<std::int64_t>();
    encoded.factor = Take<std::int64_t>();
    encoded.bits = TakeBits();
    encoded.bits2 = TakeBits();
    encoded.dictionary.resize(Take<std::uint8_t>());
    for (std::int64_t& word : encoded.dictionary) word = Take<std::int64_t>();
    encoded.raw.resize(Take<std::uint8_t>());
    for (double& value : encoded.raw) value = Take<double>();
    return encoded;
  }

  std::optional<EncodedVector> TakeOptional() {
    if (Take<std::uint8_t>() % 2 == 0) return std::nullopt;
    return TakeVector();
  }

  EncodedRollup TakeGrid() {
    EncodedRollup grid;
    grid.step_seconds = Take<std::int32_t>();
    grid.bucket_count = Take<std::int32_t>();
    for (EncodedVector* vector : {&grid.buckets, &grid.tick_counts, &grid.last_offsets,
                                  &grid.first_batches, &grid.last_batches}) {
      *vector = TakeVector();
    }
    return grid;
  }

  EncodedRollupColumn TakeRollup() {
    EncodedRollupColumn column;
    column.bucket_count = Take<std::int32_t>();
    column.relative = Take<std::int16_t>();
    column.presence = TakeBits();
    column.mins = TakeVector();
    for (std::optional<EncodedVector>* vector :
         {&column.counts, &column.nan_counts, &column.last_lags, &column.maxs, &column.sums,
          &column.lasts}) {
      *vector = TakeOptional();
    }
    return column;
  }

  EncodedTicks TakeTicks() {
    EncodedTicks ticks;
    // More only take longer.
    ticks.tick_count = Take<std::int16_t>();
    ticks.times = TakeVector();
    ticks.batches = TakeVector();
    return ticks;
  }

  EncodedColumn TakeColumn() {
    EncodedColumn column;
    column.series_no = SeriesNo{Take<std::uint8_t>() % 4};
    column.sample_count = Take<std::int16_t>();
    column.values = TakeVector();
    column.presence = TakeBits();
    return column;
  }

  bool at_end() const { return bytes_.empty(); }
  std::string_view rest() const { return bytes_; }

 private:
  std::string_view bytes_;
};

class HostileOutput {
 public:
  template <typename T>
  HostileOutput& Put(T value) {
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof(value));
    return *this;
  }

  HostileOutput& PutBits(const BitString& bits) {
    Put(static_cast<std::uint16_t>(bits.bit_count)).Put(std::uint8_t{0});
    bytes_ += bits.bytes;
    return *this;
  }

  HostileOutput& PutVector(const EncodedVector& encoded) {
    Put(static_cast<std::int8_t>(encoded.form)).Put(static_cast<std::int8_t>(encoded.width));
    Put(static_cast<std::int8_t>(encoded.width2)).Put(encoded.divisor_exponent);
    Put(encoded.base).Put(encoded.factor).PutBits(encoded.bits).PutBits(encoded.bits2);
    Put(static_cast<std::uint8_t>(encoded.dictionary.size()));
    for (const std::int64_t word : encoded.dictionary) Put(word);
    Put(static_cast<std::uint8_t>(encoded.raw.size()));
    for (const double value : encoded.raw) Put(value);
    return *this;
  }

  HostileOutput& PutOptional(const std::optional<EncodedVector>& encoded) {
    Put(static_cast<std::uint8_t>(encoded.has_value()));
    return encoded.has_value() ? PutVector(*encoded) : *this;
  }

  HostileOutput& PutGrid(const EncodedRollup& grid) {
    Put(grid.step_seconds).Put(grid.bucket_count);
    return PutVector(grid.buckets)
        .PutVector(grid.tick_counts)
        .PutVector(grid.last_offsets)
        .PutVector(grid.first_batches)
        .PutVector(grid.last_batches);
  }

  HostileOutput& PutRollup(const EncodedRollupColumn& column) {
    Put(column.bucket_count).Put(column.relative).PutBits(column.presence).PutVector(column.mins);
    return PutOptional(column.counts)
        .PutOptional(column.nan_counts)
        .PutOptional(column.last_lags)
        .PutOptional(column.maxs)
        .PutOptional(column.sums)
        .PutOptional(column.lasts);
  }

  HostileOutput& PutTicks(const EncodedTicks& ticks) {
    Put(static_cast<std::int16_t>(ticks.tick_count));
    return PutVector(ticks.times).PutVector(ticks.batches);
  }

  HostileOutput& PutColumn(const EncodedColumn& column) {
    Put(static_cast<std::uint8_t>(column.series_no))
        .Put(static_cast<std::int16_t>(column.sample_count));
    return PutVector(column.values).PutBits(column.presence);
  }

  const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_;
};

}  // namespace stepwell::testing
