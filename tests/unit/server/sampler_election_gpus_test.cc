// What a SamplerElection tells those that it tells off: the GPUs of those before them.
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/sampler_election.h"
#include "tests/unit/server/sampler_orders.h"

namespace stepwell {
namespace {

// Writers 1, 2, 3 open in that order; 1 names a and b, 2 names b and c, 3 names c.
TEST(SamplerElectionTest, WhoIsOffIsToldWhatThoseBeforeItSample) {
  using Election = SamplerElection;
  const SteadyTime later = kElectionTime + 2 * kOneSecond;
  const auto name = [](Election& e, int writer_no, const std::vector<std::string>& gpus,
                       SteadyTime now, std::uint64_t generation = 1) {
    return e.Name(kA, WriterNo{writer_no}, generation, Gpus(gpus), now);
  };
  struct Row {
    const char* name;
    std::function<Orders(Election&)> act;
    Orders expected;
  };
  const std::vector<Row> rows = {
      {"the same again",
       [&](Election& e) {
         return name(e, 1, {"b", "a"}, later);
       },
       {}},
      {"nothing more", [&](Election& e) { return name(e, 1, {}, later); }, {}},
      {"the elected one sees a further one",
       [&](Election& e) { return name(e, 1, {"d"}, later); },
       {Off(kA, 2, 1, {"a", "b", "d"}), Off(kA, 3, 1, {"a", "b", "c", "d"})}},
      {"one that is off sees a further one",
       [&](Election& e) { return name(e, 2, {"d"}, later); },
       {Off(kA, 3, 1, {"a", "b", "c", "d"})}},
      {"the last sees a further one", [&](Election& e) { return name(e, 3, {"d"}, later); }, {}},
      {"known before",
       [&](Election& e) { return name(e, 1, {"c"}, later); },
       {Off(kA, 2, 1, {"a", "b", "c"})}},
      {"of another generation", [&](Election& e) { return name(e, 1, {"d"}, later, 2); }, {}},
      {"of nobody", [&](Election& e) { return name(e, 9, {"d"}, later); }, {}},
      {"the elected one closes",
       [&](Election& e) { return e.Close(kA, WriterNo{1}, 1, later); },
       {Off(kA, 3, 1, {"b", "c"}), On(kA, 2, 1)}},
      {"the elected one's stream ends",
       [&](Election& e) { return e.Lose(kA, WriterNo{1}, 1, later); },
       {Off(kA, 3, 1, {"b", "c"}), On(kA, 2, 1)}},
      {"one that is off closes",
       [&](Election& e) { return e.Close(kA, WriterNo{2}, 1, later); },
       {Off(kA, 3, 1, {"a", "b"})}},
      {"one that is off falls silent",
       [&](Election& e) {
         return e.Look(
             [](TrialId, WriterNo no) {
               return no == WriterNo{2} ? SteadyTime() : kElectionTime + 61 * kOneSecond;
             },
             kElectionTime + 61 * kOneSecond);
       },
       {Off(kA, 3, 1, {"a", "b"}), Off(kA, 2, 1, {"a", "b", "c"})}},
      {"the elected one falls silent",
       [&](Election& e) {
         return e.Look(
             [](TrialId, WriterNo no) {
               return no == WriterNo{1} ? SteadyTime() : kElectionTime + 61 * kOneSecond;
             },
             kElectionTime + 61 * kOneSecond);
       },
       {Off(kA, 3, 1, {"b", "c"}), Off(kA, 1, 1, {"b", "c"}), On(kA, 2, 1)}},
      {"a fourth opens",
       [&](Election& e) { return e.Open(Sampler(kA, 4), later); },
       {Off(kA, 4, 1, {"a", "b", "c"})}},
      {"the elected one opens on a new stream and has not named any yet",
       [&](Election& e) { return e.Open(Sampler(kA, 1, "m", 2), later); },
       {On(kA, 1, 1)}},
      {"and then its first definitions name none",
       [&](Election& e) {
         e.Open(Sampler(kA, 1, "m", 2), later);
         return name(e, 1, {}, later, 2);
       },
       {}},
      {"and they name one less, but further ones may come",
       [&](Election& e) {
         e.Open(Sampler(kA, 1, "m", 2), later);
         Orders orders = name(e, 1, {"a"}, later, 2);
         for (const SamplingOrder& order : e.Look(Unheard, later + 4 * kOneSecond)) {
           orders.push_back(order);
         }
         return orders;
       },
       {}},
      {"and no further ones came",
       [&](Election& e) {
         e.Open(Sampler(kA, 1, "m", 2), later);
         name(e, 1, {"a"}, later, 2);
         return e.Look(Unheard, later + 5 * kOneSecond);
       },
       {Off(kA, 2, 1, {"a"})}},
      {"and a further one came",
       [&](Election& e) {
         e.Open(Sampler(kA, 1, "m", 2), later);
         name(e, 1, {}, later, 2);
         return name(e, 1, {"d"}, later + kOneSecond, 2);
       },
       {Off(kA, 2, 1, {"a", "b", "d"}), Off(kA, 3, 1, {"a", "b", "c", "d"})}},
      {"nothing changes", [&](Election& e) { return e.Look(Unheard, later); }, {}},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.name);
    Election election;
    for (int no = 1; no <= 3; ++no) election.Open(Sampler(kA, no), kElectionTime);
    name(election, 1, {"a", "b"}, kElectionTime);
    name(election, 2, {"b", "c"}, kElectionTime);
    name(election, 3, {"c"}, kElectionTime);
    election.Look(Unheard, kElectionTime + kOneSecond);
    EXPECT_EQ(row.act(election), row.expected);
  }
}

// Writer 1 is agent 1's and names a; 2 is agent 2's and names b; 3 is agent 1's as well.
TEST(SamplerElectionTest, SamplersOnOneStreamAreElectedTogether) {
  using Election = SamplerElection;
  const auto on_stream = [](int writer_no, std::uint64_t stream, std::uint64_t generation = 1) {
    SamplerElection::Writer writer = Sampler(kA, writer_no, "m", generation);
    writer.stream = stream;
    return writer;
  };
  struct Row {
    const char* name;
    std::function<Orders(Election&)> act;
    Orders expected;
  };
  const std::vector<Row> rows = {
      {"another of the elected agent opens",
       [&](Election& e) { return e.Open(on_stream(4, 1), kElectionTime); },
       {On(kA, 4, 1)}},
      {"another of the one that is off opens",
       [&](Election& e) { return e.Open(on_stream(4, 2), kElectionTime); },
       {Off(kA, 4, 1, {"a"})}},
      {"the older closes",
       [&](Election& e) { return e.Close(kA, WriterNo{1}, 1, kElectionTime); },
       {Off(kA, 2, 1)}},
      {"the newer closes",
       [&](Election& e) { return e.Close(kA, WriterNo{3}, 1, kElectionTime); },
       {}},
      {"both close",
       [&](Election& e) {
         e.Close(kA, WriterNo{1}, 1, kElectionTime);
         return e.Close(kA, WriterNo{3}, 1, kElectionTime);
       },
       {On(kA, 2, 1)}},
      {"the older alone falls silent",
       [&](Election& e) {
         return e.Look(
             [](TrialId, WriterNo no) {
               return no == WriterNo{1} ? SteadyTime() : kElectionTime + 61 * kOneSecond;
             },
             kElectionTime + 61 * kOneSecond);
       },
       {}},
      {"all of the agent fall silent",
       [&](Election& e) {
         return e.Look(
             [](TrialId, WriterNo no) {
               return no == WriterNo{2} ? kElectionTime + 61 * kOneSecond : SteadyTime();
             },
             kElectionTime + 61 * kOneSecond);
       },
       {Off(kA, 1, 1, {"b"}), Off(kA, 3, 1, {"b"}), On(kA, 2, 1)}},
      {"the agent opens on a new stream, the newer first",
       [&](Election& e) { return e.Open(on_stream(3, 5, 2), kElectionTime); },
       {Off(kA, 1, 1), On(kA, 3, 1)}},
      {"the agent opens on a new stream, the older first",
       [&](Election& e) { return e.Open(on_stream(1, 5, 2), kElectionTime); },
       {Off(kA, 3, 1, {"a"}), On(kA, 1, 1)}},
      {"and then the other",
       [&](Election& e) {
         e.Open(on_stream(1, 5, 2), kElectionTime);
         return e.Open(on_stream(3, 5, 2), kElectionTime);
       },
       {On(kA, 3, 1)}},
      {"a new agent takes up the backlog of the one whose stream still stands",
       [&](Election& e) {
         e.Open(on_stream(4, 5), kElectionTime);
         e.Open(on_stream(1, 5, 2), kElectionTime);
         return e.Open(on_stream(3, 5, 2), kElectionTime);
       },
       {On(kA, 3, 1)}},
      {"another trial shares the machine",
       [&](Election& e) { return e.Open(Rank(kB, 1), kElectionTime); },
       {On(kA, 1, 2), On(kA, 3, 2)}},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.name);
    Election election;
    election.Open(on_stream(1, 1), kElectionTime);
    election.Name(kA, WriterNo{1}, 1, Gpus({"a"}), kElectionTime);
    election.Open(on_stream(2, 2), kElectionTime);
    election.Name(kA, WriterNo{2}, 1, Gpus({"b"}), kElectionTime);
    EXPECT_EQ(election.Open(on_stream(3, 1), kElectionTime), Orders{On(kA, 3, 1)});
    EXPECT_EQ(row.act(election), row.expected);
  }
}

