#include "server/writer_director.h"

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "tests/fakes/stepped_clock.h"

namespace stepwell {
namespace {

constexpr TrialId kTrial{7};

// Keeps the newest of each kind, as a board does.
class Client final : public DirectiveSink {
 public:
  bool Direct(const Uuid& writer, std::uint64_t version, const v1::Directive& directive) override {
    absl::MutexLock lock(&mu_);
    if (gone_) return false;
    EXPECT_EQ(directive.writer(), writer.ToBytes());
    auto& [held, newest] = newest_[{writer, directive.directive_case()}];
    if (version <= held) return true;
    held = version;
    newest = directive;
    return true;
  }
  void Leave() {
    absl::MutexLock lock(&mu_);
    gone_ = true;
  }
  std::optional<v1::Profiling> profiling(const Uuid& writer) const {
    absl::MutexLock lock(&mu_);
    const auto found = newest_.find({writer, v1::Directive::kProfiling});
    if (found == newest_.end()) return std::nullopt;
    return found->second.second.profiling();
  }
  std::optional<v1::Sampling> sampling(const Uuid& writer) const {
    absl::MutexLock lock(&mu_);
    const auto found = newest_.find({writer, v1::Directive::kSampling});
    if (found == newest_.end()) return std::nullopt;
    return found->second.second.sampling();
  }

 private:
  using Key = std::pair<Uuid, v1::Directive::DirectiveCase>;
  mutable absl::Mutex mu_;
  bool gone_ = false;
  std::map<Key, std::pair<std::uint64_t, v1::Directive>> newest_;
};

class WriterDirectorTest : public ::testing::Test {
 protected:
  WriterDirector::Writer Writer(int writer_no, bool is_sampler, std::uint64_t generation = 1) {
    return {.trial_id = kTrial,
            .writer_no = WriterNo{writer_no},
            .generation = generation,
            .uuid = Uuid::Random(),
            .machine = "m",
            .is_sampler = is_sampler};
  }

