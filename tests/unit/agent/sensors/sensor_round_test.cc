#include "client/agent/sensors/sensor_round.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "tests/unit/agent/sensors/machine.h"

namespace stepwell::agent {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Key;
using ::testing::UnorderedElementsAre;

// By the round's clock, on which no time passes but where a sensor hangs: however long this machine
// keeps the other threads waiting, nobody else is late.
constexpr absl::Duration kPatience = absl::Milliseconds(5);
constexpr int kAfterForget = 1'000'000;

// Closed: the sensor hangs in its next reading, until it is opened; with that the round's patience
// with it is over.
struct Gate {
  explicit Gate(FakeClock& with_clock) : clock(with_clock) {}
  void Pass() {
    if (!closed) return;
    clock.Advance(kPatience);
    open.WaitForNotification();
  }
  FakeClock& clock;
  std::atomic<bool> closed{false};
  absl::Notification open;
};

// Its count of readings as `gpu_util`, by name; from kAfterForget on after Forget.
class GatedSensor final : public Sensor {
 public:
  GatedSensor(const std::string& name, std::shared_ptr<Gate> gate)
      : Sensor({name, "gpu", Cadence::kFast}), gate_(std::move(gate)) {}
  void Read(Reading& reading) override {
    gate_->Pass();
    reading.Add(metrics::kGpuUtil, {{"device", face().name}}, ++count_);
    reading.Add(metrics::kGpuPower, {{"device", face().name}}, 1);
  }
  void Forget() override { count_ = kAfterForget; }

 private:
  const std::shared_ptr<Gate> gate_;
  int count_ = 0;
};

class SensorRoundTest : public ::testing::Test {
 protected:
  SensorRoundTest() {
    for (const char* name : {"a", "b", "c", "d"}) {
      round_.Add(
          std::make_unique<GatedSensor>(name, gates_[name] = std::make_shared<Gate>(clock_)));
    }
  }
  ~SensorRoundTest() override {
    for (auto& [name, gate] : gates_) {
      if (!gate->open.HasBeenNotified()) gate->open.Notify();
    }
  }
  Reading Read() {
    Reading reading(context_);
    round_.Read(Cadence::kFast, context_, reading);
    return reading;
  }
  void Close(const std::string& name) { gates_[name]->closed = true; }
  void Open(const std::string& name) {
    gates_[name]->closed = false;
    gates_[name]->open.Notify();
  }
  static Values UtilOf(const Reading& reading) {
    Values values;
    for (const SensedSample& sample : reading.samples()) {
      if (sample.series->name == "gpu_util")
        values[sample.series->labels.at("device")] = sample.value;
    }
    return values;
  }
  // Until nothing is absent any more.
  Values ReadUntilAllAreBack() {
    const absl::Time deadline = absl::Now() + absl::Seconds(20);
    while (absl::Now() < deadline) {
      const Reading reading = Read();
      if (reading.absences().empty()) return UtilOf(reading);
    }
    return {};
  }

