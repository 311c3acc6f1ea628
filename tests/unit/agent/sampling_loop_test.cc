#include "client/agent/sampling_loop.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <set>

#include "absl/synchronization/notification.h"
#include "client/agent/sensors/rate.h"
#include "tests/unit/agent/sensors/machine.h"

namespace stepwell::agent {
namespace {

using ::testing::Each;
using ::testing::Ge;
using ::testing::SizeIs;

// The real clocks, and what happened to them: a wall clock that was set, a process that was stopped.
class ShiftedClock final : public Clock {
 public:
  absl::Time Now() const override { return RealClock::Get().Now() + absl::Seconds(wall_s.load()); }
  absl::Duration Monotonic() const override {
    return RealClock::Get().Monotonic() + absl::Seconds(monotonic_s.load());
  }
  std::atomic<int> wall_s{0};
  std::atomic<int> monotonic_s{0};
};

// A total that grows by a thousand bytes a second of the true time, as `net_throughput_sent`; and
// where it is asked, a pause.
class SteadySensor final : public Sensor {
 public:
  explicit SteadySensor(Cadence cadence = Cadence::kFast)
      : Sensor({"steady", "network", cadence}) {}
  void Read(Reading& reading) override {
    const absl::Duration true_time = RealClock::Get().Monotonic();
    const auto total = static_cast<std::uint64_t>(1e6 * absl::ToDoubleSeconds(true_time));
    if (const auto rate = sent_.Next(total, true_time)) {
      reading.Add(metrics::kNetThroughputSent, *rate);
    }
    reading.Add(metrics::kMemoryFree, 1);
  }
  void Forget() override { sent_.Forget(); }

 private:
  Rate sent_;
};

// Hangs in its third reading, until it is let go.
class HangingSensor final : public Sensor {
 public:
  explicit HangingSensor(std::shared_ptr<absl::Notification> go)
      : Sensor({"hanging", "gpu", Cadence::kFast}), go_(std::move(go)) {}
  void Read(Reading& reading) override {
    if (++count_ == 3) go_->WaitForNotification();
    reading.Add(metrics::kGpuUtil, 1);
  }

