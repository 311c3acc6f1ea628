// Segment files that somebody exchanged, or made up, while no agent ran.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "client/agent/byte_buffer.h"
#include "client/agent/spool.h"

namespace stepwell::agent {
namespace {

namespace fs = std::filesystem;

class SpoolSegmentsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    char pattern[] = "/tmp/stepwell-segments-test-XXXXXX";
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
  static std::string BodyOf(const Spool& spool, std::uint64_t number) {
    return spool.writer().ToText() + std::to_string(number) + std::string(200, 'x');
  }
  // Ten events of ring 0 in each frame.
  static void Fill(Spool& spool, std::uint64_t first, std::uint64_t last) {
    for (std::uint64_t number = first; number <= last; ++number) {
      const Spool::Sealed sealed{1000, {3, 1, 2}, BodyOf(spool, number)};
      Checkpoint checkpoint;
      checkpoint.rings[0].tail = number * 10;
      ASSERT_TRUE(spool.AppendFrames({&sealed, 1}, checkpoint).ok());
    }
  }
  // "frame" = this writer's own of that number.
  static std::string Kind(Spool& spool, std::uint64_t sequence) {
    const absl::StatusOr<SpoolItem> item = spool.Read(sequence);
    if (!item.ok()) return std::string(item.status().message());
    const Frame* frame = std::get_if<Frame>(&*item);
    if (frame == nullptr) return "gap";
    return frame->body == BodyOf(spool, sequence) ? "frame" : "other bytes";
  }
  std::vector<fs::path> Segments() const {
    std::vector<fs::path> segments;
    for (const auto& entry : fs::directory_iterator(path_)) segments.push_back(entry.path());
    std::sort(segments.begin(), segments.end());
    return segments;
  }

