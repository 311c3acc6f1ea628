// What cannot be measured on a machine, and why, is told beside what can. The machine is a false
// root of files.
#include "client/agent/sampler_writer.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"

namespace stepwell::agent {
namespace {

namespace fs = std::filesystem;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr uid_t kNobody = 65534;
constexpr absl::Duration kInterval = absl::Milliseconds(20);
// The first that a sampler defines.
constexpr std::uint32_t kFastTickGroup = 1;

class SamplerWriterTest : public ::testing::Test {
 protected:
  void SetUp() override {
    char pattern[] = "/tmp/stepwell-sampler-test-XXXXXX";
    ASSERT_NE(mkdtemp(pattern), nullptr);
    path_ = pattern;
    fs::create_directories(path_ / "writer");
    fs::create_directories(path_ / "root/proc/net");
    fs::create_directories(path_ / "root/proc/self");
    fs::create_directories(path_ / "root/sys/block/sda/device");
    fs::create_directories(path_ / "root/proc/pressure");
    Write("stat", "cpu  100 0 50 800 50 0 0 0 40 0\n");
    Write("loadavg", "0.50 0.50 0.50 1/200 300\n");
    Write("meminfo", "MemTotal: 1000 kB\nMemAvailable: 900 kB\n");
    for (const char* of : {"cpu", "memory", "io"}) {
      Write(std::string("pressure/") + of, "some total=5\nfull total=4\n");
    }
    Write("diskstats", "   8 0 sda 10 0 100 0 20 0 200 0 0 0 0 0 0 0 0\n");
    Write("net/dev", "  eth0:1000 1 0 0 0 0 0 0 500 1 0 0 0 0 0 0\n");
    Write("self/mountinfo", "");
  }
  void TearDown() override {
    sampler_ = nullptr;
    fs::remove_all(path_);
  }

  fs::path File(const std::string& name) { return path_ / "root/proc" / name; }
  void Write(const std::string& name, const std::string& text) {
    std::ofstream(File(name), std::ios::trunc) << text;
  }
  enum class Master { kConnected, kAway };
  void Open(const Clock& clock, absl::Duration interval = kInterval,
            Master master = Master::kConnected) {
    WriterIdentity identity;
    identity.writer = writer_;
    identity.trial = "t";
    identity.is_sampler = true;
    SamplerWriter::Settings settings;
    settings.selection.SetInterval(interval);
    settings.machine.root = path_ / "root";
    settings.machine.nvml_path = "/nowhere";
    settings.machine.amd_paths = {"/nowhere", "/nowhere"};
    auto sampler = SamplerWriter::Open(
        FileDescriptor(open((path_ / "writer").c_str(), O_RDONLY | O_DIRECTORY)), identity,
        settings, {sender_, clock, AgentFace(), Spool::Options()});
    ASSERT_TRUE(sampler.ok()) << sampler.status();
    sampler_ = *std::move(sampler);
    if (master == Master::kConnected) sender_.OnConnected();
  }
  // Visits without a word of the master, for so many looks.
  void VisitAlone(int count) {
    for (int i = 0; i < count; ++i) {
      sampler_->Visit({});
      absl::SleepFor(absl::Milliseconds(1));
    }
  }
  bool IsSpooled() const { return sampler_->served().last_sequence() > 0; }
  bool VisitUntilSpooled() {
    const absl::Time deadline = absl::Now() + absl::Seconds(60);
    while (!IsSpooled() && absl::Now() < deadline) VisitAlone(1);
    return IsSpooled();
  }
  // One visit of the agent's loop; the master takes all at once.
  void Visit() {
    sampler_->Visit({});
    Talk();
  }
  void Close() {
    sampler_->Close({});
    Talk();
  }
  void Talk() {
    while (auto said = sender_.Next(clock_.Monotonic())) {
      pb::StreamChunksResponse answer;
      if (said->has_open()) {
        answer.mutable_opened()->set_writer(said->open().writer());
        const bool is_own = said->open().writer() == writer_.ToBytes();
        answer.mutable_opened()->set_committed_sequence(is_own ? acked_sequence_ : 0);
        answer.mutable_opened()->set_credit_bytes(1 << 30);
      } else if (said->has_chunk()) {
        Take(said->chunk());
        answer.mutable_ack()->set_writer(said->chunk().writer());
        answer.mutable_ack()->set_committed_sequence(said->chunk().sequence());
        if (said->chunk().writer() == writer_.ToBytes()) acked_sequence_ = said->chunk().sequence();
        answer.mutable_ack()->set_credit_bytes(1 << 30);
      } else {
        if (said->has_close()) ++close_count_;
        continue;
      }
      sender_.OnMessage(answer, clock_.Monotonic());
    }
  }
  void Take(const pb::Chunk& chunk) {
    pb::ChunkBody body;
    ASSERT_TRUE(body.ParseFromString(chunk.body()));
    for (const pb::Table& table : body.tables()) {
      // Those of other cadences share their times with these.
      if (table.tick_group() != kFastTickGroup) continue;
      std::int64_t time_us = table.first_time_us();
      ticks_.push_back(time_us);
      for (const std::int64_t delta : table.time_deltas_us()) ticks_.push_back(time_us += delta);
    }
    for (const pb::Loss& loss : body.losses()) losses_.push_back(loss);
  }
  bool VisitUntil(const std::function<bool()>& holds) {
    const absl::Time deadline = absl::Now() + absl::Seconds(60);
    while (!holds()) {
      if (absl::Now() > deadline) return false;
      Visit();
      absl::SleepFor(absl::Milliseconds(1));
    }
    return true;
  }
  bool VisitForTicks(std::size_t count) {
    return VisitUntil([this, wanted = ticks_.size() + count] { return ticks_.size() >= wanted; });
  }
  std::vector<pb::Loss> Losses(pb::GapCause cause) const {
    std::vector<pb::Loss> found;
    for (const pb::Loss& loss : losses_) {
      if (loss.cause() == cause) found.push_back(loss);
    }
    return found;
  }
  static std::uint64_t SamplesOf(const std::vector<pb::Loss>& losses) {
    std::uint64_t count = 0;
    for (const pb::Loss& loss : losses) count += loss.sample_count();
    return count;
  }

