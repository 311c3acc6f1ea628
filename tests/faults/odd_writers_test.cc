// Writers that do what others do not, all at once beside a training that is in order: chunks repeated, swapped, left
// out, the same Open twice on one stream and on two, times out of order, values at the edges of a double, messages
// that cannot be taken. Each loses nothing by it, and nobody else does.
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <regex>
#include <string>

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
    {"times"},   {"values"},      {"wrong", true}};
constexpr int kFirstRank = 10;
// Chunks of each writer, odd at one in five.
constexpr int kChunks = 60;
constexpr int kOddMin = 8;

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

TEST(OddWritersTest, LoseNothingAndHarmNoOthers) {
  Scene scene("odd writers");
  MasterProcess master({.scratch = scene.path("")});
  MasterClient client(master.grpc_address());
  ASSERT_TRUE(master.StartAndWait()) << master.LogTail();
  scene.StartAgent(master.grpc_address());
  for (const int rank : {0, 1}) scene.StartTrainer(rank, {{"--world-size", "2"}});
  int rank = kFirstRank;
  for (const Row& row : kRows) {
    scene.StartRawWriter(rank++, master.grpc_address(),
                         {{"--quirk", row.quirk},
                          {"--chunks", absl::StrCat(kChunks)},
                          {"--ack-patience-ms", "30000"}});
  }
  // A quirk of one in five, at 20 chunks a second.
  ASSERT_TRUE(scene.Await("all is acked", absl::Seconds(60),
                          [&] {
                            const Ledger ledger = scene.ReadLedgers();
                            std::size_t raw = 0;
                            for (const LoggedSample& sample : ledger.samples) {
                              raw += sample.rank >= kFirstRank && sample.acked ? 1 : 0;
                            }
                            return raw == std::size(kRows) * kChunks * 20;
                          }))
      << scene.Logs() << master.LogTail();
  const auto status = client.Status();
  ASSERT_TRUE(status);
  EXPECT_GE(status->chunks_repeated(), 2U * kOddMin);
  EXPECT_EQ(status->chunks_rejected(), 0U);
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
  const Verdict verdict = scene.ExpectExact(master, Demand::kRecorded);
  EXPECT_EQ(verdict.declared_count, 0U);
  EXPECT_EQ(master.Stop(), "exit 0") << master.LogTail();
}

}  // namespace
}  // namespace stepwell::faults
