// `stepwell export` of a real master: all samples once, exactly, in bounded memory, whatever breaks.
#include <gmock/gmock.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <limits>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "nlohmann/json.hpp"
#include "tests/e2e/commands.h"
#include "tests/support/pty_child.h"

namespace stepwell::testing {
namespace {

using ::testing::HasSubstr;

std::string TextOf(const std::string& path) {
  std::stringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

// The most memory that it ever held, in bytes; 0 = it is gone.
std::int64_t PeakBytes(pid_t pid) {
  std::ifstream status(absl::StrCat("/proc/", pid, "/status"));
  for (std::string line; std::getline(status, line);) {
    const std::vector<std::string> words = absl::StrSplit(line, ' ', absl::SkipEmpty());
    std::int64_t kilobytes = 0;
    if (absl::StartsWith(line, "VmHWM:") && absl::SimpleAtoi(words[1], &kilobytes)) {
      return kilobytes * 1024;
    }
  }
  return 0;
}

class ExportTest : public CommandsTest {
 protected:
  // 0, 1, 2, ... in chunks of 5000, all acked and folded.
  void RecordMany(const std::string& trial, int count) {
    RawStream stream(*client_);
    const Uuid writer = Uuid::Random();
    Open(stream, writer, trial);
    std::uint64_t sequence = 0;
    for (int at = 0; at < count; at += 5000) {
      std::vector<double> values;
      for (int i = at; i < at + 5000; ++i) values.push_back(i);
      ASSERT_TRUE(stream.Send(
          ChunkMessage(writer, ++sequence, OneColumn(1, start_us_ + at * 10LL, 10, values))));
      if (sequence % 16 == 0) {
        ASSERT_TRUE(stream.WaitAck(writer, sequence).has_value());
      }
    }
    ASSERT_TRUE(stream.Send(CloseMessage(writer, sequence)));
    ASSERT_TRUE(stream.WaitAck(writer, sequence).has_value()) << master_->LogTail();
    ASSERT_TRUE(client_->Flush().ok());
  }

  // For a shell.
  std::string Exporting(const std::string& trial) const {
    return absl::StrCat(BuiltProgram("stepwell"), " export ", trial, " --server ",
                        master_->grpc_address());
  }
};

TEST_F(ExportTest, EverySampleIsThereExactly) {
  using Limits = std::numeric_limits<double>;
  StartMaster();
  const std::vector<double> values = {0.1,
                                      -0.0,
                                      Limits::max(),
                                      Limits::denorm_min(),
                                      1.0 / 3,
                                      Limits::infinity(),
                                      5,
                                      -Limits::infinity(),
                                      1e22,
                                      Limits::quiet_NaN()};
  RawStream stream(*client_);
  const Uuid writer = Uuid::Random();
  Open(stream, writer, "run");
  ASSERT_TRUE(stream.Send(ChunkMessage(writer, 1, OneColumn(1, start_us_, 1000, values))));
  ASSERT_TRUE(stream.WaitAck(writer, 1).has_value());
  const std::string file = scratch_ / "run.csv";
  const Ran csv = Command({"export", "run", "--output", file});
  EXPECT_EQ(csv.ending, "exit 0") << csv.output;
  EXPECT_EQ(csv.output, "10 samples are in " + file + "\n");
  const std::vector<std::string> lines = absl::StrSplit(TextOf(file), '\n', absl::SkipEmpty());
  const Ran json = Command({"export", "run", "--format", "jsonl"});
  const std::vector<std::string> objects = absl::StrSplit(json.output, '\n', absl::SkipEmpty());
  ASSERT_EQ(lines.size(), values.size() + 1);
  ASSERT_EQ(objects.size(), values.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::vector<std::string> fields = absl::StrSplit(lines[i + 1], absl::MaxSplits(',', 6));
    const double value = std::strtod(fields[2].c_str(), nullptr);
    const auto object = nlohmann::json::parse(objects[i]);
    EXPECT_EQ(object["time_us"], start_us_ + static_cast<std::int64_t>(i) * 1000);
    if (std::isnan(values[i])) {
      EXPECT_TRUE(std::isnan(value));
      EXPECT_EQ(object["value"], "NaN");
      continue;
    }
    EXPECT_EQ(std::bit_cast<std::uint64_t>(value), std::bit_cast<std::uint64_t>(values[i]));
    EXPECT_EQ(object["labels"]["rank"], "0");
  }
}

TEST_F(ExportTest, AClosedPipeAndAStopAreQuiet) {
  StartMaster();
  RecordMany("run", 100'000);
  const std::string log = scratch_ / "pipe";
  ChildProcess shell;
  shell.Start(
      {"/bin/sh", "-c", absl::StrCat("(", Exporting("run"), "; echo exit $? >&2) | head -n 1")}, {},
      log);
  EXPECT_EQ(shell.Wait(absl::Seconds(30)), "exit 0");
  EXPECT_EQ(TextOf(log), "timestamp,batch,value,attempt,metric_group,name,labels,unit\nexit 0\n");

  // Stopped while nobody reads: a FIFO is full after 64 KiB.
  const std::string fifo = scratch_ / "fifo";
  ASSERT_EQ(mkfifo(fifo.c_str(), 0600), 0);
  const std::string stop_log = scratch_ / "stopped";
  ChildProcess child;
  child.Start({"/bin/sh", "-c", absl::StrCat("exec ", Exporting("run"), " > ", fifo)}, {},
              stop_log);
  std::ifstream reader(fifo);
  std::string line;
  ASSERT_TRUE(std::getline(reader, line));
  child.Signal(SIGINT);
  while (std::getline(reader, line)) {
  }
  EXPECT_EQ(child.Wait(absl::Seconds(30)), "exit 75");
  EXPECT_THAT(TextOf(stop_log), HasSubstr("stepwell: stopped after "));
}

TEST_F(ExportTest, OnATerminalItSaysHowFarItIsAndEndsAtTheSecondSignal) {
  StartMaster();
  RecordMany("run", 100'000);
  const std::string fifo = scratch_ / "fifo";
  ASSERT_EQ(mkfifo(fifo.c_str(), 0600), 0);
  PtyChild child({"/bin/sh", "-c", absl::StrCat("exec ", Exporting("run"), " > ", fifo)}, {}, 80,
                 24);
  std::ifstream reader(fifo);
  std::string line;
  ASSERT_TRUE(std::getline(reader, line));
  // Nobody reads on, for as long as it takes.
  EXPECT_TRUE(child.WaitFor(" samples ... ", absl::Seconds(20))) << child.shown();
  child.Signal(SIGINT);
  EXPECT_EQ(child.Wait(absl::Milliseconds(200)), "still running");
  child.Signal(SIGINT);
  EXPECT_EQ(child.Wait(absl::Seconds(20)), "exit 75");
}

TEST_F(ExportTest, ALargeOneIsBoundedAndGoesOnWhereTheMasterComesBack) {
  constexpr int kCount = 1'000'000;
  StartMaster();
  RecordMany("run", kCount);
  const std::string fifo = scratch_ / "fifo";
  ASSERT_EQ(mkfifo(fifo.c_str(), 0600), 0);
  const std::string log = scratch_ / "export";
  ChildProcess child;
  child.Start({"/bin/sh", "-c", absl::StrCat("exec ", Exporting("run"), " > ", fifo)}, {}, log);
  std::ifstream reader(fifo);
  std::string line;
  ASSERT_TRUE(std::getline(reader, line)) << TextOf(log);
  master_->Kill();
  ASSERT_TRUE(master_->StartAndWait()) << master_->LogTail();
  int value = 0;
  std::int64_t peak_bytes = 0;
  for (; std::getline(reader, line); ++value) {
    const std::vector<std::string> fields = absl::StrSplit(line, absl::MaxSplits(',', 3));
    ASSERT_EQ(fields[2], absl::StrCat(value)) << "behind " << value - 1;
    if (value % 100'000 == 99'999) peak_bytes = std::max(peak_bytes, PeakBytes(child.pid()));
  }
  EXPECT_EQ(value, kCount);
  EXPECT_EQ(child.Wait(absl::Seconds(30)), "exit 0") << TextOf(log);
  EXPECT_THAT(TextOf(log), HasSubstr("the master broke off after "));
  // The program alone has 30 MB, and 270 with AddressSanitizer; all samples as text are 90 MB, on the wire 20.
#ifdef __SANITIZE_ADDRESS__
  constexpr std::int64_t kPeakBytesMax = 336 << 20;
#else
  constexpr std::int64_t kPeakBytesMax = 64 << 20;
#endif
  EXPECT_GT(peak_bytes, 0);
  EXPECT_LT(peak_bytes, kPeakBytesMax);
  RecordProperty("peak_bytes", static_cast<int>(peak_bytes));
}

TEST_F(ExportTest, WithoutItsMasterThereIsNoHalfFile) {
  StartMaster();
  RecordMany("run", 5000);
  // No regular file beside it, whatever happened.
  const std::string folder = scratch_ / "folder";
  ASSERT_TRUE(std::filesystem::create_directory(folder));
  const Ran unknown = Command({"export", "walk", "--output", folder + "/walk.csv"});
  EXPECT_EQ(unknown.ending, "exit 1");
  EXPECT_THAT(unknown.output, HasSubstr("there is no trial 'walk'"));
  EXPECT_EQ(Command({"export", "run", "--output", folder + "/a.csv"}, "127.0.0.1:1").ending,
            "exit 69");
  const Ran later = Command({"export", "run", "--output", folder + "/a.csv", "--from",
                             "1970-01-02T00:00:00Z", "--to", "1970-01-03T00:00:00Z"});
  EXPECT_EQ(later.ending, "exit 1") << later.output;
  EXPECT_TRUE(std::filesystem::is_empty(folder));
}

TEST_F(ExportTest, WhatIsMissingIsSaid) {
  StartMaster();
  RawStream stream(*client_);
  const Uuid writer = Uuid::Random();
  Open(stream, writer, "run");
  v1::ChunkBody body = OneColumn(1, start_us_, 1000, {1, 2});
  v1::Loss& loss = *body.add_losses();
  loss.set_cause(v1::GAP_CAUSE_RING_FULL);
  loss.set_metric_group("test");
  loss.set_sample_count(7);
  ASSERT_TRUE(stream.Send(ChunkMessage(writer, 1, body)));
  ASSERT_TRUE(stream.WaitAck(writer, 1).has_value());
  const Ran ran = Command({"export", "run", "--output", scratch_ / "run.csv"});
  EXPECT_EQ(ran.ending, "exit 0");
  EXPECT_THAT(ran.output,
              HasSubstr("Incomplete: 2 samples are here, 7 are missing (ring full 7)."));
  EXPECT_TRUE(std::filesystem::exists(scratch_ / "run.csv"));
}

}  // namespace
}  // namespace stepwell::testing
