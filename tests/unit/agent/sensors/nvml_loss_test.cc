// A GPU that is lost among others that are well: the library begins anew for it, in which time they
// have no samples. By the stand-in, where it stays lost until all have shut the library down.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "absl/strings/str_cat.h"
#include "client/agent/sensors/nvml_finder.h"
#include "tests/unit/agent/sensors/machine.h"
#include "tests/unit/agent/sensors/nvml_stub.h"

namespace stepwell::agent {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr char kWell[] = "gpus 3\ngpu * util_gpu 7\n";
constexpr char kOneLost[] = "gpus 3\ngpu * util_gpu 7\ngpu 1 fail * 15\n";
constexpr char kAllLost[] = "gpus 3\ngpu 0 fail * 15\ngpu 1 fail * 15\ngpu 2 fail * 15\n";
constexpr char kAnew[] = "the library is initialised anew";

class NvmlLossTest : public ::testing::Test {
 protected:
  // One sampler's.
  class Sampler {
   public:
    Sampler(Machine& machine, const NvmlStub& stub)
        : machine_(machine), finder_(stub.library(), machine.kernel(), machine.clock()) {}
    std::vector<Absence> Look() {
      Findings findings = finder_.Find();
      for (auto& sensor : findings.sensors) sensors_.push_back(std::move(sensor));
      return findings.absences;
    }
    // Of each GPU what it uses, or why that is not known.
    std::vector<std::string> Read() {
      std::vector<std::string> texts;
      for (const auto& sensor : sensors_) {
        const Reading reading = machine_.Read(*sensor);
        const Values values = ValuesOf(reading);
        const auto found = values.find(absl::StrCat("gpu_util{device=", sensor->face().name, "}"));
        if (found != values.end()) texts.push_back(absl::StrCat(found->second));
        for (const std::string& text : AbsencesOf(reading)) texts.push_back(text);
      }
      return texts;
    }

   private:
    Machine& machine_;
    NvmlFinder finder_;
    std::vector<std::unique_ptr<Sensor>> sensors_;
  };

  NvmlLossTest() {
    EXPECT_THAT(sampler_.Look(), IsEmpty());
    EXPECT_THAT(sampler_.Read(), ElementsAre("7", "7", "7"));
    EXPECT_EQ(stub_.inits(), 1);
  }
  // `count` looks, 10 s apart, each with a tick; in which of them the library began, from 1 on.
  std::vector<int> LooksThatBegin(int count) {
    std::vector<int> begins;
    for (int look = 1; look <= count; ++look) {
      machine_.Advance(absl::Seconds(10));
      const int before = stub_.inits();
      EXPECT_THAT(sampler_.Look(), IsEmpty());
      if (stub_.inits() != before) begins.push_back(look);
      texts_ = sampler_.Read();
      EXPECT_EQ(texts_.front(), "7") << "those that are well go on";
      EXPECT_EQ(texts_.back(), "7");
    }
    return begins;
  }

