// Three clients name thousands of new series each, beside trainers of the same trial, which then has no room for
// all of them. The trainers' samples arrive exactly and go on arriving; which series found no room is told to
// each client, series by series, and what it sends of them is a gap that counts it.
#include <gtest/gtest.h>

#include <cstdint>
#include <fstream>
#include <sstream>
#include <string>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "tests/faults/database_text.h"
#include "tests/faults/master_client.h"
#include "tests/faults/scene.h"

namespace stepwell::faults {
namespace {

constexpr int kFlooders = 3;
constexpr int kFirstFlooder = 10;
constexpr int kSeriesEach = 5000;
constexpr int kChunksEach = 8;
constexpr int kRoom = 8000;
constexpr int kBeyond = kFlooders * kSeriesEach - kRoom;
// server/limits.h
constexpr int kSeriesOfTrial = 200'000;

class SeriesFloodTest : public ::testing::Test {
 protected:
  std::uint64_t committed() {
    const auto status = client_.Status();
    return status ? status->chunks_committed() : 0;
  }
  std::int64_t Ask(const std::string& sql) const {
    const std::string text = DatabaseText(master_.database_url(), sql);
    std::int64_t number = -1;
    EXPECT_TRUE(absl::SimpleAtoi(text, &number)) << text;
    return number;
  }
  // By all refusals that producers were sent: each names one, and says how many more there were.
  std::int64_t CountTold() const {
    std::stringstream log;
    log << std::ifstream(scene_.path("producers.log")).rdbuf();
    std::int64_t told = 0;
    for (absl::string_view line : absl::StrSplit(log.str(), '\n')) {
      if (!absl::ConsumePrefix(&line, "refused SERIES_LIMIT: ")) continue;
      ++told;
      const std::size_t others = line.find("; and ");
      if (others == absl::string_view::npos) continue;
      const absl::string_view rest = line.substr(others + 6);
      std::int64_t count = 0;
      EXPECT_TRUE(absl::SimpleAtoi(rest.substr(0, rest.find(' ')), &count)) << line;
      told += count;
    }
    return told;
  }

  Scene scene_{"series flood"};
  MasterProcess master_{{.scratch = scene_.path("")}};
  MasterClient client_{master_.grpc_address()};
};

TEST_F(SeriesFloodTest, HarmsNoOthersAndWhatFindsNoRoomIsTold) {
  ASSERT_TRUE(master_.StartAndWait()) << master_.LogTail();
  scene_.StartAgent(master_.grpc_address());
  for (const int rank : {0, 1}) scene_.StartTrainer(rank, {{"--world-size", "2"}});
  ASSERT_TRUE(scene_.Await("20 chunks", absl::Seconds(60), [&] { return committed() >= 20; }))
      << scene_.Logs() << master_.LogTail();
  // As if it had named so many before.
  ASSERT_EQ(Ask(absl::StrCat("update stepwell.trials set series_count = ", kSeriesOfTrial - kRoom,
                             " returning series_count")),
            kSeriesOfTrial - kRoom);
  for (int i = 0; i < kFlooders; ++i) {
    // Patient: one that comes again is told again.
    scene_.StartRawWriter(kFirstFlooder + i, master_.grpc_address(),
                          {{"--series", absl::StrCat(kSeriesEach)},
                           {"--samples", "1"},
                           {"--chunks", absl::StrCat(kChunksEach)},
                           {"--ack-patience-ms", "120000"}});
  }
  EXPECT_TRUE(scene_.Await("all that found no room is told", absl::Seconds(120),
                           [&] { return CountTold() >= kBeyond; }))
      << scene_.Logs() << master_.LogTail();
  const std::uint64_t before = committed();
  EXPECT_TRUE(
      scene_.Await("60 chunks more", absl::Seconds(60), [&] { return committed() >= before + 60; }))
      << scene_.Logs() << master_.LogTail();
  scene_.StopProducers(absl::Seconds(120));
  EXPECT_EQ(CountTold(), kBeyond);
  EXPECT_EQ(Ask("select series_count from stepwell.trials"), kSeriesOfTrial);
  EXPECT_EQ(Ask("select count(*) from stepwell.series where name like 'raw%'"), kRoom);
  const auto refused = static_cast<std::uint64_t>(kBeyond) * kChunksEach;
  const Verdict verdict = scene_.ExpectExact(master_, Demand::kRecorded,
                                             {.causes = {Cause::kRejected}, .count_max = refused});
  EXPECT_EQ(verdict.declared_count, refused);
  for (const StoredGap& gap : scene_.stored().gaps) {
    EXPECT_TRUE(gap.rank && *gap.rank >= kFirstFlooder) << "a trainer lost something";
  }
  EXPECT_EQ(master_.Stop(), "exit 0") << master_.LogTail();
}

}  // namespace
}  // namespace stepwell::faults
