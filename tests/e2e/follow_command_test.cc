// `stepwell read --follow` against a real master: what it prints, and how it ends.
#include <gmock/gmock.h>

#include <fstream>
#include <sstream>

#include "nlohmann/json.hpp"
#include "tests/e2e/spine.h"
#include "tests/support/child_process.h"

namespace stepwell::testing {
namespace {

using ::testing::HasSubstr;

class FollowCommandTest : public SpineTest {
 protected:
  void SetUp() override {
    StartMaster();
    stream_ = std::make_unique<RawStream>(*client_);
    Open(*stream_, writer_, "run");
  }

  void StartCommand(std::vector<std::string> words) {
    words.insert(words.begin(), {BuiltProgram("stepwell"), "read", "run", "--follow", "--server",
                                 master_->grpc_address()});
    command_.Start(words, {}, log_);
  }
  // Values 0, 1, 2, ... in chunks of one.
  void Record(int count) {
    for (int i = 0; i < count; ++i, ++sequence_) {
      const double value = static_cast<double>(sequence_);
      ASSERT_TRUE(stream_->Send(ChunkMessage(
          writer_, sequence_ + 1,
          OneColumn(1, start_us_ + static_cast<std::int64_t>(sequence_) * 1000, 1000, {value}))));
    }
    ASSERT_TRUE(stream_->WaitAck(writer_, sequence_).has_value()) << master_->LogTail();
  }
  std::string Output() const {
    std::stringstream text;
    text << std::ifstream(log_).rdbuf();
    return text.str();
  }
  // The values of the lines of JSON.
  std::vector<double> Values() const {
    std::vector<double> values;
    std::ifstream file(log_);
    for (std::string line; std::getline(file, line);) {
      if (line.empty() || line[0] != '{') continue;
      const auto sample = nlohmann::json::parse(line, nullptr, false);
      if (!sample.is_discarded()) values.push_back(sample["value"]);
    }
    return values;
  }
  // The command has a place: what is recorded from then on it prints. It shows no sign of that before
  // the first sample, so samples are recorded until one comes.
  void AwaitBegin() {
    ASSERT_TRUE(Eventually(
        [&] {
          Record(1);
          return !Values().empty();
        },
        absl::Seconds(20)))
        << Output();
  }
  bool AwaitNewest() {
    return Eventually(
        [&] {
          const std::vector<double> values = Values();
          return !values.empty() && values.back() == static_cast<double>(sequence_ - 1);
        },
        absl::Seconds(20));
  }
  void ExpectEachOnce() const {
    const std::vector<double> values = Values();
    ASSERT_FALSE(values.empty());
    for (std::size_t i = 1; i < values.size(); ++i) {
      ASSERT_EQ(values[i], values[i - 1] + 1) << "line " << i;
    }
    EXPECT_EQ(values.back(), static_cast<double>(sequence_ - 1));
  }

  const Uuid writer_ = Uuid::Random();
  std::unique_ptr<RawStream> stream_;
  std::uint64_t sequence_ = 0;
  const std::int64_t start_us_ = NowUs() - 60'000'000;
  const std::string log_ = scratch_ / "command";
  ChildProcess command_;
};

TEST_F(FollowCommandTest, PrintsSamplesUntilTheTrialEnds) {
  Record(5);
  StartCommand({"--json", "--lookback", "1m"});
  AwaitBegin();
  Record(20);
  ASSERT_TRUE(stream_->Send(CloseMessage(writer_, sequence_)));
  EXPECT_EQ(command_.Wait(absl::Seconds(20)), "exit 0") << Output();
  ExpectEachOnce();
  EXPECT_EQ(Values().front(), 0) << "of the minute before";
  EXPECT_THAT(Output(), HasSubstr("stepwell: the trial is completed"));
}

TEST_F(FollowCommandTest, AnInterruptEndsIt) {
  StartCommand({});
  Record(1);
  ASSERT_TRUE(Eventually(
      [&] {
        Record(1);
        return Output().find("test/value{") != std::string::npos;
      },
      absl::Seconds(20)))
      << Output();
  command_.Signal(SIGINT);
  EXPECT_EQ(command_.Wait(absl::Seconds(5)), "exit 0") << Output();
}

TEST_F(FollowCommandTest, AClosedPipeEndsItThoughNothingComes) {
  command_.Start({"/bin/sh", "-c",
                  absl::StrCat(BuiltProgram("stepwell"), " read run --follow --json --server ",
                               master_->grpc_address(), " | head -n 1")},
                 {}, log_);
  AwaitBegin();
  EXPECT_EQ(command_.Wait(absl::Seconds(10)), "exit 0") << Output();
}

TEST_F(FollowCommandTest, StopsAtItsLimit) {
  Record(10);
  StartCommand({"--json", "--lookback", "1m", "--limit", "7"});
  EXPECT_EQ(command_.Wait(absl::Seconds(20)), "exit 0") << Output();
  EXPECT_EQ(Values().size(), 7U);
}

TEST_F(FollowCommandTest, GoesOnWhereItWasWhenTheMasterComesAgain) {
  StartCommand({"--json"});
  AwaitBegin();
  Record(10);
  ASSERT_TRUE(AwaitNewest());
  stream_.reset();
  master_->Kill();
  ASSERT_TRUE(Eventually(
      [&] { return Output().find("does not answer; waiting for it") != std::string::npos; },
      absl::Seconds(20)));
  ASSERT_TRUE(master_->StartAndWait()) << master_->LogTail();
  client_ = std::make_unique<IngestClient>(master_->grpc_address());
  stream_ = std::make_unique<RawStream>(*client_);
  Open(*stream_, writer_, "run");
  Record(10);
  EXPECT_TRUE(AwaitNewest()) << Output();
  ExpectEachOnce();
  EXPECT_THAT(Output(), HasSubstr("the master is back"));
  command_.Signal(SIGTERM);
  EXPECT_EQ(command_.Wait(absl::Seconds(5)), "exit 0") << Output();
}

TEST_F(FollowCommandTest, AnUnknownTrialAndAMissingMasterAreToldAtOnce) {
  ChildProcess other;
  other.Start(
      {BuiltProgram("stepwell"), "read", "walk", "--follow", "--server", master_->grpc_address()},
      {}, log_);
  EXPECT_EQ(other.Wait(absl::Seconds(10)), "exit 1");
  EXPECT_THAT(Output(), HasSubstr("there is no trial 'walk'"));
  other.Start({BuiltProgram("stepwell"), "read", "run", "--follow", "--server", "127.0.0.1:1"}, {},
              log_);
  EXPECT_EQ(other.Wait(absl::Seconds(10)), "exit 69");
}

}  // namespace
}  // namespace stepwell::testing