  Machine machine_;
  NvmlStub stub_{kWell};
  Sampler sampler_{machine_, stub_};
  std::vector<std::string> texts_;
};

TEST_F(NvmlLossTest, AgentRule16_WhileOneIsLostTheLibraryBeginsAnewLessAndLessOften) {
  stub_.Play(kOneLost);
  EXPECT_THAT(sampler_.Read(), ElementsAre("7", HasSubstr("gpu failed GPU-stub-1: "), "7"));
  EXPECT_THAT(LooksThatBegin(310), ElementsAre(1, 3, 7, 15, 31, 63, 123, 183, 243, 303));
  EXPECT_THAT(texts_,
              ElementsAre("7", "gpu failed GPU-stub-1: the library does not see the device", "7"));
}

TEST_F(NvmlLossTest,
       AgentRule16_OneThatIsBackIsSampledWithinTenMinutesAndANewLossIsLookedForAtOnce) {
  stub_.Play(kOneLost);
  sampler_.Read();
  LooksThatBegin(200);
  stub_.Play(kWell);
  // By a new beginning alone.
  EXPECT_THAT(LooksThatBegin(42), IsEmpty());
  EXPECT_THAT(texts_, ElementsAre("7", HasSubstr("does not see the device"), "7"));
  EXPECT_THAT(LooksThatBegin(1), ElementsAre(1));
  EXPECT_THAT(texts_, ElementsAre("7", "7", "7"));
  EXPECT_THAT(LooksThatBegin(100), IsEmpty());
  stub_.Play(kOneLost);
  sampler_.Read();
  EXPECT_THAT(LooksThatBegin(8), ElementsAre(1, 3, 7));
}

// The trial that sampled it has ended; an agent of the machine serves many.
TEST_F(NvmlLossTest, OneThatALaterTrialNeverSawIsToldAndFoundWhenItIsBack) {
  stub_.Play(kOneLost);
  sampler_.Read();
  LooksThatBegin(2);
  Sampler later(machine_, stub_);
  const std::vector<Absence> told = later.Look();
  ASSERT_THAT(told, SizeIs(1));
  EXPECT_THAT(told.front().reason, HasSubstr("GPU-stub-1"));
  EXPECT_THAT(later.Read(), ElementsAre("7", "7"));
  // From here on nobody reads those of the first.
  for (int look = 0; look < 200; ++look) {
    machine_.Advance(absl::Seconds(10));
    EXPECT_THAT(later.Look(), SizeIs(1)) << look;
    EXPECT_THAT(later.Read(), ElementsAre("7", "7"));
  }
  EXPECT_GE(stub_.inits(), 8);
  EXPECT_LE(stub_.inits(), 12);
  stub_.Play(kWell);
  for (int look = 0; look < 61; ++look) {
    machine_.Advance(absl::Seconds(10));
    later.Look();
  }
  EXPECT_THAT(later.Look(), IsEmpty());
  EXPECT_THAT(later.Read(), ElementsAre("7", "7", "7"));
}

// Its reset is asked for, say: the library shows it, and each call fails.
TEST_F(NvmlLossTest, OneThatIsSeenAndLostAgainEachTimeIsNoReasonToBeginMoreOften) {
  stub_.Play("gpus 3\ngpu * util_gpu 7\ngpu 1 fail nvmlDeviceGetUtilizationRates 15\n");
  sampler_.Read();
  EXPECT_THAT(LooksThatBegin(70), ElementsAre(1, 3, 7, 15, 31, 63));
}

TEST_F(NvmlLossTest, WhereNoneIsWellEachLookBeginsAnew) {
  stub_.Play(kAllLost);
  for (int look = 1; look <= 20; ++look) {
    EXPECT_THAT(sampler_.Read(), AllOf(SizeIs(3), Each(HasSubstr("gpu failed GPU-stub-"))));
    machine_.Advance(absl::Seconds(10));
    sampler_.Look();
    EXPECT_EQ(stub_.inits(), 1 + look);
  }
  stub_.Play(kWell);
  sampler_.Read();
  sampler_.Look();
  EXPECT_THAT(sampler_.Read(), ElementsAre("7", "7", "7"));
}

TEST_F(NvmlLossTest, SamplersOfOneProcessShareALibraryWhichBeginsOnceForAll) {
  Sampler other(machine_, stub_);
  EXPECT_THAT(other.Look(), IsEmpty());
  EXPECT_THAT(other.Read(), ElementsAre("7", "7", "7"));
  EXPECT_EQ(stub_.inits(), 1);
  stub_.Play(kOneLost);
  other.Read();
  sampler_.Read();
  machine_.Advance(absl::Seconds(10));
  other.Look();
  sampler_.Look();
  EXPECT_EQ(stub_.inits(), 2);
  stub_.Play(kWell);
  machine_.Advance(absl::Seconds(20));
  sampler_.Read();
  sampler_.Look();
  other.Look();
  EXPECT_EQ(stub_.inits(), 3);
  EXPECT_THAT(sampler_.Read(), ElementsAre("7", "7", "7"));
  EXPECT_THAT(other.Read(), ElementsAre("7", "7", "7"));
}

TEST_F(NvmlLossTest, ACallThatIsUnderWayPutsABeginningOffToTheNextLook) {
  stub_.Play(kOneLost);
  sampler_.Read();
  {
    const auto session = NvmlSession::Of(stub_.library()).value();
    const NvmlSession::Call call(*session, "GPU-stub-0");
    EXPECT_THAT(LooksThatBegin(2), IsEmpty());
  }
  EXPECT_THAT(LooksThatBegin(8), ElementsAre(1, 3, 7));
}

// The others lack the samples of that time and no more.
class BeginningTest : public NvmlLossTest, public ::testing::WithParamInterface<const char*> {};

TEST_P(BeginningTest, AgentRule16_TheOthersAreBackOnceItIsOverAndNoneOfThemCountsAsLost) {
  stub_.Play(kOneLost);
  sampler_.Read();
  machine_.Advance(absl::Seconds(10));
  stub_.Play(absl::StrCat(kWell, "library ", GetParam(), "\n"));
  std::thread look([this] { sampler_.Look(); });
  const absl::Time deadline = absl::Now() + absl::Seconds(20);
  do {
    absl::SleepFor(absl::Milliseconds(1));  // the look waits for a moment without a call
    texts_ = sampler_.Read();
  } while (texts_[0].find(kAnew) == std::string::npos && absl::Now() < deadline);
  EXPECT_THAT(texts_, ElementsAre(absl::StrCat("gpu failed GPU-stub-0: ", kAnew),
                                  absl::StrCat("gpu failed GPU-stub-1: ", kAnew),
                                  absl::StrCat("gpu failed GPU-stub-2: ", kAnew)));
  // Another sampler that looks meanwhile neither waits nor begins beside it.
  Sampler other(machine_, stub_);
  EXPECT_EQ(other.Look().size(), 0u) << "without a GPU on the bus";
  stub_.Play(kWell);
  look.join();
  EXPECT_EQ(stub_.inits(), 2);
  EXPECT_THAT(sampler_.Read(), ElementsAre("7", "7", "7"));
  EXPECT_THAT(LooksThatBegin(100), IsEmpty());
  EXPECT_THAT(other.Look(), IsEmpty());
  EXPECT_THAT(other.Read(), ElementsAre("7", "7", "7"));
}

INSTANTIATE_TEST_SUITE_P(Rows, BeginningTest,
                         ::testing::Values("hang nvmlInit_v2", "slow nvmlInit_v2 1000",
                                           "hang nvmlDeviceGetCount_v2"));

}  // namespace
}  // namespace stepwell::agent