TEST(SamplerElectionTest, GpusAloneAreToldAtOnceThenOnceASecond) {
  SamplerElection election;
  election.Open(Sampler(kA, 1), kElectionTime);
  election.Open(Sampler(kA, 2), kElectionTime);
  std::vector<std::string> seen;
  int told = 0;
  for (int i = 0; i < 100; ++i) {
    const std::string gpu = absl::StrCat("g", 100 + i);
    seen.push_back(gpu);
    const Orders orders =
        election.Name(kA, WriterNo{1}, 1, Gpus({gpu}), kElectionTime + absl::Microseconds(i));
    told += static_cast<int>(orders.size());
    if (i == 0) {
      EXPECT_EQ(orders, Orders{Off(kA, 2, 1, {"g100"})});
    }
  }
  EXPECT_EQ(told, 1);
  EXPECT_EQ(election.Look(Unheard, kElectionTime + kOneSecond), (Orders{Off(kA, 2, 1, seen)}));
  EXPECT_EQ(election.Look(Unheard, kElectionTime + 3 * kOneSecond), Orders{}) << "told";
  // Whether it samples, and what those before it leave when they go, is told at once.
  election.Open(Sampler(kA, 3), kElectionTime + 4 * kOneSecond);
  election.Name(kA, WriterNo{1}, 1, Gpus({"h"}), kElectionTime + 4 * kOneSecond);
  EXPECT_EQ(election.Close(kA, WriterNo{1}, 1, kElectionTime + 4 * kOneSecond),
            (Orders{Off(kA, 3, 1), On(kA, 2, 1)}));
}

