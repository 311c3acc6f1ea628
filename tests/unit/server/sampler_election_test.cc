#include "server/sampler_election.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/unit/server/sampler_orders.h"
#include "tests/unit/server/test_seed.h"

namespace stepwell {
namespace {

TEST(SamplerElectionTest, TheFirstThatOpensSamplesAndTheNextFollowsIt) {
  using Election = SamplerElection;
  struct Row {
    const char* name;
    std::function<Orders(Election&)> act;
    Orders expected;
  };
  const WriterNo first{1};
  const std::vector<Row> rows = {
      {"closes", [&](Election& e) { return e.Close(kA, first, 1, kElectionTime); }, {On(kA, 2, 1)}},
      {"its stream ends",
       [&](Election& e) { return e.Lose(kA, first, 1, kElectionTime); },
       {On(kA, 2, 1)}},
      {"falls silent",
       [&](Election& e) {
         return e.Look(
             [](TrialId, WriterNo no) {
               return no == WriterNo{1} ? SteadyTime() : kElectionTime + 61 * kOneSecond;
             },
             kElectionTime + 61 * kOneSecond);
       },
       {Off(kA, 1, 1), On(kA, 2, 1)}},
      {"has moved to another machine",
       [&](Election& e) { return e.Open(Sampler(kA, 1, "other", 2), kElectionTime); },
       {On(kA, 2, 1), On(kA, 1, 1)}},
      {"is opened anew while its stream stands",
       [&](Election& e) { return e.Open(Sampler(kA, 1, "m", 2), kElectionTime); },
       {On(kA, 1, 1)}},
      {"an older stream of it ends",
       [&](Election& e) { return e.Lose(kA, first, 0, kElectionTime); },
       {}},
      {"an older Open of it arrives",
       [&](Election& e) { return e.Open(Sampler(kA, 1, "m", 0), kElectionTime); },
       {}},
      {"nothing changes",
       [&](Election& e) { return e.Look(Unheard, kElectionTime + 60 * kOneSecond); },
       {}},
      {"all fall silent",
       [&](Election& e) { return e.Look(Unheard, kElectionTime + 61 * kOneSecond); },
       {}},
      {"the second one closes",
       [&](Election& e) { return e.Close(kA, WriterNo{2}, 1, kElectionTime); },
       {}},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.name);
    Election election;
    EXPECT_EQ(election.Open(Sampler(kA, 1), kElectionTime), Orders{On(kA, 1, 1)});
    EXPECT_EQ(election.Open(Sampler(kA, 2), kElectionTime), Orders{Off(kA, 2, 1)});
    EXPECT_EQ(row.act(election), row.expected);
  }
}

TEST(SamplerElectionTest, AnswersEachOpenOfASampler) {
  SamplerElection election;
  EXPECT_EQ(election.Open(Rank(kA, 1), kElectionTime), Orders{});
  EXPECT_EQ(election.Open(Sampler(kA, 2, ""), kElectionTime), Orders{})
      << "no machine, no election";
  EXPECT_EQ(election.Open(Sampler(kA, 3, "m"), kElectionTime), Orders{On(kA, 3, 1)});
  EXPECT_EQ(election.Open(Sampler(kA, 4, "n"), kElectionTime), Orders{On(kA, 4, 1)})
      << "other machine";
  EXPECT_EQ(election.writer_count(), 3U);
}

TEST(SamplerElectionTest, WhoComesBackIsLast) {
  SamplerElection election;
  election.Open(Sampler(kA, 1), kElectionTime);
  election.Open(Sampler(kA, 2), kElectionTime);
  EXPECT_EQ(election.Lose(kA, WriterNo{1}, 1, kElectionTime), Orders{On(kA, 2, 1)});
  EXPECT_EQ(election.Open(Sampler(kA, 1, "m", 2), kElectionTime), Orders{Off(kA, 1, 1)});
  // Silent, then heard of: the seat has another, who lives.
  const auto only_one = [](TrialId, WriterNo no) {
    return no == WriterNo{1} ? kElectionTime + 61 * kOneSecond : SteadyTime();
  };
  EXPECT_EQ(election.Look(only_one, kElectionTime + 61 * kOneSecond),
            (Orders{Off(kA, 2, 1), On(kA, 1, 1)}));
  const auto both = [](TrialId, WriterNo) { return kElectionTime + 62 * kOneSecond; };
  EXPECT_EQ(election.Look(both, kElectionTime + 62 * kOneSecond), Orders{});
}

TEST(SamplerElectionTest, TellsWhoSamplesHowManyTrialsShareTheMachine) {
  SamplerElection election;
  EXPECT_EQ(election.Open(Sampler(kA, 1), kElectionTime), Orders{On(kA, 1, 1)});
  EXPECT_EQ(election.Open(Sampler(kA, 2), kElectionTime), Orders{Off(kA, 2, 1)});
  EXPECT_EQ(election.Open(Rank(kB, 1), kElectionTime), Orders{On(kA, 1, 2)})
      << "not the one that is off";
  EXPECT_EQ(election.Open(Rank(kB, 2), kElectionTime), Orders{});
  EXPECT_EQ(election.Open(Sampler(kB, 3), kElectionTime), Orders{On(kB, 3, 2)});
  EXPECT_EQ(election.Close(kB, WriterNo{1}, 1, kElectionTime), Orders{});
  EXPECT_EQ(election.Close(kB, WriterNo{2}, 1, kElectionTime), Orders{})
      << "its sampler is still there";
  EXPECT_EQ(election.Close(kB, WriterNo{3}, 1, kElectionTime), Orders{On(kA, 1, 1)});
}

TEST(SamplerElectionTest, ATrialWhoseStreamBrokeIsCountedUntilItIsSilent) {
  SamplerElection election;
  election.Open(Sampler(kA, 1), kElectionTime);
  election.Open(Sampler(kB, 1), kElectionTime);
  EXPECT_EQ(election.Lose(kB, WriterNo{1}, 1, kElectionTime), Orders{}) << "it may come back";
  EXPECT_EQ(election.Open(Sampler(kB, 1, "m", 2), kElectionTime), Orders{On(kB, 1, 2)});
  EXPECT_EQ(election.Lose(kB, WriterNo{1}, 2, kElectionTime), Orders{});
  const auto heard = [](TrialId trial_id, WriterNo) {
    return trial_id == kA ? kElectionTime + 61 * kOneSecond : SteadyTime();
  };
  EXPECT_EQ(election.Look(heard, kElectionTime + 61 * kOneSecond), Orders{On(kA, 1, 1)});
  EXPECT_EQ(election.writer_count(), 1U) << "forgotten";
}

TEST(SamplerElectionTest, WhatIsLostIsBounded) {
  SamplerElection election(SamplerElection::Options{.lost_count_max = 10});
  for (int i = 1; i <= 100; ++i) {
    election.Open(Rank(TrialId{i}, 1, absl::StrCat("m", i)), kElectionTime);
    election.Lose(TrialId{i}, WriterNo{1}, 1, kElectionTime);
  }
  EXPECT_EQ(election.writer_count(), 10U);
  election.Clear();
  EXPECT_EQ(election.writer_count(), 0U);
}

// Random opens, closes, cuts and silences, against what must hold of what writers know by then.
TEST(SamplerElectionTest, OneSamplesEachTrialOfAMachineWhateverHappens) {
  struct Known {
    SamplerElection::Writer writer;
    bool held = true;
    SteadyTime heard = {};
    std::optional<SamplingOrder> told = {};
    std::set<std::string> gpus = {};
    std::uint64_t gpus_generation = 0;
    // What an earlier generation named still counts.
    bool settles = false;
    SteadyTime named_at = {};
  };
  std::mt19937_64 random(TestSeed());
  const auto below = [&](std::uint64_t limit) { return static_cast<int>(random() % limit); };
  SamplerElection election;
  std::map<std::pair<TrialId, WriterNo>, Known> model;
  std::map<std::pair<std::string, TrialId>, std::vector<WriterNo>> seats;
  SteadyTime now = kElectionTime;
  const auto are_siblings = [](const Known& a, const Known& b) {
    return a.writer.stream != 0 && a.writer.stream == b.writer.stream;
  };
  const auto lives = [&](const Known& known) { return now - known.heard <= 60 * kOneSecond; };
  for (int step = 0; step < 20'000; ++step) {
    SCOPED_TRACE(step);
    const auto key = std::pair(TrialId{1 + below(3)}, WriterNo{1 + below(6)});
    const auto place = model.find(key);
    const bool known = place != model.end();
    Orders orders;
    absl::Duration passed;
    // Silence is found by looking, so the model lets time pass only there.
    switch (below(7)) {
      case 0:
      case 1: {
        const std::uint64_t generation = known ? place->second.writer.generation + 1 : 1;
        const SamplerElection::Writer writer{key.first,    key.second,
                                             generation,   absl::StrCat("m", below(2)),
                                             below(3) > 0, static_cast<std::uint64_t>(below(4))};
        orders = election.Open(writer, now);
        Known opened{.writer = writer, .held = true, .heard = now};
        if (known && place->second.held && place->second.writer.machine == writer.machine &&
            place->second.writer.is_sampler == writer.is_sampler) {
          opened.gpus = place->second.gpus;
          opened.gpus_generation = place->second.gpus_generation;
          opened.settles = place->second.settles;
          opened.named_at = place->second.named_at;
        }
        model[key] = std::move(opened);
        break;
      }
      case 4: {
        if (!known) continue;
        Known& named = place->second;
        const std::string gpu = absl::StrCat("g", below(5));
        orders = election.Name(key.first, key.second, named.writer.generation, Gpus({gpu}), now);
        if (!named.held || !named.writer.is_sampler) break;
        if (std::exchange(named.gpus_generation, named.writer.generation) !=
            named.writer.generation) {
          named.settles = !named.gpus.empty();
          named.gpus.clear();
        }
        named.named_at = now;
        named.gpus.insert(gpu);
        break;
      }
      case 2:
        if (!known) continue;
        orders = election.Close(key.first, key.second, place->second.writer.generation, now);
        model.erase(place);
        break;
      case 3:
        if (!known) continue;
        orders = election.Lose(key.first, key.second, place->second.writer.generation, now);
        place->second.held = false;
        place->second.told.reset();
        place->second.gpus.clear();
        place->second.gpus_generation = 0;
        place->second.settles = false;
        break;
      default:
        passed = below(40) * kOneSecond;
        now += passed;
        for (auto& [heard_key, heard] : model) {
          if (below(3) > 0 && heard.held) heard.heard = now;
          if (now - heard.named_at >= 5 * kOneSecond) heard.settles = false;
        }
        orders = election.Look(
            [&](TrialId trial_id, WriterNo writer_no) {
              const auto heard = model.find({trial_id, writer_no});
              return heard == model.end() ? SteadyTime() : heard->second.heard;
            },
            now);
        std::erase_if(
            model, [&](const auto& entry) { return !entry.second.held && !lives(entry.second); });
        break;
    }
    std::set<std::pair<TrialId, WriterNo>> told_now;
    for (const SamplingOrder& order : orders) {
      const auto told = model.find({order.trial_id, order.writer_no});
      ASSERT_TRUE(told != model.end() && told->second.held && told->second.writer.is_sampler);
      ASSERT_TRUE(told_now.emplace(order.trial_id, order.writer_no).second) << "once per call";
      ASSERT_TRUE(!told->second.told || *told->second.told != order) << "only what changed";
      told->second.told = order;
    }
    ASSERT_EQ(election.writer_count(), model.size());
    std::map<std::string, std::set<TrialId>> live_trials;
    std::map<std::pair<std::string, TrialId>, std::vector<WriterNo>> on;
    std::map<std::pair<std::string, TrialId>, int> live_samplers;
    std::map<std::pair<std::string, TrialId>, int> held_samplers;
    for (const auto& [writer_key, entry] : model) {
      const std::pair share{entry.writer.machine, writer_key.first};
      if (lives(entry)) live_trials[entry.writer.machine].insert(writer_key.first);
      if (!entry.writer.is_sampler || !entry.held) continue;
      ASSERT_TRUE(entry.told.has_value()) << "each sampler that is open knows";
      ++held_samplers[share];
      if (lives(entry)) ++live_samplers[share];
      if (entry.told->on) on[share].push_back(writer_key.second);
    }
    for (const auto& [share, count] : held_samplers) {
      ASSERT_FALSE(on[share].empty()) << "one agent of " << count << " samples";
      const WriterNo sits = on[share].front();
      const Known& sitting = model.at({share.second, sits});
      // All of one agent, and no other.
      bool any_lives = false;
      for (const auto& [writer_key, entry] : model) {
        if (writer_key.first != share.second || entry.writer.machine != share.first) continue;
        if (!entry.writer.is_sampler || !entry.held) continue;
        const bool is_its = writer_key.second == sits || are_siblings(sitting, entry);
        ASSERT_EQ(entry.told->on, is_its);
        any_lives = any_lives || (is_its && lives(entry));
      }
      ASSERT_TRUE(any_lives || live_samplers[share] == 0);
      ASSERT_EQ(sitting.told->shared_with,
                std::max<std::size_t>(1, live_trials[share.first].size()));
      // No flapping: of those who sat, live and still are on this machine one at least goes on; to
      // another stream it takes the seat along.
      const std::vector<WriterNo>& sat = seats[share];
      const bool goes_on = std::any_of(sat.begin(), sat.end(), [&](WriterNo writer_no) {
        return std::count(on[share].begin(), on[share].end(), writer_no) > 0;
      });
      for (const WriterNo writer_no : sat) {
        const auto before = model.find({share.second, writer_no});
        const bool may_go_on = before != model.end() && before->second.held &&
                               before->second.writer.machine == share.first &&
                               before->second.writer.is_sampler && lives(before->second);
        // Only one that was lost in between may be open again and not sit.
        ASSERT_TRUE(goes_on || !may_go_on) << "trial " << Value(share.second);
      }
    }
    if (passed > absl::ZeroDuration()) {
      // All were told by now: each GPU that anybody names is sampled by one, or by nobody for the seconds
      // in which one that opened again may still come to it.
      std::map<std::pair<std::string, TrialId>, std::map<std::string, std::set<std::uint64_t>>>
          sampled;
      std::set<std::pair<std::string, TrialId>> settling;
      for (const auto& [writer_key, entry] : model) {
        if (!entry.held || !entry.writer.is_sampler) continue;
        if (entry.settles) settling.emplace(entry.writer.machine, writer_key.first);
        const auto& told = *entry.told;
        for (const std::string& gpu : entry.gpus) {
          const bool left = std::count(told.gpus.begin(), told.gpus.end(), gpu) > 0;
          std::set<std::uint64_t>& agents = sampled[{entry.writer.machine, writer_key.first}][gpu];
          // One without a stream is an agent of its own.
          const auto alone = 100 + static_cast<std::uint64_t>(Value(writer_key.second));
          if (!left) agents.insert(entry.writer.stream != 0 ? entry.writer.stream : alone);
        }
      }
      for (const auto& [share, counts] : sampled) {
        for (const auto& [gpu, agents] : counts) {
          ASSERT_LE(agents.size(), 1U) << gpu;
          ASSERT_TRUE(agents.size() == 1 || settling.contains(share)) << gpu << " is nobody's";
        }
      }
    }
    seats = std::move(on);
  }
}

}  // namespace
}  // namespace stepwell
