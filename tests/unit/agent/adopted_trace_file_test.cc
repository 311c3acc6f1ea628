#include "client/agent/trace_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

namespace stepwell::agent {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;

constexpr char kBegunName[] = "recording-rank3-0.pftrace";

class AdoptedTraceFileTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string made = ::testing::TempDir() + "trace-file-XXXXXX";
    ASSERT_NE(mkdtemp(made.data()), nullptr);
    folder_ = made;
  }
  void TearDown() override { fs::remove_all(folder_); }

  std::unique_ptr<TraceFile> Begin(const std::string& bytes = "bytes") {
    auto file = TraceFile::Create({.directory = folder_, .rank = 3});
    EXPECT_TRUE(file.ok()) << file.status();
    EXPECT_TRUE(bytes.empty() || (*file)->Append(bytes).ok());
    return *std::move(file);
  }
  absl::StatusOr<std::unique_ptr<TraceFile>> Adopt() {
    return TraceFile::Adopt({.directory = folder_, .rank = 3}, kBegunName);
  }
  std::vector<std::string> Names() const {
    std::vector<std::string> names;
    for (const auto& each : fs::directory_iterator(folder_))
      names.push_back(each.path().filename());
    std::sort(names.begin(), names.end());
    return names;
  }

  fs::path folder_;
};

TEST_F(AdoptedTraceFileTest, WhoseNameIsAnothersByNowMovesAndRemovesNothing) {
  Begin().reset();
  const auto adopted = Adopt();
  ASSERT_TRUE(adopted.ok()) << adopted.status();
  fs::rename(folder_ / kBegunName, folder_ / "elsewhere");
  const auto living = Begin();
  ASSERT_EQ(living->name(), kBegunName);
  EXPECT_TRUE(absl::IsNotFound((*adopted)->Finish({.epoch = 0, .batch = 7}).status()));
  (*adopted)->Remove();
  EXPECT_THAT(Names(), ElementsAre("elsewhere", kBegunName));
  EXPECT_TRUE(living->Finish({.epoch = 0, .batch = 8}).ok());
}

TEST_F(AdoptedTraceFileTest, OneThatIsBegunIsNobodysToTakeAtAnyMoment) {
  std::atomic<bool> is_over{false};
  std::atomic<int> taken{0};
  std::thread other([&] {
    while (!is_over) {
      const auto adopted = Adopt();
      if (!adopted.ok()) continue;
      ++taken;
      if ((*adopted)->bytes() == 0) {
        (*adopted)->Remove();
      } else {
        (void)(*adopted)->Finish({.epoch = 9, .batch = 8});
      }
    }
  });
  for (int batch = 0; batch < 1000; ++batch) {
    const auto file = Begin("");
    const absl::Status written = file->Append("bytes");
    const auto finished = file->Finish({.epoch = 0, .batch = batch});
    EXPECT_TRUE(written.ok() && finished.ok()) << finished.status();
    if (!finished.ok()) break;
  }
  is_over = true;
  other.join();
  EXPECT_EQ(taken, 0);
}

}  // namespace
}  // namespace stepwell::agent
