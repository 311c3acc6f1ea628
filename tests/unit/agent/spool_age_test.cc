// What no master took for too long is given up (--spool-age-max): of what, and when not.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <memory>

#include "client/agent/outbound_writer.h"
#include "client/agent/spool.h"

namespace stepwell::agent {
namespace {

namespace fs = std::filesystem;

// A wall clock that somebody sets; the monotonic one goes on.
class SetClock final : public Clock {
 public:
  absl::Time Now() const override { return steady_.Now() + wall_; }
  absl::Duration Monotonic() const override { return steady_.Monotonic(); }
  void Advance(absl::Duration by) { steady_.Advance(by); }
  void StepWall(absl::Duration by) { wall_ += by; }

 private:
  FakeClock steady_;
  absl::Duration wall_;
};

class SpoolAgeTest : public ::testing::Test {
 protected:
  static constexpr std::uint64_t kFrames = 100;

  void SetUp() override {
    char pattern[] = "/tmp/stepwell-spool-age-test-XXXXXX";
    ASSERT_NE(mkdtemp(pattern), nullptr);
    path_ = pattern;
    options_.writer = Uuid::Random();
    options_.segment_bytes_max = 4096;
    options_.unacked_age_max = absl::Hours(24);
  }
  void TearDown() override { fs::remove_all(path_); }

  std::unique_ptr<Spool> Open() {
    auto spool =
        Spool::Open(FileDescriptor(open(path_.c_str(), O_RDONLY | O_DIRECTORY)), options_, clock_);
    EXPECT_TRUE(spool.ok()) << spool.status();
    return *std::move(spool);
  }
  // Of three samples each, in several segments.
  void Fill(Spool& spool) {
    for (std::uint64_t number = 1; number <= kFrames; ++number) {
      const Spool::Sealed sealed{1000, {3, 1, 2}, std::string(200, 'x')};
      ASSERT_TRUE(spool.AppendFrames({&sealed, 1}, {}).ok());
    }
    ASSERT_GT(Segments().size(), 2U);
  }
  // As an agent finds them that starts so much later.
  void SetAge(const fs::path& segment, absl::Duration age) {
    const timespec written = absl::ToTimespec(clock_.Now() - age);
    const timespec times[] = {written, written};
    ASSERT_EQ(utimensat(AT_FDCWD, segment.c_str(), times, 0), 0);
  }
  static bool IsFrame(Spool& spool, std::uint64_t sequence) {
    const auto item = spool.Read(sequence);
    EXPECT_TRUE(item.ok()) << item.status();
    return item.ok() && std::holds_alternative<Frame>(*item);
  }
  std::vector<fs::path> Segments() const {
    std::vector<fs::path> segments;
    for (const auto& entry : fs::directory_iterator(path_)) segments.push_back(entry.path());
    std::sort(segments.begin(), segments.end());
    return segments;
  }

