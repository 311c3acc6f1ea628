#include "client/agent/spool.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <random>

#include "base/crc32c.h"
#include "tests/unit/agent/sync_hooks.h"
#include "tests/unit/agent/test_seed.h"

namespace stepwell::agent {
namespace {

namespace fs = std::filesystem;

class SpoolTest : public ::testing::Test {
 protected:
  void SetUp() override {
    char pattern[] = "/tmp/stepwell-spool-test-XXXXXX";
    ASSERT_NE(mkdtemp(pattern), nullptr);
    path_ = pattern;
    options_.writer = Uuid::Random();
    options_.segment_bytes_max = 4096;
  }
  void TearDown() override { fs::remove_all(path_); }

  std::unique_ptr<Spool> Open() {
    auto spool =
        Spool::Open(FileDescriptor(open(path_.c_str(), O_RDONLY | O_DIRECTORY)), options_, clock_);
    EXPECT_TRUE(spool.ok()) << spool.status();
    return *std::move(spool);
  }
  static std::string BodyOf(std::uint64_t number) {
    return "frame " + std::to_string(number) + std::string(200, 'x');
  }
  static std::int64_t TimeOf(std::uint64_t number) { return static_cast<std::int64_t>(number) + 5; }
  static absl::Status Append(Spool& spool, std::uint64_t number, std::uint64_t samples = 3) {
    const Spool::Sealed sealed{
        1000, {samples, static_cast<std::int64_t>(number), TimeOf(number)}, BodyOf(number)};
    Checkpoint checkpoint;
    checkpoint.rings[0].tail = number * 10;
    return spool.AppendFrames({&sealed, 1}, checkpoint);
  }
  static void Fill(Spool& spool, std::uint64_t first, std::uint64_t last) {
    for (std::uint64_t number = first; number <= last; ++number) {
      ASSERT_TRUE(Append(spool, number).ok());
    }
  }
  static std::string Text(Spool& spool, std::uint64_t sequence) {
    const absl::StatusOr<SpoolItem> item = spool.Read(sequence);
    if (!item.ok()) return std::string(item.status().message());
    if (const Frame* frame = std::get_if<Frame>(&*item)) {
      EXPECT_EQ(frame->crc32c, ChunkCrc32c(sequence, frame->sealed_time_us, frame->body));
      return frame->body == BodyOf(sequence) ? "frame" : "other bytes";
    }
    const GapSpan& gap = std::get<GapSpan>(*item);
    return pb::GapCause_Name(gap.cause).substr(10) + " " + std::to_string(gap.first_sequence) +
           "-" + std::to_string(gap.last_sequence) + " n=" + std::to_string(gap.span.sample_count);
  }
  std::vector<fs::path> Segments() const {
    std::vector<fs::path> segments;
    for (const auto& entry : fs::directory_iterator(path_)) segments.push_back(entry.path());
    std::sort(segments.begin(), segments.end());
    return segments;
  }