// Whoever opens samplers without end has lists for so many of a machine, and others none of them.
// It opened again and no more has a; before that was certain it opened once more, and named nothing.
TEST(SamplerElectionTest, AGpuThatWentAwayCountsNoLongerAfterOneMoreOpen) {
  SamplerElection election;
  const auto all_live = [](TrialId, WriterNo) { return kElectionTime + 9 * kOneSecond; };
  const auto open = [&](int writer_no, std::uint64_t generation) {
    return election.Open(Sampler(kA, writer_no, "m", generation), kElectionTime);
  };
  open(1, 1);
  election.Name(kA, WriterNo{1}, 1, Gpus({"a", "b"}), kElectionTime);
  EXPECT_EQ(open(2, 1), (Orders{Off(kA, 2, 1, {"a", "b"})}));
  open(1, 2);
  election.Name(kA, WriterNo{1}, 2, Gpus({"b"}), kElectionTime + kOneSecond);
  open(1, 3);
  EXPECT_EQ(election.Look(all_live, kElectionTime + 5 * kOneSecond), Orders{}) << "more may come";
  EXPECT_EQ(election.Look(all_live, kElectionTime + 6 * kOneSecond),
            (Orders{Off(kA, 2, 1, {"b"})}));
}

TEST(SamplerElectionTest, WhatIsForgottenIsNotCountedHoweverOftenItOpens) {
  SamplerElection election;
  const auto open = [&](std::uint64_t generation, const std::vector<std::string>& gpus) {
    election.Open(Sampler(kA, 1, "m", generation), kElectionTime);
    election.Name(kA, WriterNo{1}, generation, Gpus(gpus), kElectionTime + kOneSecond);
  };
  open(1, {"a", "b"});
  const std::size_t once = election.named_bytes();
  for (std::uint64_t generation = 2; generation < 50; ++generation) open(generation, {"a", "b"});
  // Those of the last generation beside those before it.
  EXPECT_LE(election.named_bytes(), 2 * once);
  election.Close(kA, WriterNo{1}, 49, kElectionTime + kOneSecond);
  EXPECT_EQ(election.named_bytes(), 0u);
}

