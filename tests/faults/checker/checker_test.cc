// The checker itself goes red: on a sample that is lost, doubled, changed, invented, or hidden behind
// a gap that is too small, leaves too much open or is of a cause that nobody expects.
#include "tests/faults/checker/checker.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <bit>
#include <cstdio>
#include <fstream>
#include <functional>

namespace stepwell::faults {
namespace {

constexpr std::int64_t kStartUs = 1'790'000'000'000'000;

struct History {
  Ledger ledger;
  std::vector<StoredSample> stored;
  std::vector<StoredGap> gaps;
  Allowance allowed;
};

// Two ranks, 50 samples of three kinds each, all acked, all stored once.
History CleanHistory() {
  History history;
  for (int rank = 0; rank < 2; ++rank) {
    for (int number = 0; number < 50; ++number) {
      const std::int64_t time_us = kStartUs + number * 1000;
      const auto checked = std::bit_cast<std::uint64_t>(ValueOf(7, rank, number));
      const auto numbered = std::bit_cast<std::uint64_t>(static_cast<double>(number));
      const auto duration = std::bit_cast<std::uint64_t>(0.25);
      history.ledger.samples.push_back(
          {"faults/checked", rank, number, number, true, time_us, checked, true});
      history.ledger.samples.push_back(
          {kNumberedSeries, rank, number, number / 2, false, time_us, numbered, true});
      history.ledger.samples.push_back(
          {"timing/step", rank, number, number, false, time_us, std::nullopt, true});
      history.stored.push_back({"faults/checked", rank, number, time_us, checked});
      history.stored.push_back({kNumberedSeries, rank, number / 2, time_us + 3, numbered});
      history.stored.push_back({"timing/step", rank, number, time_us + 5, duration});
    }
  }
  return history;
}

struct Row {
  const char* name;
  std::function<void(History&)> damage;
  std::uint64_t Verdict::*counter;  // null = must stay green
  std::uint64_t count;
  Demand demand = Demand::kAcked;
};

void DropStored(History& history, std::size_t index) {
  history.stored.erase(history.stored.begin() + static_cast<std::ptrdiff_t>(index));
}

// A gap of a cause that the test expects.
void Declare(History& history, StoredGap gap, Cause cause = Cause::kRingFull) {
  gap.cause = cause;
  history.gaps.push_back(gap);
  history.allowed.causes.insert(cause);
}

const Row kRows[] = {
    {"clean", [](History&) {}, nullptr, 0},
    {"checked one dropped", [](History& h) { DropStored(h, 30); }, &Verdict::missing_count, 1},
    {"numbered one dropped", [](History& h) { DropStored(h, 31); }, &Verdict::missing_count, 1},
    {"timing one dropped", [](History& h) { DropStored(h, 32); }, &Verdict::missing_count, 1},
    {"checked one doubled", [](History& h) { h.stored.push_back(h.stored[0]); },
     &Verdict::doubled_count, 1},
    {"numbered one doubled", [](History& h) { h.stored.push_back(h.stored[1]); },
     &Verdict::doubled_count, 1},
    {"timing one doubled", [](History& h) { h.stored.push_back(h.stored[2]); },
     &Verdict::doubled_count, 1},
    {"last bit of a value changed", [](History& h) { h.stored[0].value_bits ^= 1; },
     &Verdict::changed_count, 1},
    {"time changed by 1 µs", [](History& h) { h.stored[0].time_us += 1; }, &Verdict::changed_count,
     1},
    {"batch of a numbered one changed", [](History& h) { h.stored[1].batch += 1; },
     &Verdict::changed_count, 1},
    {"one of another rank", [](History& h) { h.stored[0].rank = 1; }, &Verdict::doubled_count, 1},
    {"one that nobody recorded", [](History& h) { h.stored[0].batch = 99; },
     &Verdict::unknown_count, 1},
    {"not acked and absent",
     [](History& h) {
       h.ledger.samples[30].acked = false;
       DropStored(h, 30);
     },
     nullptr, 0},
    {"not acked, absent, but demanded",
     [](History& h) {
       h.ledger.samples[30].acked = false;
       DropStored(h, 30);
     },
     &Verdict::missing_count, 1, Demand::kRecorded},
    {"not acked and doubled",
     [](History& h) {
       h.ledger.samples[30].acked = false;
       h.stored.push_back(h.stored[30]);
     },
     &Verdict::doubled_count, 1},
    {"its producer may have been killed before it, and absent",
     [](History& h) {
       h.ledger.samples[30].is_unsure = true;
       DropStored(h, 30);
     },
     nullptr, 0, Demand::kRecorded},
    {"its producer may have been killed before it, and doubled",
     [](History& h) {
       h.ledger.samples[30].is_unsure = true;
       h.stored.push_back(h.stored[30]);
     },
     &Verdict::doubled_count, 1, Demand::kRecorded},
    {"its producer may have been killed before it, and the one before is absent",
     [](History& h) {
       h.ledger.samples[33].is_unsure = true;
       DropStored(h, 33);
       DropStored(h, 30);
     },
     &Verdict::missing_count, 1, Demand::kRecorded},
    {"dropped within a declared gap",
     [](History& h) {
       DropStored(h, 30);
       Declare(h, {0, "", 1, kStartUs + 10'000, kStartUs + 10'000});
     },
     nullptr, 0},
    {"dropped beside a declared gap",
     [](History& h) {
       DropStored(h, 30);
       Declare(h, {0, "", 1, kStartUs + 31'000, kStartUs + 32'000});
     },
     &Verdict::missing_count, 1},
    {"the gap is of another rank",
     [](History& h) {
       DropStored(h, 30);
       Declare(h, {1, "", 1, kStartUs, kStartUs + 50'000});
     },
     &Verdict::missing_count, 1},
    {"the gap is of another group",
     [](History& h) {
       DropStored(h, 30);
       Declare(h, {0, "timing", 1, kStartUs, kStartUs + 50'000});
     },
     &Verdict::missing_count, 1},
    {"the gap counts one, two are dropped",
     [](History& h) {
       DropStored(h, 33);
       DropStored(h, 30);
       Declare(h, {0, "", 1, kStartUs, kStartUs + 50'000});
     },
     &Verdict::missing_count, 1},
    {"a gap of all groups, and one of the group that was looked at first",
     [](History& h) {
       DropStored(h, 32);
       DropStored(h, 30);
       Declare(h, {0, "", 1, kStartUs, kStartUs + 50'000});
       Declare(h, {0, "faults", 1, kStartUs, kStartUs + 50'000});
     },
     nullptr, 0},
    {"a gap of all groups, and one of another group",
     [](History& h) {
       DropStored(h, 33);
       DropStored(h, 30);
       Declare(h, {0, "", 1, kStartUs, kStartUs + 50'000});
       Declare(h, {0, "timing", 1, kStartUs, kStartUs + 50'000});
     },
     &Verdict::missing_count, 1},
    {"three gaps that make room one after the other",
     [](History& h) {
       for (const std::size_t index : {75, 2, 0}) DropStored(h, index);
       Declare(h, {0, "", 1, kStartUs, kStartUs});
       Declare(h, {0, "faults", 1, kStartUs, kStartUs + 5'000});
       Declare(h, {0, "faults", 1, kStartUs + 40'000, kStartUs + 50'000});
     },
     nullptr, 0},
    {"a gap without times and one stretch",
     [](History& h) {
       h.stored.erase(h.stored.begin() + 30, h.stored.begin() + 60);
       Declare(h, {0, "", 0, 0, 0}, Cause::kSpoolLost);
       h.allowed.with_uncounted = true;
     },
     nullptr, 0},
    {"a gap without times and two holes",
     [](History& h) {
       DropStored(h, 60);
       DropStored(h, 30);
       Declare(h, {0, "", 0, 0, 0}, Cause::kSpoolLost);
       h.allowed.with_uncounted = true;
     },
     &Verdict::missing_count, 1},
    {"a gap with times that leaves its count open, and one stretch",
     [](History& h) {
       h.stored.erase(h.stored.begin() + 30, h.stored.begin() + 60);
       Declare(h, {0, "", 0, kStartUs, kStartUs + 50'000}, Cause::kRestored);
       h.allowed.with_uncounted = true;
     },
     nullptr, 0},
    {"a gap with times that leaves its count open, and three holes",
     [](History& h) {
       for (const std::size_t index : {90, 60, 30}) DropStored(h, index);
       Declare(h, {0, "", 0, kStartUs, kStartUs + 50'000}, Cause::kRestored);
       h.allowed.with_uncounted = true;
     },
     &Verdict::missing_count, 2},
    {"a gap leaves its count open, and the test expects one that counts",
     [](History& h) {
       DropStored(h, 30);
       Declare(h, {0, "", 0, kStartUs, kStartUs + 50'000}, Cause::kSpoolLost);
     },
     &Verdict::missing_count, 1},
    {"a gap leaves its count open, of a cause that always knows it",
     [](History& h) {
       DropStored(h, 30);
       Declare(h, {0, "", 0, kStartUs, kStartUs + 50'000}, Cause::kRingFull);
       h.allowed.with_uncounted = true;
     },
     &Verdict::missing_count, 1},
    {"a gap that leaves its first time open, and two holes",
     [](History& h) {
       DropStored(h, 60);
       DropStored(h, 30);
       Declare(h, {0, "", 2, 0, kStartUs + 50'000});
     },
     &Verdict::missing_count, 1},
    {"a gap that leaves its last time open, and two holes",
     [](History& h) {
       DropStored(h, 60);
       DropStored(h, 30);
       Declare(h, {0, "", 2, kStartUs, 0});
     },
     &Verdict::missing_count, 1},
    {"a gap that leaves one time open, and one stretch",
     [](History& h) {
       h.stored.erase(h.stored.begin() + 30, h.stored.begin() + 60);
       Declare(h, {0, "", 30, 0, kStartUs + 50'000});
     },
     nullptr, 0},
    {"two holes, a gap without times, and one that ended before the first of them",
     [](History& h) {
       DropStored(h, 60);
       DropStored(h, 30);
       Declare(h, {0, "", 2, 0, 0});
       Declare(h, {0, "", 2, 0, kStartUs - 10'000'000});
     },
     &Verdict::missing_count, 1},
    {"two holes, and two gaps without times",
     [](History& h) {
       DropStored(h, 60);
       DropStored(h, 30);
       Declare(h, {0, "", 1, 0, 0});
       Declare(h, {0, "", 1, 0, 0});
     },
     nullptr, 0},
    {"a gap without times that may hide two holes, and three of them",
     [](History& h) {
       for (const std::size_t index : {90, 60, 30}) DropStored(h, index);
       Declare(h, {0, "", 3, 0, 0});
       h.allowed.stretches_max = 2;
     },
     &Verdict::missing_count, 1},
    {"a gap without times that may hide two holes, and both are there",
     [](History& h) {
       DropStored(h, 60);
       DropStored(h, 30);
       Declare(h, {0, "", 2, 0, 0});
       h.allowed.stretches_max = 2;
     },
     nullptr, 0},
    {"a stretch of which another gap tells the middle",
     [](History& h) {
       for (std::size_t number = 40; number >= 5; --number) DropStored(h, 3 * number);
       Declare(h, {0, "", 35, 0, 0});
       Declare(h, {0, "", 1, kStartUs + 40'000, kStartUs + 40'000});
     },
     nullptr, 0},
    {"a gap that nobody expects",
     [](History& h) {
       DropStored(h, 30);
       h.gaps.push_back({0, "", 1, kStartUs, kStartUs + 50'000, Cause::kSpoolLost});
     },
     &Verdict::missing_count, 1},
    {"a gap of another cause than is expected",
     [](History& h) {
       DropStored(h, 30);
       h.gaps.push_back({0, "", 1, kStartUs, kStartUs + 50'000, Cause::kSpoolLost});
       h.allowed.causes = {Cause::kRingFull};
     },
     &Verdict::missing_count, 1},
    {"a gap that counts two, and one is expected",
     [](History& h) {
       DropStored(h, 33);
       DropStored(h, 30);
       Declare(h, {0, "", 2, kStartUs, kStartUs + 50'000});
       h.allowed.count_max = 1;
     },
     &Verdict::missing_count, 1},
    {"all are lost but one, and declared",
     [](History& h) {
       h.stored.resize(1);
       Declare(h, {{}, "", 299, kStartUs, kStartUs + 50'000}, Cause::kSpoolLost);
       h.allowed.causes = {};
     },
     &Verdict::missing_count, 299},
    {"nothing stored at all", [](History& h) { h.stored.clear(); }, &Verdict::missing_count, 300},
};

TEST(CheckerTest, GoesRedForEachDamageAndForNothingElse) {
  for (const Row& row : kRows) {
    SCOPED_TRACE(row.name);
    History history = CleanHistory();
    row.damage(history);
    const Verdict verdict =
        Check(history.ledger, history.stored, history.gaps, row.demand, history.allowed);
    EXPECT_EQ(verdict.ok(), row.counter == nullptr) << verdict.ToText();
    if (row.counter != nullptr) {
      EXPECT_EQ(verdict.*row.counter, row.count) << verdict.ToText();
    }
  }
}

TEST(CheckerTest, AnEmptyHistoryProvesNothing) {
  EXPECT_FALSE(Check({}, {}, {}, Demand::kAcked).ok());
}

TEST(LedgerTest, ReadsBackWhatAProducerWroteAndLeavesATornLineOut) {
  const std::string path = ::testing::TempDir() + "ledger_test" + std::to_string(getpid());
  const LoggedSample checked = {"faults/checked",    3,    12, 12, true, kStartUs,
                                0x8000000000000001U, false};
  const LoggedSample timing = {"timing/a/b.count", 3, 4, -1, false, kStartUs, std::nullopt, false};
  {
    std::ofstream file(path);
    file << SampleLine(checked) << SampleLine(timing) << "ack 1\ndropped 5\nr faults/chec";
  }
  Ledger ledger;
  ASSERT_EQ(ReadLedger(path, ledger), "");
  ASSERT_EQ(ledger.samples.size(), 2U);
  EXPECT_EQ(SampleLine(ledger.samples[0]), SampleLine(checked));
  EXPECT_EQ(SampleLine(ledger.samples[1]), SampleLine(timing));
  EXPECT_TRUE(ledger.samples[0].acked);
  EXPECT_FALSE(ledger.samples[1].acked);
  EXPECT_EQ(ledger.dropped_count, 5U);
  // A second file's acks count from its own first line.
  ASSERT_EQ(ReadLedger(path, ledger), "");
  EXPECT_EQ(ledger.acked_count(), 2U);
  std::remove(path.c_str());
}

TEST(LedgerTest, OfAProducerThatWritesBeforeItRecordsTheLinesBehindItsLastWordAreUnsure) {
  const std::string path = ::testing::TempDir() + "ledger_test_done" + std::to_string(getpid());
  const std::string line = SampleLine({"faults/checked", 3, 12, 12, true, kStartUs, 1U, false});
  struct Text {
    std::string text;
    std::uint64_t count;
    std::uint64_t unsure_count;
  };
  for (const Text& row : {Text{line + line, 2, 0}, Text{"done 0\n" + line + line, 2, 2},
                          Text{"done 0\n" + line + "done 1\n" + line + line, 3, 2},
                          Text{"done 0\n" + line + "done 1\ndropped 0\n", 1, 0},
                          // A word that was torn counts for nothing.
                          Text{"done 0\n" + line + line + "done 2", 2, 2}}) {
    SCOPED_TRACE(row.text);
    {
      std::ofstream file(path);
      file << row.text;
    }
    // Behind another file, which is sure of all.
    Ledger ledger;
    ledger.samples.resize(5);
    ASSERT_EQ(ReadLedger(path, ledger), "");
    EXPECT_EQ(ledger.samples.size(), 5 + row.count);
    EXPECT_EQ(ledger.unsure_count(), row.unsure_count);
    EXPECT_FALSE(ledger.samples[4].is_unsure);
  }
  std::remove(path.c_str());
}

TEST(LedgerTest, RefusesWhatItDoesNotUnderstand) {
  const std::string path = ::testing::TempDir() + "ledger_test_bad" + std::to_string(getpid());
  for (const char* line : {"x 1\n", "r faults/checked 0\n", "ack 1\n", "ack many\n", "done 1\n"}) {
    {
      std::ofstream file(path);
      file << line;
    }
    Ledger ledger;
    EXPECT_NE(ReadLedger(path, ledger), "") << line;
  }
  std::remove(path.c_str());
}

TEST(LedgerTest, ValuesDifferInMostBits) {
  EXPECT_NE(ValueOf(1, 0, 1), ValueOf(1, 0, 2));
  EXPECT_NE(ValueOf(1, 0, 1), ValueOf(1, 1, 1));
  EXPECT_NE(ValueOf(1, 0, 1), ValueOf(2, 0, 1));
}

}  // namespace
}  // namespace stepwell::faults