  std::string path_;
  Spool::Options options_;
  FakeClock clock_;
};

TEST_F(SpoolTest, AgentRule02_GivesSequencesAndReadsThemBackAcrossRestarts) {
  {
    auto spool = Open();
    ASSERT_TRUE(spool->AppendDefinition("definition one").ok());
    Fill(*spool, 1, 40);
    ASSERT_TRUE(spool->AppendDefinition("definition two").ok());
    spool->SetAcked({7, 3});
    ASSERT_TRUE(spool->Sync().ok());
  }
  EXPECT_GT(Segments().size(), 2u);
  options_.writer = Uuid::Random();  // the one on disk counts
  auto spool = Open();
  EXPECT_NE(spool->writer(), options_.writer);
  EXPECT_EQ(spool->last_sequence(), 40u);
  EXPECT_EQ(spool->acked().sequence, 7u);
  EXPECT_EQ(spool->acked().generation, 3u);
  EXPECT_EQ(spool->checkpoint().rings.at(0).tail, 400u);
  EXPECT_THAT(spool->definitions(), ::testing::ElementsAre("definition one", "definition two"));
  for (std::uint64_t sequence = 1; sequence <= 40; ++sequence) {
    EXPECT_EQ(Text(*spool, sequence), "frame");
  }
  Fill(*spool, 41, 41);
  EXPECT_EQ(Text(*spool, 41), "frame");
  EXPECT_EQ(spool->Read(42).status().code(), absl::StatusCode::kOutOfRange);
}

TEST_F(SpoolTest, AgentRule02_CutsATornTailAtEveryByte) {
  {
    auto spool = Open();
    Fill(*spool, 1, 3);
  }
  const fs::path segment = Segments().back();
  std::string bytes;
  {
    std::ifstream file(segment, std::ios::binary);
    bytes.assign(std::istreambuf_iterator<char>(file), {});
  }
  std::size_t third_offset = 0;
  for (std::size_t offset = 0; offset < bytes.size();) {
    third_offset = offset;
    offset = ParseRecord(bytes, offset)->end;
  }
  for (std::size_t cut = third_offset; cut < bytes.size(); ++cut) {
    std::ofstream(segment, std::ios::binary | std::ios::trunc) << bytes.substr(0, cut);
    auto spool = Open();
    ASSERT_EQ(spool->last_sequence(), 2u) << cut;
    ASSERT_EQ(spool->checkpoint().rings.at(0).tail, 20u);
    ASSERT_EQ(fs::file_size(segment), third_offset);
  }
  auto spool = Open();
  Fill(*spool, 3, 3);
  EXPECT_EQ(Text(*spool, 3), "frame");
}

TEST_F(SpoolTest, AGroupOfFramesCountsAsAWhole) {
  {
    auto spool = Open();
    Fill(*spool, 1, 1);
    std::vector<Spool::Sealed> group;
    for (std::uint64_t number = 2; number <= 4; ++number) {
      group.push_back({1000, {1, 1, 1}, BodyOf(number)});
    }
    Checkpoint checkpoint;
    checkpoint.rings[0].tail = 99;
    ASSERT_TRUE(spool->AppendFrames(group, checkpoint).ok());
    EXPECT_EQ(spool->last_sequence(), 4u);
  }
  {
    auto spool = Open();
    EXPECT_EQ(spool->last_sequence(), 4u);
    EXPECT_EQ(spool->checkpoint().rings.at(0).tail, 99u);
  }
  fs::resize_file(Segments().back(), fs::file_size(Segments().back()) - 1);
  auto spool = Open();
  EXPECT_EQ(spool->last_sequence(), 1u);
  EXPECT_EQ(spool->checkpoint().rings.at(0).tail, 10u);
  Fill(*spool, 2, 2);
  EXPECT_EQ(Text(*spool, 2), "frame");
}

// Any one bit, anywhere: what is read is either the true frame or a gap that covers it.
TEST_F(SpoolTest, AFlippedBitCostsOnlyItsRecordAndIsTold) {
  std::mt19937_64 random(TestSeed());
  {
    auto spool = Open();
    ASSERT_TRUE(spool->AppendDefinition("definition").ok());
    Fill(*spool, 1, 30);
  }
  for (int round = 0; round < 150; ++round) {
    const std::vector<fs::path> segments = Segments();
    const fs::path& segment = segments[random() % segments.size()];
    const auto offset = random() % fs::file_size(segment);
    const bool at_start = round % 2 == 0;  // found at start, or under a running agent
    std::unique_ptr<Spool> spool;
    if (!at_start) spool = Open();
    std::fstream file(segment, std::ios::in | std::ios::out | std::ios::binary);
    file.seekg(static_cast<std::streamoff>(offset));
    const char before = static_cast<char>(file.get());
    file.seekp(static_cast<std::streamoff>(offset));
    file.put(static_cast<char>(before ^ (1 << (random() % 8))));
    file.flush();
    if (at_start) {
      // The last segment's damaged end is cut as torn: look at a copy.
      const std::string kept = path_;
      path_ += "-copy";
      fs::copy(kept, path_);
      spool = Open();
      path_ = kept;
    }
    std::uint64_t bad_count = 0;
    for (std::uint64_t sequence = 1; sequence <= spool->last_sequence(); ++sequence) {
      const std::string text = Text(*spool, sequence);
      if (text == "frame") continue;
      ++bad_count;
      ASSERT_EQ(text, "SPOOL_CORRUPT " + std::to_string(sequence) + "-" + std::to_string(sequence) +
                          " n=0");
    }
    ASSERT_LE(bad_count, 1u);
    ASSERT_GE(spool->last_sequence() + 1, 30u);
    spool = nullptr;
    if (at_start) fs::remove_all(path_ + "-copy");
    file.seekp(static_cast<std::streamoff>(offset));
    file.put(before);
  }
}

TEST_F(SpoolTest, PastItsBoundTheOldestUnackedSegmentBecomesAGap) {
  options_.segment_bytes_max = 64 << 10;
  options_.bytes_max = 256 << 10;
  auto spool = Open();
  std::uint64_t number = 0;
  while (spool->bytes() < 400 << 10) {
    ASSERT_TRUE(Append(*spool, ++number).ok());
    if (number % 100 == 0) spool->SetAcked({10, 1});
    ASSERT_TRUE(spool->Trim().ok());
    if (number > 5000) break;
  }
  EXPECT_LE(spool->bytes(), (256 + 64) << 10);
  EXPECT_EQ(Text(*spool, number), "frame");
  // All unacked sequences are answered: first one gap with every lost sample counted, then frames.
  const absl::StatusOr<SpoolItem> item = spool->Read(11);
  ASSERT_TRUE(item.ok());
  const GapSpan gap = std::get<GapSpan>(*item);
  EXPECT_EQ(gap.cause, pb::GAP_CAUSE_SPOOL_FULL);
  EXPECT_EQ(gap.first_sequence, 11u);
  EXPECT_EQ(gap.span.sample_count, (gap.last_sequence - 10) * 3);
  EXPECT_EQ(Text(*spool, gap.last_sequence + 1), "frame");
  // The acks of some that were on their way come now: the master has them, and they are not missing.
  spool->SetAcked({15, 1});
  const absl::StatusOr<SpoolItem> rest = spool->Read(16);
  ASSERT_TRUE(rest.ok());
  EXPECT_EQ(std::get<GapSpan>(*rest).span.sample_count, (gap.last_sequence - 15) * 3);
  spool->SetAcked({10, 1});
  // And the same again after a restart.
  spool = nullptr;
  spool = Open();
  const absl::StatusOr<SpoolItem> again = spool->Read(11);
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(std::get<GapSpan>(*again).last_sequence, gap.last_sequence);
  EXPECT_EQ(std::get<GapSpan>(*again).span.sample_count, gap.span.sample_count);
}

// Many series, a small bound: each segment's head is larger than what it may hold.
TEST_F(SpoolTest, ABoundSmallerThanTwoHeadsKeepsTheNewestFramesAndComesToAnEnd) {
  options_.segment_bytes_max = 16 << 20;
  options_.bytes_max = 116 << 10;
  auto spool = Open();
  for (int i = 0; i < 700; ++i) {
    const std::string definition = std::to_string(i) + std::string(100, 'd');
    ASSERT_TRUE(spool->AppendDefinition(definition).ok());
    ASSERT_TRUE(spool->Trim().ok());
  }
  constexpr std::uint64_t kFrames = 2000;
  for (std::uint64_t number = 1; number <= kFrames; ++number) {
    ASSERT_TRUE(Append(*spool, number).ok());
    ASSERT_TRUE(spool->Trim().ok());
    ASSERT_EQ(Text(*spool, number), "frame");
  }
  // Two heads, and what each holds at least.
  EXPECT_LE(spool->bytes(), 2 * (90 + 64) << 10);
  // A segment for some 64 KiB of frames, not for each.
  const std::string newest = Segments().back().filename();
  EXPECT_LE(std::stoi(newest), 20) << newest;
  spool = nullptr;
  spool = Open();
  EXPECT_EQ(spool->definitions().size(), 700u);
  const GapSpan gap = std::get<GapSpan>(*spool->Read(1));
  EXPECT_EQ(gap.cause, pb::GAP_CAUSE_SPOOL_FULL);
  EXPECT_EQ(gap.span.sample_count, gap.last_sequence * 3);
  for (std::uint64_t number = gap.last_sequence + 1; number <= kFrames; ++number) {
    ASSERT_EQ(Text(*spool, number), "frame");
  }
  // The first thing that a next agent does.
  ASSERT_TRUE(spool->Trim().ok());
  EXPECT_EQ(Text(*spool, kFrames), "frame");
}

// Only its head tells the next agent where the sequences and the rings go on.
TEST_F(SpoolTest, AgentRule02_TheNewestSegmentStaysHoweverOld) {
  {
    auto spool = Open();
    ASSERT_TRUE(spool->AppendDefinition("definition").ok());
    Fill(*spool, 1, 100);
    spool->SetAcked({100, 1});
    ASSERT_TRUE(spool->Sync().ok());
  }
  auto spool = Open();
  clock_.Advance(absl::Hours(1));
  ASSERT_TRUE(spool->Trim().ok());
  spool = nullptr;
  spool = Open();
  EXPECT_EQ(spool->last_sequence(), 100u);
  EXPECT_EQ(spool->checkpoint().rings.at(0).tail, 1000u);
  EXPECT_EQ(spool->definitions().size(), 1u);
}

TEST_F(SpoolTest, KeepsSoManyBytesOfTheAckedTailAndFreesTheOldest) {
  options_.acked_bytes_max = 2 * options_.segment_bytes_max;
  auto spool = Open();
  Fill(*spool, 1, 100);
  spool->SetAcked({95, 1});
  ASSERT_TRUE(spool->Trim().ok());
  EXPECT_EQ(Text(*spool, 1).substr(0, 11), "RESTORED 1-");
  // Two segments' worth is left, and what is not acked.
  EXPECT_EQ(Text(*spool, 75), "frame");
  EXPECT_EQ(Text(*spool, 96), "frame");
}

TEST_F(SpoolTest, KeepsTheAckedTailForAWhileThenFreesIt) {
  auto spool = Open();
  Fill(*spool, 1, 100);
  spool->SetAcked({95, 1});
  ASSERT_TRUE(spool->Trim().ok());
  EXPECT_EQ(Text(*spool, 1), "frame");
  clock_.Advance(absl::Minutes(6));
  ASSERT_TRUE(spool->Trim().ok());
  EXPECT_EQ(Text(*spool, 96), "frame");
  // What a master that came back older asks for is answered with the gap that it is.
  const std::string text = Text(*spool, 1);
  EXPECT_EQ(text.substr(0, 11), "RESTORED 1-") << text;
  // With the times of what it held; the count only where all of it is gone.
  const GapSpan whole = std::get<GapSpan>(*spool->Read(1));
  EXPECT_EQ(whole.span.first_time_us, 1);
  EXPECT_EQ(whole.span.last_time_us, TimeOf(whole.last_sequence));
  EXPECT_EQ(whole.span.sample_count, 3 * whole.last_sequence);
  const GapSpan part = std::get<GapSpan>(*spool->Read(2));
  EXPECT_GE(part.span.first_time_us, 1);
  EXPECT_EQ(part.span.last_time_us, whole.span.last_time_us);
  EXPECT_EQ(part.span.sample_count, 0u);
  // Another agent did not see them go.
  spool = nullptr;
  spool = Open();
  EXPECT_EQ(std::get<GapSpan>(*spool->Read(1)).span.first_time_us, 0);
}

TEST_F(SpoolTest, AgentRule02_WithSyncBeforeSendOnlyWhatIsOnTheDiskMayBeSent) {
  options_.sync_before_send = true;
  auto spool = Open();
  Fill(*spool, 1, 3);
  EXPECT_EQ(spool->last_sequence(), 3u);
  EXPECT_EQ(spool->sendable_sequence(), 0u);
  ASSERT_TRUE(spool->Sync().ok());
  EXPECT_EQ(spool->sendable_sequence(), 3u);
  Fill(*spool, 4, 60);  // through several segments
  EXPECT_EQ(spool->sendable_sequence(), 3u);
  ASSERT_TRUE(spool->Sync().ok());
  EXPECT_EQ(spool->sendable_sequence(), 60u);
  Fill(*spool, 61, 61);
  // What an agent that died left unsynced is synced before it counts.
  spool = Open();
  EXPECT_EQ(spool->sendable_sequence(), 61u);
  options_.sync_before_send = false;
  spool = Open();
  Fill(*spool, 62, 62);
  EXPECT_EQ(spool->sendable_sequence(), 62u);
}

TEST_F(SpoolTest, AgentRule02_AnAckedMarkWaitsForTheNextFramesSync) {
  auto spool = Open();
  Fill(*spool, 1, 3);
  ASSERT_TRUE(spool->Sync().ok());
  const int before = fdatasync_count;
  spool->SetAcked({2, 1});
  ASSERT_TRUE(spool->Sync().ok());
  EXPECT_EQ(fdatasync_count, before)
      << "frames told twice are stored once: a mark alone is worth no sync";
  Fill(*spool, 4, 4);
  ASSERT_TRUE(spool->Sync().ok());
  EXPECT_EQ(fdatasync_count, before + 1);
  // It is written all the same: a crash of the process loses nothing.
  spool->SetAcked({3, 1});
  ASSERT_TRUE(spool->Sync().ok());
  EXPECT_EQ(fdatasync_count, before + 1);
  spool = Open();
  EXPECT_EQ(spool->acked().sequence, 3u);
}

TEST_F(SpoolTest, AgentRule02_AMarkIsOnTheDiskBeforeTheSegmentThatGoesForIt) {
  auto spool = Open();
  Fill(*spool, 1, 100);
  ASSERT_TRUE(spool->Sync().ok());
  spool->SetAcked({95, 1});
  clock_.Advance(absl::Minutes(6));
  ASSERT_TRUE(spool->Sync().ok());
  const int before = fdatasync_count;
  ASSERT_TRUE(spool->Trim().ok());
  EXPECT_EQ(Text(*spool, 1).substr(0, 8), "RESTORED");
  EXPECT_EQ(fdatasync_count, before + 1);
}

TEST_F(SpoolTest, AgentRule02_AFullDiskGivesNoSequenceAndLosesNothing) {
  signal(SIGXFSZ, SIG_IGN);
  auto spool = Open();
  Fill(*spool, 1, 2);
  rlimit before{};
  getrlimit(RLIMIT_FSIZE, &before);
  const rlimit full{static_cast<rlim_t>(fs::file_size(Segments().back()) + 100), before.rlim_max};
  setrlimit(RLIMIT_FSIZE, &full);
  const absl::Status refused = Append(*spool, 3);
  setrlimit(RLIMIT_FSIZE, &before);
  EXPECT_EQ(refused.code(), absl::StatusCode::kResourceExhausted) << refused;
  EXPECT_EQ(spool->last_sequence(), 2u);
  Fill(*spool, 3, 4);
  spool = nullptr;
  spool = Open();
  for (std::uint64_t sequence = 1; sequence <= 4; ++sequence) {
    EXPECT_EQ(Text(*spool, sequence), "frame");
  }
}

TEST_F(SpoolTest, ADeletedDirectoryIsAnErrorAndWhatIsOpenCanStillBeSent) {
  options_.segment_bytes_max = 64 << 10;
  auto spool = Open();
  Fill(*spool, 1, 5);
  fs::remove_all(path_);
  EXPECT_EQ(Text(*spool, 3), "frame");
  absl::Status status;
  for (std::uint64_t number = 6; number < 1000 && status.ok(); ++number) {
    status = Append(*spool, number);
  }
  EXPECT_FALSE(status.ok());
}

TEST_F(SpoolTest, AgentRule03_KnowsThatItLostWhatWasAcked) {
  {
    auto spool = Open();
    Fill(*spool, 1, 3);
    spool->SetAcked({3, 1});
    ASSERT_TRUE(spool->Sync().ok());
    Fill(*spool, 4, 40);
    spool->SetAcked({40, 1});
    ASSERT_TRUE(spool->Sync().ok());
  }
  // The newest segment keeps only its head, which tells of an acked mark.
  auto spool = Open();
  EXPECT_FALSE(spool->lost_acked());
  spool = nullptr;
  const std::vector<fs::path> segments = Segments();
  const fs::path last = segments.back();
  for (const fs::path& segment : segments) {
    if (segment != last) fs::remove(segment);
  }
  std::string bytes;
  {
    std::ifstream file(last, std::ios::binary);
    bytes.assign(std::istreambuf_iterator<char>(file), {});
  }
  std::string kept;
  for (std::size_t offset = 0; offset < bytes.size();) {
    const auto record = ParseRecord(bytes, offset);
    ASSERT_TRUE(record.has_value());
    if (record->type != RecordType::kFrame) kept += bytes.substr(offset, record->end - offset);
    offset = record->end;
  }
  std::ofstream(last, std::ios::binary | std::ios::trunc) << kept;
  EXPECT_TRUE(Open()->lost_acked());
}

}  // namespace
}  // namespace stepwell::agent
