#include "storage/batches_around.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace stepwell {
namespace {

// Ticks at 10, 20, ... with batches 1, 2, ...; of the third the batch is not known.
const std::vector<std::int64_t> kTimes = {10, 20, 30, 40};
const std::vector<std::int32_t> kBatches = {1, 2, -1, 4};

TEST(BatchesAroundTest, TellsTheNearestTicksOnBothSides) {
  struct Row {
    std::string name;
    std::int64_t first_us, last_us;
    std::optional<TickBatch> before, after;
  };
  const std::vector<Row> rows = {
      {"between two", 12, 18, TickBatch{10, 1}, TickBatch{20, 2}},
      {"from tick to tick", 10, 20, TickBatch{10, 1}, TickBatch{20, 2}},
      {"one tick alone", 20, 20, TickBatch{20, 2}, TickBatch{20, 2}},
      {"over several", 15, 35, TickBatch{10, 1}, TickBatch{40, 4}},
      {"a tick without batch tells nothing", 30, 30, TickBatch{20, 2}, TickBatch{40, 4}},
      {"before all", 1, 9, std::nullopt, TickBatch{10, 1}},
      {"after all", 41, 50, TickBatch{40, 4}, std::nullopt},
      {"around all", 1, 50, std::nullopt, std::nullopt},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.name);
    const WriterStretch stretch{WriterNo{1}, row.first_us, row.last_us};
    BatchesAround around;
    NoteTicks(kTimes, kBatches, stretch, around);
    EXPECT_EQ(around, (BatchesAround{row.before, row.after}));
    // Whatever is shown first, in whatever pieces.
    BatchesAround in_pieces;
    for (const std::size_t i : {2u, 0u, 3u, 1u}) {
      NoteTicks(std::span(kTimes).subspan(i, 1), std::span(kBatches).subspan(i, 1), stretch,
                in_pieces);
    }
    EXPECT_EQ(in_pieces, around);
  }
}

TEST(BatchesAroundTest, OfTicksAtOneTimeTheWiderPlaceCounts) {
  for (const std::vector<std::int32_t>& batches :
       {std::vector<std::int32_t>{5, 7}, std::vector<std::int32_t>{7, 5}}) {
    BatchesAround around;
    NoteTicks(std::vector<std::int64_t>{10, 10}, batches, {WriterNo{1}, 10, 10}, around);
    EXPECT_EQ(around, (BatchesAround{TickBatch{10, 5}, TickBatch{10, 7}}));
  }
}

}  // namespace
}  // namespace stepwell