  FakeClock clock_;
  const ReadingContext context_{std::make_shared<SeriesPool>(), std::make_shared<SensorSelection>(),
                                &clock_};
  std::map<std::string, std::shared_ptr<Gate>> gates_;
  SensorRound round_{kPatience, clock_};
};

TEST_F(SensorRoundTest, ReadsAllInOneGo) {
  for (int i = 1; i <= 3; ++i) {
    const Reading reading = Read();
    EXPECT_EQ(UtilOf(reading), (Values{{"a", i}, {"b", i}, {"c", i}, {"d", i}}));
    EXPECT_THAT(AbsencesOf(reading), IsEmpty());
  }
  round_.Forget();
  EXPECT_EQ(UtilOf(Read()).at("c"), kAfterForget + 1);
}

TEST_F(SensorRoundTest, OneThatHangsIsNamedTheOthersLoseNothingAndItComesBack) {
  Read();
  Close("b");
  absl::Duration before = clock_.Monotonic();
  const Reading first = Read();
  EXPECT_EQ(clock_.Monotonic() - before, kPatience);
  EXPECT_EQ(UtilOf(first), (Values{{"a", 2}, {"c", 2}, {"d", 2}}));
  EXPECT_THAT(AbsencesOf(first), ElementsAre(HasSubstr("gpu failed b: no answer for ")));
  EXPECT_EQ(first.absences()[0].sample_count, 2);
  // Nobody waits for it again.
  before = clock_.Monotonic();
  for (int i = 0; i < 50; ++i) {
    const Reading reading = Read();
    EXPECT_EQ(UtilOf(reading).size(), 3u);
    EXPECT_THAT(AbsencesOf(reading), ElementsAre(HasSubstr("gpu failed b: no answer for ")));
  }
  EXPECT_EQ(clock_.Monotonic(), before);
  Open("b");
  const Values back = ReadUntilAllAreBack();
  EXPECT_THAT(back, UnorderedElementsAre(Key("a"), Key("b"), Key("c"), Key("d")));
  // Its rates begin anew: they would run over the time in which it hung.
  EXPECT_GT(back.at("b"), kAfterForget);
  EXPECT_LT(back.at("a"), kAfterForget);
}

TEST_F(SensorRoundTest, SeveralThatHangAreGivenUpOnOneAfterTheOther) {
  Read();
  for (const char* name : {"a", "b", "c"}) Close(name);
  const absl::Duration before = clock_.Monotonic();
  const Reading first = Read();
  EXPECT_EQ(clock_.Monotonic() - before, 2 * kPatience);
  EXPECT_THAT(AbsencesOf(first), ElementsAre(HasSubstr("gpu failed a: no answer for "),
                                             HasSubstr("gpu failed b: no answer for "),
                                             HasSubstr("gpu failed c: not asked"),
                                             HasSubstr("gpu failed d: not asked")));
  const Reading second = Read();
  EXPECT_THAT(UtilOf(second), UnorderedElementsAre(Key("d")));
  EXPECT_THAT(AbsencesOf(second), ElementsAre(HasSubstr("gpu failed a: no answer for "),
                                              HasSubstr("gpu failed b: no answer for "),
                                              HasSubstr("gpu failed c: no answer for ")));
  for (const char* name : {"a", "b", "c"}) Open(name);
  EXPECT_EQ(ReadUntilAllAreBack().size(), 4u);
}

TEST_F(SensorRoundTest, WhatIsNotDueOrNotWantedIsNotAsked) {
  for (const char* name : {"a", "b", "c", "d"}) Close(name);
  Reading reading(context_);
  round_.Read(Cadence::kSlow, context_, reading);
  ReadingContext other = context_;
  other.selection =
      std::make_shared<SensorSelection>(SensorSelection::Parse({.groups = "cpu"}).value());
  round_.Read(Cadence::kFast, other, reading);
  EXPECT_THAT(reading.samples(), IsEmpty());
  EXPECT_THAT(AbsencesOf(reading), IsEmpty());
}

TEST(SensorRoundEndTest, AThreadThatHangsAtTheEndIsLeftBehindWithWhatItNeeds) {
  FakeClock clock;
  const auto gate = std::make_shared<Gate>(clock);
  gate->closed = true;
  const ReadingContext context{std::make_shared<SeriesPool>(), std::make_shared<SensorSelection>(),
                               &clock};
  {
    SensorRound round(kPatience, clock);
    round.Add(std::make_unique<GatedSensor>("a", gate));
    Reading reading(context);
    round.Read(Cadence::kFast, context, reading);
  }
  gate->open.Notify();
  // The thread lets go of the sensor, and the sensor of the gate.
  const absl::Time deadline = absl::Now() + absl::Seconds(20);
  while (gate.use_count() > 1 && absl::Now() < deadline) absl::SleepFor(absl::Milliseconds(1));
  EXPECT_EQ(gate.use_count(), 1);
}

}  // namespace
}  // namespace stepwell::agent