  std::string path_;
  Spool::Options options_;
  SetClock clock_;
};

TEST_F(SpoolAgeTest, WhatNobodyTookForTooLongBecomesAGapButNotAtOnce) {
  Fill(*Open());
  const fs::path oldest = Segments().front();
  for (const fs::path& segment : Segments()) SetAge(segment, absl::Hours(23));
  SetAge(oldest, absl::Hours(25));
  auto spool = Open();
  ASSERT_TRUE(spool->Trim().ok());
  EXPECT_TRUE(IsFrame(*spool, 1)) << "a master may still take it";
  clock_.Advance(absl::Minutes(11));
  ASSERT_TRUE(spool->Trim().ok());
  const GapSpan first = std::get<GapSpan>(*spool->Read(1));
  EXPECT_EQ(first.cause, pb::GAP_CAUSE_SPOOL_FULL);
  EXPECT_EQ(first.reason, "frames that no master took were older than the spool's bound");
  EXPECT_EQ(first.span.sample_count, 3 * first.last_sequence);
  EXPECT_TRUE(IsFrame(*spool, first.last_sequence + 1));
  EXPECT_FALSE(fs::exists(oldest));
  // All but the newest, which the first gap began, and whose head the next agent goes on from.
  clock_.Advance(absl::Hours(24));
  ASSERT_TRUE(spool->Trim().ok());
  EXPECT_EQ(Segments().size(), 1U);
  ASSERT_FALSE(IsFrame(*spool, kFrames));
  EXPECT_EQ(std::get<GapSpan>(*spool->Read(kFrames)).span.sample_count, 3 * kFrames);
}

// Of a spool that was set back, and of which an agent before this one sealed what it sent nobody.
TEST_F(SpoolAgeTest, AgentRule03_WhatWasGivenUpIsStillComparedWithTheMasters) {
  for (const bool is_same : {true, false}) {
    SCOPED_TRACE(is_same);
    TearDown();
    SetUp();
    Fill(*Open());
    for (const fs::path& segment : Segments()) SetAge(segment, absl::Hours(25));
    std::shared_ptr<Spool> spool = Open();
    const std::uint32_t crc32c = spool->ReadChecksum(5).value_or(0);
    clock_.Advance(absl::Minutes(11));
    ASSERT_TRUE(spool->Trim().ok());
    ASSERT_FALSE(IsFrame(*spool, 5));
    OutboundWriter writer({}, AgentFace(), spool);
    writer.OnConnected();
    ASSERT_TRUE(writer.Next(clock_.Monotonic())->has_open());
    pb::StreamChunksResponse answer;
    answer.mutable_opened()->set_committed_sequence(5);
    answer.mutable_opened()->set_committed_crc32c(is_same ? crc32c : crc32c + 1);
    ASSERT_TRUE(writer.OnMessage(answer, clock_.Monotonic()));
    EXPECT_EQ(writer.status().retired, !is_same);
  }
}

// What an earlier one gave up, and may have sent, can be compared with nothing.
TEST_F(SpoolAgeTest, AgentRule03_WhatAnEarlierAgentGaveUpRetiresTheWriterOfAMasterThatHasIt) {
  Fill(*Open());
  for (const fs::path& segment : Segments()) SetAge(segment, absl::Hours(25));
  std::shared_ptr<Spool> spool = Open();
  const std::uint32_t crc32c = spool->ReadChecksum(5).value_or(0);
  clock_.Advance(absl::Minutes(11));
  ASSERT_TRUE(spool->Trim().ok());
  spool.reset();
  spool = Open();
  ASSERT_FALSE(IsFrame(*spool, 5));
  OutboundWriter writer({}, AgentFace(), spool);
  writer.OnConnected();
  ASSERT_TRUE(writer.Next(clock_.Monotonic())->has_open());
  pb::StreamChunksResponse answer;
  answer.mutable_opened()->set_committed_sequence(5);
  answer.mutable_opened()->set_committed_crc32c(crc32c);
  ASSERT_TRUE(writer.OnMessage(answer, clock_.Monotonic()));
  EXPECT_TRUE(writer.status().retired);
}

// A backlog of weeks takes a master hours.
TEST_F(SpoolAgeTest, WhatAMasterIsTakingIsNotGivenUpHoweverOldItIs) {
  Fill(*Open());
  for (const fs::path& segment : Segments()) SetAge(segment, absl::Hours(31 * 24));
  auto spool = Open();
  for (std::uint64_t acked = 1; acked <= 50; ++acked) {
    clock_.Advance(absl::Minutes(9));
    spool->SetAcked({acked, 1});
    ASSERT_TRUE(spool->Trim().ok());
    ASSERT_TRUE(IsFrame(*spool, acked + 1)) << acked;
  }
  // Opened again and again is not taken.
  for (int i = 0; i < 2; ++i) {
    clock_.Advance(absl::Minutes(6));
    spool->SetAcked({50, 2});
    ASSERT_TRUE(spool->Trim().ok());
    EXPECT_EQ(IsFrame(*spool, 51), i == 0);
  }
}

// A machine without a battery for its clock starts in 1970.
TEST_F(SpoolAgeTest, ASetClockMakesNothingOldThatThisAgentWrote) {
  for (const absl::Duration step : {absl::Hours(50 * 365 * 24), absl::Hours(-50 * 365 * 24)}) {
    SCOPED_TRACE(step);
    auto spool = Open();
    Fill(*spool);
    clock_.Advance(absl::Hours(1));
    clock_.StepWall(step);
    const std::size_t count = Segments().size();
    ASSERT_TRUE(spool->Trim().ok());
    EXPECT_EQ(Segments().size(), count);
    // It grows old by the other clock.
    clock_.Advance(absl::Hours(24));
    ASSERT_TRUE(spool->Trim().ok());
    EXPECT_EQ(Segments().size(), 1U);
    spool.reset();
    fs::remove(Segments().front());
  }
}

}  // namespace
}  // namespace stepwell::agent