TEST(SamplerElectionTest, OfManySamplersOfAMachineTheFirstNameGpusAndAreToldOfThem) {
  SamplerElection election({.naming_count_max = 3});
  for (int no = 1; no <= 5; ++no) election.Open(Sampler(kA, no), kElectionTime);
  EXPECT_EQ(election.Name(kA, WriterNo{1}, 1, Gpus({"a"}), kElectionTime),
            (Orders{Off(kA, 2, 1, {"a"}), Off(kA, 3, 1, {"a"})}));
  EXPECT_EQ(election.Name(kA, WriterNo{4}, 1, Gpus({"d"}), kElectionTime), Orders{});
  const std::size_t bytes = election.named_bytes();
  EXPECT_GT(bytes, 0u);
  // Another machine, or one that comes when one of these has gone.
  EXPECT_EQ(election.Open(Sampler(kB, 1, "n"), kElectionTime), Orders{On(kB, 1, 1)});
  EXPECT_EQ(election.Name(kB, WriterNo{1}, 1, Gpus({"n"}), kElectionTime), Orders{});
  EXPECT_GT(election.named_bytes(), bytes);
  election.Close(kB, WriterNo{1}, 1, kElectionTime);
  EXPECT_EQ(election.named_bytes(), bytes);
  election.Close(kA, WriterNo{3}, 1, kElectionTime);
  EXPECT_EQ(election.Open(Sampler(kA, 6), kElectionTime), Orders{Off(kA, 6, 1, {"a"})});
  EXPECT_EQ(election.Open(Sampler(kA, 7), kElectionTime), Orders{Off(kA, 7, 1)});
}

TEST(SamplerElectionTest, AllNamesTogetherAreBounded) {
  SamplerElection election({.named_bytes_max = 100'000});
  std::vector<std::string> many;
  for (int i = 0; i < 256; ++i) many.push_back(absl::StrCat(std::string(120, 'g'), 1000 + i));
  for (int machine = 0; machine < 100; ++machine) {
    const std::string name = absl::StrCat("m", machine);
    election.Open(Sampler(kA, machine + 1, name), kElectionTime);
    election.Name(kA, WriterNo{machine + 1}, 1, Gpus(many), kElectionTime);
    EXPECT_LE(election.named_bytes(), 100'000u);
  }
  EXPECT_GT(election.named_bytes(), 0u);
  // What goes gives its room back, also where it opened again.
  for (int machine = 0; machine < 100; ++machine) {
    const std::string name = absl::StrCat("m", machine);
    election.Open(Sampler(kA, machine + 1, name, 2), kElectionTime);
    election.Name(kA, WriterNo{machine + 1}, 2, Gpus({"a"}), kElectionTime);
    EXPECT_LE(election.named_bytes(), 100'000u);
  }
  election.Look(Unheard, kElectionTime + 10 * kOneSecond);
  for (int machine = 0; machine < 50; ++machine) {
    election.Lose(kA, WriterNo{machine + 1}, 2, kElectionTime);
  }
  for (int machine = 50; machine < 100; ++machine) {
    election.Close(kA, WriterNo{machine + 1}, 2, kElectionTime);
  }
  EXPECT_EQ(election.named_bytes(), 0u);
}

TEST(SamplerElectionTest, GpusOfOtherMachinesTrialsAndRanksAreNobodysBusiness) {
  SamplerElection election;
  election.Open(Sampler(kA, 1, "m"), kElectionTime);
  election.Open(Sampler(kA, 2, "n"), kElectionTime);
  election.Open(Sampler(kB, 1, "m"), kElectionTime);
  election.Open(Rank(kA, 3, "m"), kElectionTime);
  EXPECT_EQ(election.Name(kA, WriterNo{2}, 1, Gpus({"other machine"}), kElectionTime), Orders{});
  EXPECT_EQ(election.Name(kB, WriterNo{1}, 1, Gpus({"other trial"}), kElectionTime), Orders{});
  EXPECT_EQ(election.Name(kA, WriterNo{3}, 1, Gpus({"a rank's"}), kElectionTime), Orders{});
  EXPECT_EQ(election.Open(Sampler(kA, 4, "m"), kElectionTime), Orders{Off(kA, 4, 2)});
}

}  // namespace
}  // namespace stepwell