  static std::string BytesOf(const fs::path& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  static void Write(const fs::path& path, const std::string& bytes) {
    std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
  }
  // How a segment of this writer begins.
  std::string Start() const {
    SegmentStart start;
    start.writer = options_.writer;
    return EncodeRecord(RecordType::kSegmentStart, start.Encode());
  }
  // Headers, and nothing else: each claims `payload_bytes` behind it, with a checksum that is wrong.
  static std::string FalseRecords(std::uint32_t payload_bytes, int count) {
    ByteWriter header;
    header.Bytes("SWRC");
    header.U32(payload_bytes);
    header.U32(0);
    header.U32(static_cast<std::uint32_t>(RecordType::kFrame));
    const std::string one = header.Take();
    std::string bytes;
    for (int i = 0; i < count; ++i) bytes += one;
    return bytes;
  }

  std::string path_;
  Spool::Options options_;
  FakeClock clock_;
};

TEST_F(SpoolSegmentsTest, AgentRule02_SegmentsThatChangedPlacesAreReadInTheirOwnOrder) {
  {
    auto spool = Open();
    Fill(*spool, 1, 100);
  }
  const std::vector<fs::path> segments = Segments();
  ASSERT_GE(segments.size(), 4u);
  fs::rename(segments[1], path_ + "/kept");
  fs::rename(segments.back(), segments[1]);
  fs::rename(path_ + "/kept", segments.back());
  auto spool = Open();
  EXPECT_EQ(spool->last_sequence(), 100u);
  EXPECT_EQ(spool->checkpoint().rings.at(0).tail, 1000u);
  Fill(*spool, 101, 130);
  spool = nullptr;
  spool = Open();
  for (std::uint64_t sequence = 1; sequence <= 130; ++sequence) {
    EXPECT_EQ(Kind(*spool, sequence), "frame") << sequence;
  }
}

// How it would fail: the other's frames are sent as this writer's, and its checkpoint moves this writer's rings.
TEST_F(SpoolSegmentsTest, AgentRule02_ASegmentOfAnotherWriterIsNotTaken) {
  const std::string path = path_;
  const Uuid writer = options_.writer;
  {
    auto spool = Open();
    Fill(*spool, 1, 100);
  }
  const std::vector<fs::path> segments = Segments();
  ASSERT_GE(segments.size(), 4u);
  const std::string other = path + "-other";
  fs::create_directory(other);
  {
    path_ = other;
    options_.writer = Uuid::Random();
    auto spool = Open();
    Fill(*spool, 1, 200);
  }
  const fs::path foreign = Segments().back();
  for (const fs::path& place : {segments.front(), segments[1], segments.back()}) {
    SCOPED_TRACE(place);
    fs::remove_all(other + "-copy");
    fs::copy(path, other + "-copy");
    path_ = other + "-copy";
    fs::copy_file(foreign, fs::path(path_) / place.filename(),
                  fs::copy_options::overwrite_existing);
    options_.writer = writer;
    auto spool = Open();
    EXPECT_EQ(spool->writer(), writer);
    EXPECT_LE(spool->last_sequence(), 100u);
    EXPECT_LE(spool->checkpoint().rings.at(0).tail, 1000u);
    std::uint64_t frames = 0;
    for (std::uint64_t sequence = 1; sequence <= spool->last_sequence(); ++sequence) {
      const std::string text = Kind(*spool, sequence);
      EXPECT_TRUE(text == "frame" || text == "gap") << text;
      frames += text == "frame" ? 1 : 0;
    }
    EXPECT_GT(frames, 50u);
  }
  fs::remove_all(other);
  fs::remove_all(other + "-copy");
  path_ = path;
}

// How it would fail: a checksum over half a megabyte for each 16 bytes, 65,536 times.
TEST_F(SpoolSegmentsTest, AgentRule03_RecordsThatOnlyClaimCostSoMuchAndAreTold) {
  {
    auto spool = Open();
    Fill(*spool, 1, 100);
  }
  const std::vector<fs::path> segments = Segments();
  ASSERT_GE(segments.size(), 4u);
  const std::string damaged = BytesOf(segments[1]);
  const std::size_t kept = ParseRecord(damaged, 0)->end;
  Write(segments[1],
        damaged.substr(0, kept) + FalseRecords(512 << 10, 65'536) + damaged.substr(kept));
  std::uint64_t bytes = 0;
  for (const fs::path& segment : segments) bytes += fs::file_size(segment);
  auto spool = Open();
  EXPECT_LE(spool->recovery().checked_bytes, RecordReader::kCheckedTimesMax * bytes);
  EXPECT_GT(spool->recovery().checked_bytes, bytes) << "the test's own premise";
  EXPECT_EQ(spool->last_sequence(), 100u);
  int frames = 0;
  for (std::uint64_t sequence = 1; sequence <= 100; ++sequence) {
    const std::string text = Kind(*spool, sequence);
    EXPECT_TRUE(text == "frame" || text == "gap") << text;
    frames += text == "frame" ? 1 : 0;
  }
  EXPECT_GT(frames, 50);
  EXPECT_LT(frames, 100);
}

TEST_F(SpoolSegmentsTest, AgentRule03_ManySegmentsThatOnlyClaimCostNoMoreThanOne) {
  {
    auto spool = Open();
    Fill(*spool, 1, 300);
  }
  const std::vector<fs::path> segments = Segments();
  ASSERT_GE(segments.size(), 20u);
  // 6 MiB each would be spent on them.
  const std::string claims = FalseRecords(1 << 20, 131'072);
  for (const fs::path& segment : segments) Write(segment, claims + BytesOf(segment));
  std::uint64_t bytes = 0;
  for (const fs::path& segment : segments) bytes += fs::file_size(segment);
  const auto spool = Open();
  EXPECT_LE(spool->recovery().checked_bytes, bytes + Spool::kFalseBytesMax);
}

TEST_F(SpoolSegmentsTest, AClaimOfMoreThanARecordHoldsOrThanIsThereCostsNothing) {
  const std::string large =
      EncodeRecord(RecordType::kDefinition, std::string(kRecordPayloadBytesMax + 1, 'x'));
  EXPECT_FALSE(ParseRecord(large, 0).has_value());
  const struct {
    const char* name;
    std::string segment;
  } rows[] = {
      {"more than a record holds", large},
      {"more than is there", FalseRecords(1 << 20, 100)},
      {"nothing", ""},
  };
  for (const auto& row : rows) {
    SCOPED_TRACE(row.name);
    RecordReader reader(row.segment);
    EXPECT_FALSE(reader.Next().has_value());
    EXPECT_FALSE(reader.gave_up());
    EXPECT_EQ(reader.checked_bytes(), 0u);
  }
}

TEST_F(SpoolSegmentsTest, DefinitionsBeyondWhatAWriterHasAreLeftOutAndCounted) {
  constexpr std::size_t kBeyond = 500;
  std::string bytes = Start();
  for (std::size_t i = 0; i < Spool::kDefinitionCountMax + kBeyond; ++i) {
    bytes += EncodeRecord(RecordType::kDefinition, "definition " + std::to_string(i));
  }
  Write(path_ + "/0000000001.seg", bytes);
  auto spool = Open();
  EXPECT_EQ(spool->definitions().size(), Spool::kDefinitionCountMax);
  EXPECT_EQ(spool->definitions().back(),
            "definition " + std::to_string(Spool::kDefinitionCountMax - 1));
  EXPECT_EQ(spool->recovery().definitions_left_out, kBeyond);
  spool = nullptr;
  // Few, but large: each segment's head would repeat them.
  bytes = Start();
  for (int i = 0; i < 9; ++i) {
    bytes += EncodeRecord(RecordType::kDefinition, std::to_string(i) + std::string(2 << 20, 'x'));
  }
  options_.segment_bytes_max = 16 << 20;
  Write(path_ + "/0000000001.seg", bytes);
  spool = Open();
  EXPECT_EQ(spool->definitions().size(), 7u);
  EXPECT_EQ(spool->recovery().definitions_left_out, 2u);
}

TEST_F(SpoolSegmentsTest, AgentRule03_GapsBeyondTheirBoundBecomeOneAndNoSampleIsForgotten) {
  constexpr std::uint64_t kBeyond = 500;
  std::string bytes = Start();
  // Between two of them one is missing, for another cause: none is like its neighbour.
  for (std::uint64_t i = 1; i <= Spool::kGapCountMax + kBeyond; ++i) {
    GapSpan gap;
    gap.first_sequence = gap.last_sequence = 2 * i;
    gap.cause = pb::GAP_CAUSE_SPOOL_FULL;
    gap.span = {1, 1, 1};
    gap.reason = std::string(i == 1 ? 1 << 20 : 0, 'x');
    bytes += EncodeRecord(RecordType::kGap, gap.Encode());
  }
  Write(path_ + "/0000000001.seg", bytes);
  auto spool = Open();
  EXPECT_EQ(spool->last_sequence(), 2 * (Spool::kGapCountMax + kBeyond));
  std::size_t count = 0;
  std::uint64_t samples = 0;
  for (std::uint64_t sequence = 1; sequence <= spool->last_sequence(); ++count) {
    const absl::StatusOr<SpoolItem> item = spool->Read(sequence);
    ASSERT_TRUE(item.ok()) << item.status();
    const GapSpan& gap = std::get<GapSpan>(*item);
    ASSERT_EQ(gap.first_sequence, sequence);
    ASSERT_LE(gap.reason.size(), 256u);
    samples += gap.span.sample_count;
    sequence = gap.last_sequence + 1;
  }
  EXPECT_LE(count, Spool::kGapCountMax);
  EXPECT_EQ(samples, Spool::kGapCountMax + kBeyond);
}

// Each is a descriptor that other users' writers need.
TEST_F(SpoolSegmentsTest, AgentRule03_OfMoreSegmentsThanAUserMayHaveTheNewestAreTaken) {
  {
    auto spool = Open();
    Fill(*spool, 1, 100);
  }
  const std::size_t all = Segments().size();
  ASSERT_GE(all, 5u);
  options_.segments = std::make_shared<SegmentBudget>(3);
  auto spool = Open();
  EXPECT_EQ(spool->recovery().segments_left_out, all - 3);
  EXPECT_EQ(options_.segments->left(), 0u);
  EXPECT_EQ(spool->last_sequence(), 100u);
  const GapSpan gap = std::get<GapSpan>(*spool->Read(1));
  EXPECT_EQ(gap.cause, pb::GAP_CAUSE_SPOOL_LOST);
  EXPECT_EQ(Kind(*spool, gap.last_sequence + 1), "frame");
  EXPECT_EQ(Kind(*spool, 100), "frame");
  EXPECT_EQ(Segments().size(), all) << "what is left out lies there";
  // Where nothing is left the sequences go on all the same.
  const auto other = Open();
  EXPECT_EQ(other->recovery().segments_left_out, all - 1);
  EXPECT_EQ(other->last_sequence(), 100u);
  spool = nullptr;
  EXPECT_EQ(options_.segments->left(), 2u) << "the other has one";
}

TEST_F(SpoolSegmentsTest, AgentRule03_OfMoreBytesThanASpoolHoldsTheNewestAreTaken) {
  options_.bytes_max = 1 << 20;
  {
    auto spool = Open();
    Fill(*spool, 1, 300);
  }
  const std::vector<fs::path> segments = Segments();
  ASSERT_GE(segments.size(), 20u);
  // Holes: they take no room on a disk.
  for (const fs::path& segment : segments) fs::resize_file(segment, 64 << 20);
  auto spool = Open();
  EXPECT_GE(spool->recovery().segments_left_out, segments.size() - 16);
  EXPECT_EQ(spool->last_sequence(), 300u);
  EXPECT_EQ(Kind(*spool, 1), "gap");
  EXPECT_EQ(Kind(*spool, 300), "frame");
}

}  // namespace
}  // namespace stepwell::agent
