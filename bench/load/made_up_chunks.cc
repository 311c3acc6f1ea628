#include "bench/load/made_up_chunks.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"

namespace stepwell::bench {
namespace {

// xorshift64*: cheap enough to vanish beside the work that is measured.
std::uint64_t NextRandom(std::uint64_t& state) {
  state ^= state >> 12;
  state ^= state << 25;
  state ^= state >> 27;
  return state * 0x2545F4914F6CDD1DULL;
}

}  // namespace

MadeUpChunks::MadeUpChunks(ChunkShape shape, int seed)
    : shape_(shape),
      next_time_us_(absl::ToUnixMicros(absl::Now())),
      random_(0x9E3779B97F4A7C15ULL + static_cast<std::uint64_t>(seed)),
      last_(static_cast<std::size_t>(shape.series_count), 50.0) {}

std::vector<v1::Definition> MadeUpChunks::definitions() const {
  std::vector<v1::Definition> definitions(static_cast<std::size_t>(shape_.series_count));
  for (std::size_t i = 0; i < definitions.size(); ++i) {
    v1::Definition& definition = definitions[i];
    definition.set_ref(static_cast<std::uint32_t>(i + 1));
    definition.set_tick_group(1);
    definition.set_metric_group("gpu");
    definition.set_name(absl::StrCat("gpu_util_", i));
    definition.set_unit("percent");
    definition.set_kind(v1::SERIES_KIND_GAUGE);
  }
  return definitions;
}

SealedBody MadeUpChunks::Next() {
  v1::ChunkBody body;
  auto* table = body.add_tables();
  table->set_tick_group(1);
  table->set_first_time_us(next_time_us_);
  table->set_first_batch(static_cast<std::int32_t>(++chunk_count_));
  for (int i = 1; i < shape_.tick_count; ++i) table->add_time_deltas_us(shape_.tick_interval_us);
  next_time_us_ += shape_.tick_interval_us * shape_.tick_count;
  for (int i = 0; i < shape_.series_count; ++i) {
    auto* column = table->add_columns();
    column->set_ref(static_cast<std::uint32_t>(i + 1));
    auto* doubles = column->mutable_doubles();
    doubles->Resize(shape_.tick_count, 0.0);
    // A bounded random walk in tenths of a percent.
    double value = last_[static_cast<std::size_t>(i)];
    for (int tick = 0; tick < shape_.tick_count; ++tick) {
      const auto step = static_cast<double>(NextRandom(random_) % 21) - 10.0;
      value = std::fmin(1000.0, std::fmax(0.0, value + step));
      doubles->Set(tick, value / 10.0);
    }
    last_[static_cast<std::size_t>(i)] = value;
  }
  return {body.SerializeAsString(), next_time_us_};
}

}  // namespace stepwell::bench