  fs::path path_;
  FakeClock clock_;
  Sender sender_;
  const Uuid writer_ = Uuid::Random();
  std::unique_ptr<SamplerWriter> sampler_;
  std::vector<std::int64_t> ticks_;
  std::vector<pb::Loss> losses_;
  int close_count_ = 0;
  std::uint64_t acked_sequence_ = 0;
};

// An agent that is killed keeps what is in the spool, and nothing else.
TEST_F(SamplerWriterTest, TicksWaitForTheMastersWordOnlyWhereOneIsAsked) {
  const struct {
    const char* name;
    Master master;
    absl::Duration patience;
  } rows[] = {{"nobody is there", Master::kAway, absl::Milliseconds(100)},
              {"one is asked", Master::kConnected, absl::Seconds(2)}};
  for (const auto& row : rows) {
    SCOPED_TRACE(row.name);
    fs::remove_all(path_ / "writer");
    fs::create_directories(path_ / "writer");
    const std::int64_t opened_us = absl::ToUnixMicros(clock_.Now());
    Open(clock_, absl::Seconds(10), row.master);
    // The first tick is taken at once, before the clock moves.
    VisitAlone(50);
    clock_.Advance(row.patience - absl::Milliseconds(1));
    VisitAlone(50);
    EXPECT_FALSE(IsSpooled());
    clock_.Advance(absl::Milliseconds(1));
    ASSERT_TRUE(VisitUntilSpooled());
    // What waited is all there, from the first on.
    ticks_.clear();
    sender_.OnConnected();
    ASSERT_TRUE(VisitUntil([this] { return !ticks_.empty(); }));
    EXPECT_EQ(ticks_.front(), opened_us);
    Close();
    sampler_ = nullptr;
    sender_.OnDisconnected();
  }
}

TEST_F(SamplerWriterTest, AMachineThatHasEverythingTellsOfNothing) {
  Open(clock_);
  ASSERT_TRUE(VisitForTicks(3));
  Close();
  EXPECT_THAT(losses_, IsEmpty());
}

// What cannot be measured here is no hole in what was measured: said at its begin and its end,
// without a count.
TEST_F(SamplerWriterTest, ASensorThatIsNotThereIsUnsupportedFromTheFirstTickToTheLast) {
  fs::remove(File("net/dev"));
  Open(clock_);
  ASSERT_TRUE(VisitForTicks(3));
  clock_.Advance(absl::Minutes(5));
  ASSERT_TRUE(VisitForTicks(3));
  Close();
  const auto told = Losses(pb::GAP_CAUSE_UNSUPPORTED);
  ASSERT_THAT(told, SizeIs(2));
  EXPECT_EQ(told[1].sample_count(), 0u);
  EXPECT_EQ(told[1].first_time_us(), ticks_.front());
  EXPECT_EQ(told[1].last_time_us(), ticks_.back());
  EXPECT_EQ(told[0].metric_group(), "network");
  EXPECT_EQ(told[0].sample_count(), 0u);
  EXPECT_EQ(told[0].first_time_us(), ticks_.front());
  EXPECT_THAT(told[0].reason(), ::testing::HasSubstr("net/dev"));
}

TEST_F(SamplerWriterTest, ASensorThatMayNotBeReadIsNoPermissionFromTheFirstTickToTheLast) {
  fs::permissions(File("diskstats"), fs::perms::none);
  // Root may read all.
  const bool is_root = geteuid() == 0;
  if (is_root) {
    fs::permissions(path_, fs::perms(0755));
    ASSERT_EQ(chown((path_ / "writer").c_str(), kNobody, kNobody), 0);
    ASSERT_EQ(seteuid(kNobody), 0);
  }
  const absl::Cleanup back = [is_root] {
    if (is_root) {
      EXPECT_EQ(seteuid(0), 0);
    }
  };
  Open(clock_);
  ASSERT_TRUE(VisitForTicks(3));
  clock_.Advance(absl::Minutes(5));
  ASSERT_TRUE(VisitForTicks(3));
  Close();
  const auto told = Losses(pb::GAP_CAUSE_NO_PERMISSION);
  ASSERT_THAT(told, SizeIs(2));
  EXPECT_EQ(told[1].first_time_us(), ticks_.front());
  EXPECT_EQ(told[1].last_time_us(), ticks_.back());
  EXPECT_EQ(told[0].metric_group(), "disk");
  EXPECT_EQ(told[0].sample_count(), 0u);
  EXPECT_THAT(Losses(pb::GAP_CAUSE_SENSOR_FAILED), IsEmpty());
}

// The first miss at once, then once a minute, the rest at the end; nothing uncounted.
TEST_F(SamplerWriterTest, ASensorThatFailsIsToldOnceAMinuteAndEachMissIsCounted) {
  Write("stat", "cpu  nonsense\n");
  Open(clock_);
  const auto told = [this] { return Losses(pb::GAP_CAUSE_SENSOR_FAILED); };
  ASSERT_TRUE(VisitUntil([&] { return !told().empty(); }));
  ASSERT_TRUE(VisitForTicks(3));
  EXPECT_THAT(told(), SizeIs(1));
  clock_.Advance(absl::Seconds(59));
  ASSERT_TRUE(VisitForTicks(3));
  EXPECT_THAT(told(), SizeIs(1));
  clock_.Advance(absl::Seconds(2));
  ASSERT_TRUE(VisitForTicks(3));
  ASSERT_THAT(told(), SizeIs(2));
  EXPECT_GE(told()[1].sample_count(), 6u);
  EXPECT_GE(told()[1].last_time_us() - told()[1].first_time_us(), 59'000'000);
  Close();
  EXPECT_THAT(told(), SizeIs(3));
  for (const pb::Loss& loss : told()) EXPECT_EQ(loss.metric_group(), "cpu");
  // One sample of the cpu is missing in each tick.
  EXPECT_EQ(SamplesOf(told()), ticks_.size());
}

// A process that stood still makes nothing up: each point of the grid is a tick or is late.
TEST_F(SamplerWriterTest, TicksThatWereSleptThroughAreLate) {
  Open(clock_);
  ASSERT_TRUE(VisitForTicks(3));
  clock_.Advance(absl::Seconds(30));
  const std::int64_t now_us = absl::ToUnixMicros(clock_.Now());
  ASSERT_TRUE(VisitUntil([this] { return !Losses(pb::GAP_CAUSE_LATE).empty(); }));
  Close();
  const auto told = Losses(pb::GAP_CAUSE_LATE);
  // Of each cadence at once, but a visit may fall between the two.
  EXPECT_LE(told.size(), 2u);
  for (const pb::Loss& loss : told) {
    EXPECT_EQ(loss.metric_group(), "");
    // It has the width of what was slept through, on the clock that was set forward by as much.
    EXPECT_GE(loss.last_time_us() - loss.first_time_us(),
              absl::ToInt64Microseconds(absl::Seconds(20)));
    EXPECT_LT(loss.first_time_us(), now_us);
  }
  const std::uint64_t late_count = SamplesOf(told);
  // In the tick before them: five of memory, shared_with; rates need a clock that runs. And the three
  // loads of the five ticks of their own that are due in 30 s.
  constexpr std::uint64_t kLoads = 5 * 3;
  EXPECT_EQ((late_count - kLoads) % 6, 0u);
  const auto before = std::count_if(ticks_.begin(), ticks_.end(),
                                    [now_us](std::int64_t tick_us) { return tick_us < now_us; });
  EXPECT_NEAR(static_cast<double>(late_count - kLoads) / 6 + static_cast<double>(before),
              static_cast<double>(absl::Seconds(30) / kInterval), 8);
}

// The agent was killed: what it did not live to sample is told by the next one, which finds in the spool when its last tick
// was.
TEST_F(SamplerWriterTest, TicksBehindAnAgentThatWasKilledAreLate) {
  Open(clock_);
  ASSERT_TRUE(VisitForTicks(4));
  const std::int64_t last_us = *std::max_element(ticks_.begin(), ticks_.end());
  sampler_ = nullptr;
  clock_.Advance(absl::Seconds(30));
  ticks_.clear();
  losses_.clear();
  Open(clock_);
  ASSERT_TRUE(VisitForTicks(3));
  Close();
  const auto told = Losses(pb::GAP_CAUSE_LATE);
  ASSERT_FALSE(told.empty());
  const std::int64_t first_us = *std::min_element(ticks_.begin(), ticks_.end());
  const auto intervals =
      static_cast<std::uint64_t>((first_us - last_us) / absl::ToInt64Microseconds(kInterval));
  EXPECT_GE(intervals, 1400u);
  for (const pb::Loss& loss : told) {
    EXPECT_EQ(loss.reason(), "ticks while no agent ran");
    EXPECT_EQ(loss.first_time_us(), last_us);
    EXPECT_EQ(loss.last_time_us(), first_us);
  }
  // Of each tick five samples of memory, and shared_with: this clock has no rates.
  EXPECT_EQ(SamplesOf(told), (intervals - 1) * 6);
}

// Ticks wait in memory for a frame's worth; then they are given up, counted, and told when there is
// room again.
TEST_F(SamplerWriterTest, TicksThatFoundTheDiskFullAreCounted) {
  signal(SIGXFSZ, SIG_IGN);
  constexpr int kInterfaceCount = 256;
  std::string interfaces;
  for (int i = 0; i < kInterfaceCount; ++i) {
    const std::string name = absl::StrCat("eth", i);
    fs::create_directories(path_ / "root/sys/class/net" / name / "device");
    absl::StrAppend(&interfaces, name, ": 1000 1 0 0 0 0 0 0 500 1 0 0 0 0 0 0\n");
  }
  Write("net/dev", interfaces);
  Open(RealClock::Get(), absl::Milliseconds(10));
  ASSERT_TRUE(VisitForTicks(3));
  rlimit before{};
  getrlimit(RLIMIT_FSIZE, &before);
  const rlimit full{64, before.rlim_max};
  setrlimit(RLIMIT_FSIZE, &full);
  ASSERT_TRUE(VisitUntil([this] { return sampler_->served().builder().full(); }));
  const absl::Time full_since = absl::Now();
  VisitUntil([&] { return absl::Now() - full_since > absl::Seconds(1); });
  const std::size_t taken = ticks_.size();
  EXPECT_THAT(Losses(pb::GAP_CAUSE_SPOOL_FULL), IsEmpty());
  setrlimit(RLIMIT_FSIZE, &before);
  ASSERT_TRUE(VisitUntil([this] { return !Losses(pb::GAP_CAUSE_SPOOL_FULL).empty(); }));
  Close();
  const auto told = Losses(pb::GAP_CAUSE_SPOOL_FULL);
  EXPECT_EQ(told[0].metric_group(), "");
  // In a tick of this machine: five of memory, five pressures, three of the disk, two of
  // each interface and of all, shared_with.
  constexpr std::size_t kTickSamples = 5 + 5 + 3 + 2 * kInterfaceCount + 2 + 1;
  // What waited is not lost.
  EXPECT_GE(ticks_.size(), taken + 32768 / kTickSamples);
  EXPECT_GE(told[0].sample_count(), kTickSamples);
  EXPECT_LE(told[0].first_time_us(), told[0].last_time_us());
  // Nothing was stored twice, and none that is told as lost was stored.
  std::sort(ticks_.begin(), ticks_.end());
  EXPECT_EQ(std::adjacent_find(ticks_.begin(), ticks_.end()), ticks_.end());
  // A device that answers late has a part of a tick that was there before, which is lost alone.
  const std::int64_t full_us = std::max(told[0].first_time_us(), absl::ToUnixMicros(full_since));
  EXPECT_LT(full_us, told[0].last_time_us());
  EXPECT_TRUE(std::none_of(ticks_.begin(), ticks_.end(), [&](std::int64_t tick_us) {
    return tick_us >= full_us && tick_us <= told[0].last_time_us();
  }));
}

// Every file of this process is full while it lives.
class FullDisk {
 public:
  FullDisk() {
    signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit full{64, before_.rlim_max};
    setrlimit(RLIMIT_FSIZE, &full);
  }
  ~FullDisk() { setrlimit(RLIMIT_FSIZE, &before_); }

