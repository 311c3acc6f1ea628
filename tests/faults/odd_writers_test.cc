// Writers that do what others do not, all at once beside a training that is in order: chunks repeated, swapped, left
// out, the same Open twice on one stream and on two, times out of order, values at the edges of a double, messages
// that cannot be taken, chunks that cannot be stored and whose acks are lost. Each loses nothing by it, and nobody else does; who reads meanwhile is told what SQL is.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <iterator>
#include <limits>
#include <map>
#include <regex>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "tests/faults/master_client.h"
#include "tests/faults/scene.h"

namespace stepwell::faults {
namespace {

struct Row {
  const char* quirk;
  bool is_refused = false;
  bool is_fenced = false;
};
constexpr Row kRows[] = {
    {"repeats"}, {"swaps", true}, {"skips", true}, {"again"}, {"elsewhere", false, true},
    {"times"},   {"values"},      {"wrong", true}, {"spoils"}};
// Of what the one that talks wrong says.
constexpr const char* kReasons[] = {"INVALID_UTF8"};
constexpr int kFirstRank = 10;
// Chunks of each writer, odd at one in five.
constexpr int kChunks = 60;
constexpr int kOddMin = 8;
constexpr int kSamplesOfChunk = 20;
// The last of them: one chunk in five cannot be stored.
constexpr int kSpoilingRank = kFirstRank + 8;
constexpr int kSpoiledChunks = kChunks / 5;
constexpr std::size_t kSamples = (std::size(kRows) * kChunks - kSpoiledChunks) * kSamplesOfChunk;

struct Told {
  int odd = 0;
  int refused = 0;
  int fenced = 0;
};

// What the writer of `rank` said at its end.
Told TellOf(int rank, const std::string& log) {
  const std::regex line(
      absl::StrCat("raw writer ", rank, ": odd (\\d+) times, refused (\\d+), fenced (\\d+)\n"));
  std::smatch found;
  Told told;
  if (!std::regex_search(log, found, line)) return told;
  (void)absl::SimpleAtoi(found[1].str(), &told.odd);
  (void)absl::SimpleAtoi(found[2].str(), &told.refused);
  (void)absl::SimpleAtoi(found[3].str(), &told.fenced);
  return told;
}

// What odd writers recorded.
Ledger OddOnesOf(const Scene& scene) {
  Ledger ledger = scene.ReadLedgers();
  std::erase_if(ledger.samples, [](const LoggedSample& each) { return each.rank < kFirstRank; });
  return ledger;
}

// What ReadSamples tells beside the load: all that was acked before it was asked, each once and as it was recorded, in
// order. How many samples it told.
std::size_t ExpectReads(const Scene& scene, MasterClient& client) {
  std::set<std::tuple<int, std::int64_t>> acked;
  for (const LoggedSample& each : OddOnesOf(scene).samples) {
    if (each.acked) acked.emplace(each.rank, each.number);
  }
  std::vector<StoredSample> told;
  EXPECT_EQ(client.ReadSamples("faults", "faults", "raw", told), "");
  Ledger recorded = OddOnesOf(scene);
  for (LoggedSample& each : recorded.samples) each.acked = acked.contains({each.rank, each.number});
  const Verdict verdict = Check(recorded, told, {}, Demand::kAcked);
  EXPECT_TRUE(acked.empty() || verdict.ok()) << verdict.ToText();
  std::map<int, std::int64_t> newest_us;
  for (const StoredSample& sample : told) {
    std::int64_t& newest = newest_us[sample.rank];
    EXPECT_LE(newest, sample.time_us) << "rank " << sample.rank;
    newest = sample.time_us;
  }
  return told.size();
}

// One bucket of each series says what was recorded. REQUIRES: all of it is acked.
void ExpectSums(const Scene& scene, MasterClient& client) {
  struct Sum {
    std::uint64_t count = 0;
    std::uint64_t nan_count = 0;
    double min = std::numeric_limits<double>::infinity();
    double max = -std::numeric_limits<double>::infinity();
  };
  std::map<std::string, Sum> sums;
  for (const LoggedSample& each : OddOnesOf(scene).samples) {
    Sum& sum = sums[absl::StrCat(each.rank)];
    const auto value = std::bit_cast<double>(each.value_bits.value_or(0));
    ++(std::isnan(value) ? sum.nan_count : sum.count);
    if (std::isnan(value)) continue;
    sum.min = std::min(sum.min, value);
    sum.max = std::max(sum.max, value);
  }
  const auto told = client.Sum("faults", "faults", "raw");
  ASSERT_TRUE(told);
  EXPECT_EQ(static_cast<std::size_t>(told->series_size()), sums.size());
  for (const auto& series : told->series()) {
    const std::string rank = series.key().labels().at("rank");
    SCOPED_TRACE(rank);
    ASSERT_EQ(series.counts_size(), 1);
    EXPECT_EQ(series.counts(0), sums[rank].count);
    EXPECT_EQ(series.nan_counts_size() == 0 ? 0 : series.nan_counts(0), sums[rank].nan_count);
    EXPECT_EQ(series.mins(0), sums[rank].min);
    EXPECT_EQ(series.maxs(0), sums[rank].max);
  }
}

TEST(OddWritersTest, LoseNothingAndHarmNoOthers) {
  Scene scene("odd writers");
  MasterProcess master({.scratch = scene.path("")});
  MasterClient client(master.grpc_address());
  ASSERT_TRUE(master.StartAndWait()) << master.LogTail();
  scene.StartAgent(master.grpc_address());
  for (const int rank : {0, 1}) scene.StartTrainer(rank, {{"--world-size", "2"}});
  ASSERT_TRUE(scene.Await("a trial", absl::Seconds(30), [&] {
    return client.Trial("faults").has_value();
  })) << scene.Logs();
  int rank = kFirstRank;
  for (const Row& row : kRows) {
    scene.StartRawWriter(rank++, master.grpc_address(),
                         {{"--quirk", row.quirk},
                          {"--chunks", absl::StrCat(kChunks)},
                          {"--ack-patience-ms", "30000"}});
  }
  // A quirk of one in five, at 20 chunks a second.
  int read_count = 0;
  ASSERT_TRUE(scene.Await("all is acked", absl::Seconds(60),
                          [&] {
                            read_count += ExpectReads(scene, client) > 0 ? 1 : 0;
                            return OddOnesOf(scene).acked_count() == kSamples;
                          }))
      << scene.Logs() << master.LogTail();
  scene.Say(absl::StrCat(read_count, " reads beside the load"));
  EXPECT_GE(read_count, 1);
  // The trainers go on.
  EXPECT_EQ(ExpectReads(scene, client), kSamples);
  ASSERT_NO_FATAL_FAILURE(ExpectSums(scene, client));
  const auto status = client.Status();
  ASSERT_TRUE(status);
  EXPECT_GE(status->chunks_repeated(), 2U * kOddMin);
  EXPECT_EQ(status->chunks_rejected(), static_cast<std::uint64_t>(kSpoiledChunks));
  scene.StopProducers(absl::Seconds(60));
  std::ifstream file(scene.path("producers.log"));
  const std::string log{std::istreambuf_iterator<char>(file), {}};
  rank = kFirstRank;
  for (const Row& row : kRows) {
    SCOPED_TRACE(row.quirk);
    const Told told = TellOf(rank++, log);
    scene.Say(absl::StrCat(row.quirk, ": ", told.odd, " times, refused ", told.refused, ", fenced ",
                           told.fenced));
    EXPECT_GE(told.odd, kOddMin) << log;
    EXPECT_GE(told.refused, row.is_refused ? kOddMin : 0) << log;
    EXPECT_GE(told.fenced, row.is_fenced ? kOddMin : 0) << log;
  }
  for (const char* reason : kReasons) {
    EXPECT_NE(log.find(absl::StrCat(": refused as ", reason, "\n")), std::string::npos) << log;
  }
  const Verdict verdict = scene.ExpectExact(master, Demand::kRecorded);
  EXPECT_EQ(verdict.declared_count, 0U);
  std::int64_t rejected_count = 0;
  for (const StoredGap& gap : scene.stored().gaps) {
    EXPECT_EQ(gap.rank, kSpoilingRank);
    EXPECT_EQ(gap.cause, Cause::kRejected);
    rejected_count += gap.sample_count;
  }
  EXPECT_EQ(rejected_count, kSpoiledChunks * kSamplesOfChunk);
  EXPECT_EQ(master.Stop(), "exit 0") << master.LogTail();
}

}  // namespace
}  // namespace stepwell::faults