 private:
  const std::shared_ptr<absl::Notification> go_;
  int count_ = 0;
};

// A device that takes longer than the interval, but answers.
class SlowSensor final : public Sensor {
 public:
  SlowSensor() : Sensor({"slow", "gpu", Cadence::kFast}) {}
  void Read(Reading& reading) override {
    absl::SleepFor(absl::Milliseconds(30));
    reading.Add(metrics::kGpuUtil, 1);
  }
};

class SamplingLoopTest : public ::testing::Test {
 protected:
  std::unique_ptr<SamplingLoop> Start(absl::Duration interval) {
    auto set = std::make_unique<SensorSet>(SensorSet::Options(), clock_);
    set->Add(std::make_unique<SteadySensor>());
    set->Add(std::make_unique<SteadySensor>(Cadence::kSlow));
    SensorSelection selection;
    selection.SetInterval(interval);
    if (extra_ != nullptr) set->Add(std::move(extra_));
    if (device_ != nullptr) set->AddWatched(std::move(device_));
    return std::make_unique<SamplingLoop>(std::move(set), selection, clock_);
  }
  // At least `count` more of the fast ones.
  void Take(SamplingLoop& loop, std::size_t count) {
    const std::size_t wanted = fast_.size() + count;
    const absl::Time deadline = absl::Now() + absl::Seconds(30);
    while (fast_.size() < wanted && absl::Now() < deadline) {
      TakeAll(loop);
      absl::SleepFor(absl::Milliseconds(1));
    }
    ASSERT_GE(fast_.size(), wanted);
  }
  void TakeAll(SamplingLoop& loop) {
    for (TimedTick& tick : loop.TakeTicks()) {
      (tick.cadence == Cadence::kFast ? fast_ : slow_).push_back(std::move(tick));
    }
  }
  static std::vector<double> RatesOf(const std::vector<TimedTick>& ticks) {
    std::vector<double> rates;
    for (const TimedTick& tick : ticks) {
      const Values values = ValuesOf(tick.reading);
      const auto rate = values.find("net_throughput_sent");
      if (rate != values.end()) rates.push_back(rate->second);
    }
    return rates;
  }
  ShiftedClock clock_;
  std::unique_ptr<Sensor> extra_;
  std::unique_ptr<Sensor> device_;
  std::vector<TimedTick> fast_;
  std::vector<TimedTick> slow_;
};

TEST_F(SamplingLoopTest, AgentRule16_ASlowDevicesAnswerIsASampleOfTheTickThatAskedIt) {
  device_ = std::make_unique<SlowSensor>();
  const auto loop = Start(absl::Milliseconds(20));
  Take(*loop, 20);
  loop->Stop();
  TakeAll(*loop);
  std::set<std::int64_t> tick_times;
  std::vector<std::int64_t> sampled;
  int past_count = 0;
  for (const TimedTick& tick : fast_) {
    const Values values = ValuesOf(tick.reading);
    if (values.count("gpu_util") > 0) sampled.push_back(tick.time_us);
    if (tick.is_past) {
      ++past_count;
      EXPECT_EQ(tick_times.count(tick.time_us), 1u) << "not the time of a tick before";
      EXPECT_EQ(values.size(), 1u);
    } else {
      tick_times.insert(tick.time_us);
    }
  }
  EXPECT_GE(past_count, 2);
  EXPECT_TRUE(std::is_sorted(sampled.begin(), sampled.end(), std::less_equal<>()));
}

TEST_F(SamplingLoopTest, AgentRule10_FirstTickAtOnceRatesAfter100MsAndALastOneAtTheEnd) {
  const absl::Time started = absl::Now();
  const auto loop = Start(absl::Hours(1));
  Take(*loop, 1);
  // At once, not an interval later; how soon is measured by bench/agent.
  EXPECT_LT(absl::FromUnixMicros(fast_[0].time_us) - started, absl::Minutes(1));
  Take(*loop, 1);
  // The first may be late on a busy machine, which brings the second closer.
  EXPECT_THAT(fast_[1].time_us - fast_[0].time_us, Ge(20'000));
  loop->Stop();
  TakeAll(*loop);
  EXPECT_THAT(fast_, SizeIs(3));
  // No first fake zero; the last may follow too soon for a rate.
  EXPECT_EQ(ValuesOf(fast_[0].reading).count("net_throughput_sent"), 0u);
  EXPECT_THAT(RatesOf(fast_), SizeIs(Ge(1u)));
  EXPECT_THAT(slow_, SizeIs(3));
  EXPECT_EQ(slow_[0].time_us, fast_[0].time_us);
}

TEST_F(SamplingLoopTest, AgentRule16_AWallClockThatIsSetMovesTimesAndNoRates) {
  const auto loop = Start(absl::Milliseconds(20));
  Take(*loop, 4);
  clock_.wall_s = 3600;  // suspended for an hour, as the wall clock sees it
  Take(*loop, 4);
  clock_.wall_s = -3600;
  Take(*loop, 4);
  loop->Stop();
  TakeAll(*loop);
  EXPECT_THAT(RatesOf(fast_), Each(::testing::DoubleNear(1e6, 1e4)));
  EXPECT_GT(fast_[6].time_us - fast_[0].time_us, 3500'000'000);
  EXPECT_LT(fast_[10].time_us - fast_[0].time_us, -3500'000'000);
  for (const TimedTick& tick : fast_) EXPECT_EQ(tick.late_count > 100, false);
}

TEST_F(SamplingLoopTest, TicksSleptThroughAreCountedAsLate) {
  const auto loop = Start(absl::Seconds(1));
  Take(*loop, 2);
  // Stopped for 10 s: the tick that was due after 0.5 to 1.5 s comes, those after it did not.
  clock_.monotonic_s = 10;
  loop->Select([] {
    SensorSelection other = SensorSelection::Parse({.without = "gpu_util"}).value();
    return other;
  }());
  Take(*loop, 1);
  EXPECT_THAT(fast_[2].late_count, ::testing::AnyOf(8u, 9u));
  // Of a second each, the last of them one before this tick.
  const AbsenceSpan span = fast_[2].late_span;
  EXPECT_EQ(fast_[2].time_us - span.last_time_us, 1'000'000);
  EXPECT_EQ(span.last_time_us - span.first_time_us,
            static_cast<std::int64_t>(fast_[2].late_count - 1) * 1'000'000);
}

TEST_F(SamplingLoopTest, TicksGoOnBesideASensorThatHangs) {
  const auto go = std::make_shared<absl::Notification>();
  extra_ = std::make_unique<HangingSensor>(go);
  const auto loop = Start(absl::Milliseconds(20));
  Take(*loop, 3);
  // The one in which it began to hang came as late as patience is long; what it held up is counted.
  EXPECT_THAT(AbsencesOf(fast_[2].reading),
              ::testing::ElementsAre(::testing::HasSubstr("gpu failed hanging: no answer for ")));
  Take(*loop, 20);
  // On a busy machine the kernel's own answers, too, may miss a tick of 20 ms now and then.
  std::size_t answered = 0;
  for (std::size_t i = 2; i < fast_.size(); ++i) {
    answered += ValuesOf(fast_[i].reading).count("net_throughput_sent");
    EXPECT_THAT(AbsencesOf(fast_[i].reading), ::testing::Contains(::testing::HasSubstr("hanging")))
        << i;
  }
  EXPECT_GT(2 * answered, fast_.size());
  go->Notify();
  const absl::Time deadline = absl::Now() + absl::Seconds(30);
  while (!fast_.back().reading.absences().empty() && absl::Now() < deadline) Take(*loop, 1);
  EXPECT_EQ(ValuesOf(fast_.back().reading).count("gpu_util"), 1u);
}

TEST_F(SamplingLoopTest, NothingIsTakenInAPauseAndRatesBeginAnewAfterIt) {
  const auto loop = Start(absl::Milliseconds(20));
  Take(*loop, 3);
  loop->Pause(true);
  // The loop has seen it when nothing comes any more: a tick under way may still arrive.
  absl::Time quiet_since = absl::Now();
  std::size_t seen = fast_.size();
  const absl::Time deadline = absl::Now() + absl::Seconds(30);
  while (absl::Now() - quiet_since < absl::Milliseconds(200) && absl::Now() < deadline) {
    TakeAll(*loop);
    if (fast_.size() != seen) quiet_since = absl::Now();
    seen = fast_.size();
    absl::SleepFor(absl::Milliseconds(1));
  }
  fast_.clear();
  loop->Pause(false);
  Take(*loop, 3);
  EXPECT_EQ(ValuesOf(fast_[0].reading).count("net_throughput_sent"), 0u);
  EXPECT_EQ(ValuesOf(fast_[1].reading).count("net_throughput_sent"), 1u);
  EXPECT_EQ(fast_[0].late_count, 0u);
}

TEST_F(SamplingLoopTest, AnotherIntervalAndOtherGroupsTakeEffect) {
  const auto loop = Start(absl::Hours(1));
  Take(*loop, 2);
  SensorSelection selection = SensorSelection::Parse({.groups = "memory"}).value();
  selection.SetInterval(absl::Milliseconds(10));
  loop->Select(selection);
  Take(*loop, 5);
  EXPECT_TRUE(fast_.back().reading.samples().empty()) << "no sensor of that group";
}

}  // namespace
}  // namespace stepwell::agent