 private:
  rlimit before_{};
};

// Its last ticks and what it counts as missing are not left in memory by a writer that says it is
// complete.
TEST_F(SamplerWriterTest, OneThatEndsOnAFullDiskClosesOnceThereIsRoom) {
  fs::remove(File("loadavg"));  // is told of while there is room
  Open(RealClock::Get());
  ASSERT_TRUE(VisitForTicks(3));
  Write("stat", "cpu  nonsense\n");
  const std::size_t taken = ticks_.size();
  std::int64_t full_us = 0;
  {
    const FullDisk full;
    const absl::Time until = absl::Now() + 10 * kInterval;
    VisitUntil([&] { return absl::Now() > until; });
    Close();
    full_us = absl::ToUnixMicros(absl::Now());
    Visit();
    Visit();
    EXPECT_TRUE(sampler_->closing());
    EXPECT_EQ(close_count_, 0);
    EXPECT_FALSE(SamplerWriter::IsClosed(sampler_->served().directory()));
    EXPECT_EQ(ticks_.size(), taken);
  }
  Visit();
  EXPECT_GT(ticks_.size(), taken + 3);
  EXPECT_LE(ticks_.back(), full_us);
  EXPECT_GE(SamplesOf(Losses(pb::GAP_CAUSE_SENSOR_FAILED)), 3u);
  EXPECT_TRUE(SamplerWriter::IsClosed(sampler_->served().directory()));
  EXPECT_EQ(close_count_, 1);
}

// Until it can leave nothing behind, the machine is sampled for the attempt before.
TEST_F(SamplerWriterTest, OneThatCannotBeSealedIsNotSucceeded) {
  Open(RealClock::Get());
  ASSERT_TRUE(VisitForTicks(3));
  fs::create_directories(path_ / "next");
  const auto succeed = [this] {
    WriterIdentity identity;
    identity.writer = Uuid::Random();
    identity.trial = "t";
    identity.is_sampler = true;
    return sampler_->Succeed(FileDescriptor(open((path_ / "next").c_str(), O_RDONLY | O_DIRECTORY)),
                             identity, {},
                             {sender_, RealClock::Get(), AgentFace(), Spool::Options()});
  };
  const std::size_t taken = ticks_.size();
  {
    const FullDisk full;
    const absl::Time until = absl::Now() + 10 * kInterval;
    VisitUntil([&] { return absl::Now() > until; });
    const auto next = succeed();
    EXPECT_EQ(next.status().code(), absl::StatusCode::kResourceExhausted) << next.status();
    Visit();
    EXPECT_FALSE(sampler_->closing());
    EXPECT_EQ(close_count_, 0);
  }
  auto next = succeed();
  ASSERT_TRUE(next.ok()) << next.status();
  Talk();
  EXPECT_GT(ticks_.size(), taken + 3);
  EXPECT_EQ(close_count_, 1);
  sampler_ = *std::move(next);
  ASSERT_TRUE(VisitForTicks(3));
  // No tick is told by both.
  std::sort(ticks_.begin(), ticks_.end());
  EXPECT_EQ(std::adjacent_find(ticks_.begin(), ticks_.end()), ticks_.end());
}

}  // namespace
}  // namespace stepwell::agent
