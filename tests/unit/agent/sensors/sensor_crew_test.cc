// A device that hangs holds one thread and delays nobody; quick ones share a thread.
#include "client/agent/sensors/sensor_crew.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "client/agent/sensors/system_metrics.h"
#include "tests/unit/agent/sensors/machine.h"

namespace stepwell::agent {
namespace {

constexpr absl::Duration kLong = absl::Seconds(20);

struct Gate {
  std::atomic<bool> shut{false};
  std::atomic<int> calls{0};
  absl::Notification open;
  absl::Notification passed;
};

// Its reading says how often it was read; stands still while its gate is shut.
class GatedSensor final : public Sensor {
 public:
  GatedSensor(int number, std::shared_ptr<Gate> gate)
      : Sensor({absl::StrCat("device", number), "memory"}), gate_(std::move(gate)) {}
  void Read(Reading& reading) override {
    reading.Add(metrics::kMemoryFree, ++gate_->calls);
    if (!gate_->shut) return;
    gate_->open.WaitForNotification();
    if (!gate_->passed.HasBeenNotified()) gate_->passed.Notify();
  }
  void Forget() override { gate_->calls = 100; }

 private:
  const std::shared_ptr<Gate> gate_;
};

class SensorCrewTest : public ::testing::Test {
 protected:
  explicit SensorCrewTest(int count = 4) {
    for (int i = 0; i < count; ++i) {
      gates_.push_back(std::make_shared<Gate>());
      devices_.push_back(SensorCrew::Join(std::make_shared<GatedSensor>(i, gates_.back())));
    }
  }
  ~SensorCrewTest() override {
    for (const auto& gate : gates_) {
      if (gate->shut && !gate->open.HasBeenNotified()) gate->open.Notify();
    }
  }
  // Who could be asked.
  std::vector<bool> AskAll(SensorCrew& crew, bool forget = false) {
    crew.Begin();
    std::vector<bool> asked;
    for (const auto& device : devices_) asked.push_back(crew.Ask(device, {context_, forget}));
    return asked;
  }
  // What each answered; 0 = nothing.
  std::vector<double> TakeAll(SensorCrew& crew) {
    std::vector<double> values;
    for (const auto& device : devices_) {
      const std::optional<Reading> reading = crew.Take(*device);
      values.push_back(reading ? ValuesOf(*reading).at("memory_free") : 0);
    }
    return values;
  }
  using Values = std::vector<double>;
  using Asked = std::vector<bool>;

  std::vector<std::shared_ptr<Gate>> gates_;
  std::vector<std::shared_ptr<SensorCrew::Device>> devices_;
  const ReadingContext context_{std::make_shared<SeriesPool>(), std::make_shared<SensorSelection>(),
                                &RealClock::Get()};
};

TEST_F(SensorCrewTest, EachAnswersEachQuestionOnce) {
  SensorCrew crew;
  for (int tick = 1; tick <= 50; ++tick) {
    EXPECT_EQ(AskAll(crew), (Asked{true, true, true, true}));
    crew.Await(kLong);
    EXPECT_EQ(TakeAll(crew), Values(4, tick));
    EXPECT_EQ(TakeAll(crew), Values(4, 0)) << "taken twice";
  }
  AskAll(crew, /*forget=*/true);
  crew.Await(kLong);
  EXPECT_EQ(TakeAll(crew), Values(4, 101));
}

// On a machine that is busy with others a reading may seem slow: then it is tried again.
TEST_F(SensorCrewTest, QuickOnesShareAThread) {
  const absl::Time deadline = absl::Now() + kLong;
  std::size_t fewest = SIZE_MAX;
  while (fewest > 1 && absl::Now() < deadline) {
    SensorCrew crew;
    for (int tick = 0; tick < 5; ++tick) {
      AskAll(crew);
      crew.Await(kLong);
    }
    fewest = std::min(fewest, crew.thread_count());
  }
  EXPECT_EQ(fewest, 1u);
}

TEST_F(SensorCrewTest, OneThatHangsHoldsAThreadAndTheOthersGoOn) {
  SensorCrew crew;
  gates_[1]->shut = true;
  EXPECT_EQ(AskAll(crew), (Asked{true, true, true, true}));
  // The rest is asked long before the patience is over, and nobody waits longer.
  const absl::Time deadline = absl::Now() + kLong;
  Values seen(4, 0);
  while (absl::Now() < deadline && seen != Values{1, 0, 1, 1}) {
    crew.Await(absl::Milliseconds(50));
    const Values more = TakeAll(crew);
    for (std::size_t i = 0; i < seen.size(); ++i) seen[i] += more[i];
  }
  EXPECT_EQ(seen, (Values{1, 0, 1, 1}));
  for (int tick = 2; tick < 20; ++tick) {
    EXPECT_EQ(AskAll(crew), (Asked{true, false, true, true}));
    crew.Await(kLong);
    EXPECT_EQ(TakeAll(crew), (Values{1.0 * tick, 0, 1.0 * tick, 1.0 * tick}));
  }
  EXPECT_EQ(gates_[1]->calls, 1) << "no further call while one is out";
  gates_[1]->shut = false;
  gates_[1]->open.Notify();
  ASSERT_TRUE(gates_[1]->passed.WaitForNotificationWithTimeout(kLong));
  double late = 0;
  while (absl::Now() < deadline && late == 0) late = TakeAll(crew)[1];
  EXPECT_EQ(late, 1) << "its answer waited";
  EXPECT_EQ(AskAll(crew), (Asked{true, true, true, true}));
  crew.Await(kLong);
  EXPECT_EQ(TakeAll(crew)[1], 2);
}

TEST_F(SensorCrewTest, AllMayHangAtOnce) {
  SensorCrew crew;
  for (const auto& gate : gates_) gate->shut = true;
  AskAll(crew);
  crew.Await(absl::Milliseconds(5));
  const absl::Time deadline = absl::Now() + kLong;
  const auto all_called = [&] {
    return std::all_of(gates_.begin(), gates_.end(),
                       [](const auto& gate) { return gate->calls == 1; });
  };
  while (absl::Now() < deadline && !all_called()) std::this_thread::yield();
  EXPECT_TRUE(all_called()) << "by the end of the patience each is being asked";
  EXPECT_EQ(crew.thread_count(), 4u);
  EXPECT_EQ(AskAll(crew), Asked(4, false));
}

TEST_F(SensorCrewTest, OneThatHangsAtTheEndIsLeftBehindWithWhatItNeeds) {
  const std::shared_ptr<Gate> gate = gates_[0];
  gate->shut = true;
  {
    SensorCrew crew;
    AskAll(crew);
    const absl::Time deadline = absl::Now() + kLong;
    while (absl::Now() < deadline && gate->calls == 0) std::this_thread::yield();
  }
  devices_.clear();
  gate->open.Notify();
  EXPECT_TRUE(gate->passed.WaitForNotificationWithTimeout(kLong));
}

}  // namespace
}  // namespace stepwell::agent
