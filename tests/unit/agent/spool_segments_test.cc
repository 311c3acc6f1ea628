// Segment files that somebody exchanged while no agent ran.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <string>
#include <variant>
#include <vector>

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

}  // namespace
}  // namespace stepwell::agent
