#include "client/agent/sensors/absence_ledger.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/agent/sensors/memory_sensor.h"
#include "tests/unit/agent/sensors/machine.h"

namespace stepwell::agent {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

constexpr std::int64_t kSecond = 1'000'000;

Absence Failed(int sample_count = 2) {
  return {"gpu", AbsenceKind::kFailed, "GPU-1", sample_count, "GPU-1: lost"};
}
Absence Unsupported() {
  return {"gpu", AbsenceKind::kUnsupported, "gpu_power", 1, "gpu_power: not here"};
}

// "2 from 1 to 3: GPU-1: lost", times in seconds.
std::vector<std::string> Texts(const std::vector<ToldAbsence>& told) {
  std::vector<std::string> texts;
  for (const ToldAbsence& absence : told) {
    texts.push_back(std::to_string(absence.sample_count) + " from " +
                    std::to_string(absence.first_time_us / kSecond) + " to " +
                    std::to_string(absence.last_time_us / kSecond) + ": " + absence.reason);
  }
  return texts;
}

class AbsenceLedgerTest : public ::testing::Test {
 protected:
  // A tick at `second` and what is told right after it.
  std::vector<std::string> Tick(std::int64_t second, const std::vector<Absence>& absences,
                                Cadence cadence = Cadence::kFast) {
    ledger_.Note(absences, cadence, second * kSecond);
    return Texts(ledger_.TakeDue(second * kSecond));
  }
  AbsenceLedger ledger_;
};

TEST_F(AbsenceLedgerTest, AFailureIsToldAtItsBeginAndItsEndWithAllThatIsMissing) {
  EXPECT_THAT(Tick(1, {Failed()}), ElementsAre("2 from 1 to 1: GPU-1: lost"));
  EXPECT_THAT(Tick(2, {Failed()}), IsEmpty());
  EXPECT_THAT(Tick(3, {Failed()}), IsEmpty());
  EXPECT_THAT(Tick(4, {}), ElementsAre("4 from 2 to 3: GPU-1: lost"));
  EXPECT_THAT(Tick(5, {}), IsEmpty());
  EXPECT_THAT(Tick(6, {Failed()}), ElementsAre("2 from 6 to 6: GPU-1: lost"));
}

TEST_F(AbsenceLedgerTest, ALongFailureIsToldOnceAMinute) {
  EXPECT_THAT(Tick(1, {Failed()}), ElementsAre("2 from 1 to 1: GPU-1: lost"));
  for (int second = 2; second < 61; ++second) EXPECT_THAT(Tick(second, {Failed()}), IsEmpty());
  EXPECT_THAT(Tick(61, {Failed()}), ElementsAre("120 from 2 to 61: GPU-1: lost"));
}

TEST_F(AbsenceLedgerTest, WhatCannotBeMeasuredIsToldAtItsBeginAndItsEndWithoutACount) {
  EXPECT_THAT(Tick(1, {Unsupported()}), ElementsAre("0 from 1 to 1: gpu_power: not here"));
  for (int second = 2; second < 200; ++second) {
    EXPECT_THAT(Tick(second, {Unsupported()}), IsEmpty());
  }
  EXPECT_THAT(Tick(200, {}), ElementsAre("0 from 1 to 199: gpu_power: not here"));
  EXPECT_THAT(Tick(200, {}), IsEmpty());
  // A change and back again is a change.
  EXPECT_THAT(Tick(201, {Unsupported()}), ElementsAre("0 from 201 to 201: gpu_power: not here"));
}

TEST_F(AbsenceLedgerTest, AFailureOfOneTickHasAnEnd) {
  EXPECT_THAT(Tick(1, {Failed()}), ElementsAre("2 from 1 to 1: GPU-1: lost"));
  EXPECT_THAT(Tick(2, {}), ElementsAre("0 from 1 to 1: GPU-1: lost"));
  EXPECT_THAT(Tick(3, {}), IsEmpty());
}

TEST_F(AbsenceLedgerTest, WhatIsLateEachOtherTickIsToldEachMinute) {
  const Absence late = {"gpu", AbsenceKind::kLate, "GPU-1", 2, "GPU-1: slow"};
  EXPECT_THAT(Tick(1, {late}), ElementsAre("2 from 1 to 1: GPU-1: slow"));
  for (int second = 2; second < 61; ++second) {
    EXPECT_THAT(Tick(second, second % 2 == 0 ? std::vector<Absence>() : std::vector{late}),
                IsEmpty());
  }
  EXPECT_THAT(Tick(61, {late}), ElementsAre("60 from 3 to 61: GPU-1: slow"));
  EXPECT_THAT(Tick(62, {}), IsEmpty());
}

// Root may read all: as another user, where the test is root.
class AsNobody {
 public:
  AsNobody() : is_root_(geteuid() == 0) {
    if (is_root_) {
      EXPECT_EQ(seteuid(65534), 0);
    }
  }
  ~AsNobody() {
    if (is_root_) {
      EXPECT_EQ(seteuid(0), 0);
    }
  }
  AsNobody(const AsNobody&) = delete;
  AsNobody& operator=(const AsNobody&) = delete;