  testing::SteppedClock clock_;
  WriterDirector director_{clock_};
  std::shared_ptr<Client> client_ = std::make_shared<Client>();
};

TEST_F(WriterDirectorTest, TellsEveryOpenWriterOfTheTrialOnWhateverStream) {
  const auto rank = Writer(1, false);
  const auto sampler = Writer(2, true);
  auto elsewhere = Writer(3, false);
  auto foreign = Writer(1, false);
  foreign.trial_id = TrialId{8};
  const auto other_client = std::make_shared<Client>();
  director_.Opened(rank, client_);
  director_.Opened(sampler, client_);
  director_.Opened(elsewhere, other_client);
  director_.Opened(foreign, other_client);
  EXPECT_FALSE(client_->profiling(rank.uuid).has_value()) << "nobody ever asked";

  const TrialProfiling sparse{
      .revision = 1, .on = true, .interval_us = 5'000'000, .metric_groups = {"cpu", "gpu"}};
  EXPECT_EQ(director_.SetProfiling(kTrial, sparse), 3);
  for (const auto& [client, uuid] :
       {std::pair(client_, rank.uuid), {client_, sampler.uuid}, {other_client, elsewhere.uuid}}) {
    const auto told = client->profiling(uuid);
    ASSERT_TRUE(told.has_value());
    EXPECT_TRUE(told->on());
    EXPECT_EQ(told->interval_us(), 5'000'000);
    EXPECT_EQ(told->metric_groups_size(), 2);
  }
  EXPECT_FALSE(other_client->profiling(foreign.uuid).has_value());

  director_.Closed(kTrial, WriterNo{1}, 1);
  other_client->Leave();
  EXPECT_EQ(director_.SetProfiling(kTrial, {.revision = 2, .on = false}), 1);
  EXPECT_FALSE(client_->profiling(sampler.uuid)->on());
  EXPECT_TRUE(client_->profiling(rank.uuid)->on()) << "it has closed";
  EXPECT_EQ(director_.SetProfiling(TrialId{9}, {.revision = 1}), 0);
}

TEST_F(WriterDirectorTest, WhoOpensLaterIsToldWhatIsStored) {
  auto writer = Writer(1, false);
  writer.profiling = {.revision = 3, .on = false};
  director_.Opened(writer, client_);
  EXPECT_FALSE(client_->profiling(writer.uuid)->on());
  // Also the way back, which it may have missed.
  writer.generation = 2;
  writer.profiling = {.revision = 4, .on = true};
  director_.Opened(writer, client_);
  EXPECT_TRUE(client_->profiling(writer.uuid)->on());
}

TEST_F(WriterDirectorTest, AnOpenThatReadTheDatabaseJustBeforeIsToldTheNewer) {
  auto writer = Writer(1, false);
  writer.profiling = {.revision = 1, .on = true};
  EXPECT_EQ(director_.SetProfiling(kTrial, {.revision = 2, .on = false}), 0);
  director_.Opened(writer, client_);
  EXPECT_FALSE(client_->profiling(writer.uuid)->on());
  // Two requests at a time: the database's order holds, not that of the threads.
  EXPECT_EQ(director_.SetProfiling(kTrial, {.revision = 4, .on = true}), 1);
  EXPECT_EQ(director_.SetProfiling(kTrial, {.revision = 3, .on = false}), 1);
  EXPECT_TRUE(client_->profiling(writer.uuid)->on());
}

TEST_F(WriterDirectorTest, TheNextSamplesWhenTheFirstLeavesOrFallsSilent) {
  const auto first = Writer(1, true);
  const auto second = Writer(2, true);
  const auto third = Writer(3, true);
  std::map<Uuid, std::shared_ptr<Client>> clients;
  for (const auto& writer : {first, second, third}) {
    director_.Opened(writer, clients[writer.uuid] = std::make_shared<Client>());
  }
  const auto on = [&](const WriterDirector::Writer& writer) {
    return clients.at(writer.uuid)->sampling(writer.uuid)->on();
  };
  EXPECT_TRUE(on(first) && !on(second) && !on(third));
  EXPECT_EQ(clients.at(first.uuid)->sampling(first.uuid)->shared_with(), 1);
  director_.Lost(kTrial, WriterNo{1}, 1);
  EXPECT_TRUE(on(second) && !on(third));
  clock_.Advance(absl::Seconds(61));
  const auto heard = [&](TrialId, WriterNo writer_no) {
    return writer_no == WriterNo{3} ? SteadyTime::Now(clock_) : SteadyTime();
  };
  director_.Look(heard);
  EXPECT_TRUE(!on(second) && on(third));
}

TEST_F(WriterDirectorTest, AWallClockThatIsSetElectsNobody) {
  const auto first = Writer(1, true);
  const auto second = Writer(2, true);
  const auto client = std::make_shared<Client>();
  director_.Opened(first, client_);
  director_.Opened(second, client);
  const auto heard = [&](TrialId, WriterNo writer_no) {
    return writer_no == WriterNo{2} ? SteadyTime::Now(clock_) : SteadyTime();
  };
  const auto first_samples = [&] {
    clock_.Advance(absl::Seconds(1));  // between two looks
    director_.Look(heard);
    return client_->sampling(first.uuid)->on() && !client->sampling(second.uuid)->on();
  };
  EXPECT_TRUE(first_samples());
  clock_.SetBy(absl::Hours(2));
  EXPECT_TRUE(first_samples()) << "it was heard of two seconds ago";
  clock_.SetBy(-absl::Hours(4));
  EXPECT_TRUE(first_samples());
  clock_.Advance(absl::Seconds(60));
  EXPECT_FALSE(first_samples()) << "it fell silent, whatever the wall clock says";
}

TEST_F(WriterDirectorTest, AWindowThatIsOverHoldsWhateverIsStoredUntilItIsLifted) {
  const auto writer = Writer(1, false);
  director_.Opened(writer, client_);
  EXPECT_EQ(director_.OpenTrials(), std::vector<TrialId>{kTrial});
  EXPECT_EQ(director_.SetWindowOver(kTrial, false), 0) << "nothing changed";
  EXPECT_FALSE(client_->profiling(writer.uuid).has_value());
  EXPECT_EQ(director_.SetWindowOver(kTrial, true), 1);
  EXPECT_FALSE(client_->profiling(writer.uuid)->on());
  EXPECT_EQ(director_.SetWindowOver(kTrial, true), 0) << "the same again";

  EXPECT_EQ(director_.SetProfiling(kTrial, {.revision = 1, .on = true, .interval_us = 20'000}), 1);
  EXPECT_FALSE(client_->profiling(writer.uuid)->on());
  const auto later = Writer(2, false);
  director_.Opened(later, client_);
  EXPECT_FALSE(client_->profiling(later.uuid)->on());

  EXPECT_EQ(director_.SetWindowOver(kTrial, false), 2);
  for (const Uuid& uuid : {writer.uuid, later.uuid}) {
    EXPECT_TRUE(client_->profiling(uuid)->on());
    EXPECT_EQ(client_->profiling(uuid)->interval_us(), 20'000);
  }
  EXPECT_EQ(director_.SetWindowOver(TrialId{9}, true), 0) << "nobody of it is open";
}

TEST_F(WriterDirectorTest, WhoOpensAfterTheWindowIsToldAndWhoComesBackAfterItWasLiftedToo) {
  auto writer = Writer(1, false);
  writer.window_over = true;
  director_.Opened(writer, client_);
  EXPECT_FALSE(client_->profiling(writer.uuid)->on());
  director_.Lost(kTrial, WriterNo{1}, 1);
  EXPECT_TRUE(director_.OpenTrials().empty());
  // Lifted meanwhile, and nobody ever asked for anything else.
  writer.window_over = false;
  writer.generation = 2;
  director_.Opened(writer, client_);
  EXPECT_TRUE(client_->profiling(writer.uuid)->on());
}

TEST_F(WriterDirectorTest, SamplersOfOneClientAreElectedTogether) {
  const auto first = Writer(1, true);
  const auto next = Writer(2, true);
  const auto of_another = Writer(3, true);
  const auto other_client = std::make_shared<Client>();
  director_.Opened(first, client_);
  director_.Opened(of_another, other_client);
  director_.Opened(next, client_);
  EXPECT_TRUE(client_->sampling(first.uuid)->on());
  EXPECT_TRUE(client_->sampling(next.uuid)->on());
  director_.Closed(kTrial, WriterNo{1}, 1);
  EXPECT_TRUE(client_->sampling(next.uuid)->on());
  EXPECT_FALSE(other_client->sampling(of_another.uuid)->on());
}

TEST_F(WriterDirectorTest, ANewerGenerationTakesItsPlaceAndTheOlderEndChangesNothing) {
  auto older = Writer(1, true);
  auto newer = older;
  newer.generation = 2;
  const auto new_client = std::make_shared<Client>();
  director_.Opened(newer, new_client);
  director_.Opened(older, client_);
  EXPECT_FALSE(client_->sampling(older.uuid).has_value()) << "it is about to be fenced";
  director_.Lost(kTrial, WriterNo{1}, 1);
  EXPECT_EQ(director_.SetProfiling(kTrial, {.revision = 1, .on = false}), 1);
  EXPECT_FALSE(new_client->profiling(newer.uuid)->on());
}

TEST_F(WriterDirectorTest, AClientThatIsGoneIsNoReasonToFail) {
  const auto writer = Writer(1, true);
  director_.Opened(writer, client_);
  client_.reset();
  EXPECT_EQ(director_.SetProfiling(kTrial, {.revision = 1, .on = false}), 0);
  director_.Clear();
  EXPECT_EQ(director_.SetProfiling(kTrial, {.revision = 2, .on = false}), 0);
}

TEST_F(WriterDirectorTest, ThreadsAgreeInTheEnd) {
  constexpr int kThreads = 4;
  std::vector<WriterDirector::Writer> writers;
  std::vector<std::shared_ptr<Client>> clients;
  for (int i = 1; i <= kThreads; ++i) {
    writers.push_back(Writer(i, true));
    clients.push_back(std::make_shared<Client>());
  }
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&, i] {
      WriterDirector::Writer& writer = writers[static_cast<std::size_t>(i)];
      for (std::uint64_t round = 1; round <= 200; ++round) {
        writer.generation = round;
        director_.Opened(writer, clients[static_cast<std::size_t>(i)]);
        director_.SetProfiling(kTrial,
                               {.revision = static_cast<std::int64_t>(round) * kThreads + i,
                                .on = (round * kThreads + static_cast<std::uint64_t>(i)) % 2 == 0});
        if (round < 200) director_.Lost(kTrial, writer.writer_no, round);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  int on = 0;
  for (std::size_t i = 0; i < writers.size(); ++i) {
    const auto& writer = writers[i];
    on += clients[i]->sampling(writer.uuid)->on() ? 1 : 0;
    EXPECT_EQ(clients[i]->profiling(writer.uuid)->on(), (200 * kThreads + kThreads - 1) % 2 == 0);
  }
  EXPECT_EQ(on, 1);
}

}  // namespace
}  // namespace stepwell