 private:
  const bool is_root_;
};

TEST_F(AbsenceLedgerTest, AgentRule16_AFileThatMayNotBeReadIsToldFromItsFirstTickToItsLast) {
  Machine machine;
  machine.Write("proc/meminfo", "MemTotal: 8 kB\nMemFree: 4 kB\nMemAvailable: 4 kB\n");
  MemorySensor sensor(machine.kernel());
  const auto tick = [&](std::int64_t second, mode_t mode) {
    chmod(machine.root().c_str(), 0755);
    chmod((machine.root() / "proc/meminfo").c_str(), mode);
    const AsNobody nobody;
    const Reading reading = machine.Read(sensor);
    EXPECT_EQ(ValuesOf(reading).count("memory_free"), mode == 0 ? 0u : 1u);
    return Tick(second, reading.absences());
  };
  EXPECT_THAT(tick(1, 0444), IsEmpty());
  EXPECT_THAT(tick(2, 0),
              ElementsAre(AllOf(StartsWith("0 from 2 to 2: memory: "), HasSubstr("denied"))));
  EXPECT_THAT(tick(3, 0), IsEmpty());
  EXPECT_THAT(tick(600, 0), IsEmpty());
  EXPECT_THAT(tick(601, 0444), ElementsAre(StartsWith("0 from 2 to 600: memory: ")));
  EXPECT_THAT(tick(602, 0444), IsEmpty());
}

TEST_F(AbsenceLedgerTest, ATickOfAnotherCadenceSaysNothingAboutThisOne) {
  EXPECT_THAT(Tick(1, {Failed()}), ElementsAre("2 from 1 to 1: GPU-1: lost"));
  EXPECT_THAT(Tick(2, {}, Cadence::kSlow), IsEmpty());
  EXPECT_THAT(Tick(3, {Failed()}), IsEmpty());
  EXPECT_THAT(Tick(4, {}), ElementsAre("2 from 3 to 3: GPU-1: lost"));
}

TEST_F(AbsenceLedgerTest, LateTicksAreToldAtOnceAndThenEachMinute) {
  ledger_.Count("", AbsenceKind::kLate, 30, {3 * kSecond, 4 * kSecond}, "late");
  EXPECT_THAT(Texts(ledger_.TakeDue(5 * kSecond)), ElementsAre("30 from 3 to 4: late"));
  ledger_.Count("", AbsenceKind::kLate, 10, {7 * kSecond, 7 * kSecond}, "late");
  EXPECT_THAT(Tick(8, {}), IsEmpty());
  EXPECT_THAT(Tick(65, {}), ElementsAre("10 from 7 to 7: late"));
}

TEST_F(AbsenceLedgerTest, TicksOfSeveralCadencesAreToldFromTheFirstToTheLast) {
  ledger_.Count("", AbsenceKind::kLate, 8, {12 * kSecond, 19 * kSecond}, "late");
  ledger_.Count("", AbsenceKind::kLate, 1, {10 * kSecond, 10 * kSecond}, "late");
  ledger_.Count("", AbsenceKind::kLate, 0, {1 * kSecond, 90 * kSecond}, "late");
  EXPECT_THAT(Texts(ledger_.TakeDue(20 * kSecond)), ElementsAre("9 from 10 to 19: late"));
}

TEST_F(AbsenceLedgerTest, WhatWasMissedBeforeATickStandsAtItsIntervals) {
  const AbsenceSpan span = MissedBefore(20 * kSecond, 8, absl::Seconds(2));
  EXPECT_EQ(span.first_time_us, 4 * kSecond);
  EXPECT_EQ(span.last_time_us, 18 * kSecond);
}

TEST_F(AbsenceLedgerTest, AtTheEndAllThatIsLeftIsTold) {
  Tick(1, {Failed(), Unsupported()});
  Tick(2, {Failed(), Unsupported()});
  EXPECT_THAT(Texts(ledger_.TakeAll()),
              ElementsAre("0 from 1 to 2: gpu_power: not here", "2 from 2 to 2: GPU-1: lost"));
  EXPECT_THAT(Texts(ledger_.TakeAll()), IsEmpty());
}

TEST_F(AbsenceLedgerTest, ManyAbsencesAreBoundedAndNoneIsUncounted) {
  std::vector<Absence> many;
  for (int i = 0; i < 1000; ++i) {
    many.push_back({"gpu", AbsenceKind::kFailed, "device " + std::to_string(i), 1, "lost"});
  }
  ledger_.Note(many, Cadence::kFast, kSecond);
  const std::vector<ToldAbsence> told = ledger_.TakeDue(kSecond);
  EXPECT_LE(told.size(), AbsenceLedger::kAbsenceCountMax + 1);
  std::uint64_t sum = 0;
  for (const ToldAbsence& absence : told) sum += absence.sample_count;
  EXPECT_EQ(sum, 1000u);
}

TEST_F(AbsenceLedgerTest, AClockThatWasSetBackSilencesNothing) {
  Tick(1000, {Failed()});
  EXPECT_THAT(Tick(10, {Failed()}), ElementsAre("2 from 10 to 10: GPU-1: lost"));
}

}  // namespace
}  // namespace stepwell::agent
