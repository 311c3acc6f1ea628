// Where rings lie: in shared memory while there is plenty of room, else beside the spool.
#include "client/recorder/src/shared_rings.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include <cstdlib>
#include <map>

#include "client/recorder/src/spool_writer.h"
#include "tests/unit/recorder/files/in_child.h"
#include "tests/unit/recorder/files/spool_files.h"

namespace stepwell::recorder {
namespace {

namespace fs = std::filesystem;

constexpr Ring::Spec kSmall{.capacity = 256};

spool::Event EventAt(std::uint64_t time) {
  spool::Event event{};
  event.time = time;
  event.kind = spool::EventKind::kScope;
  return event;
}

class SharedRingsTest : public testing::Test {
 protected:
  void SetUp() override {
    memory_ = "/dev/shm/stepwell-test-XXXXXX";
    if (mkdtemp(memory_.data()) == nullptr) GTEST_SKIP() << "/dev/shm cannot be written to";
    place_ = {memory_ + "/stepwell-1", 4096};
    identity_.writer = NewUuid();
    identity_.trial = "t";
    identity_.pid = getpid();
  }
  void TearDown() override { fs::remove_all(memory_); }

  std::unique_ptr<SpoolWriter> Create() {
    std::string message;
    auto writer = SpoolWriter::Create(spool_.path(), identity_, place_, &message);
    EXPECT_NE(writer, nullptr) << message;
    return writer;
  }
  fs::path writer_path() const { return fs::path(spool_.path()) / "f1" / identity_.writer; }
  fs::path ring_path() const { return fs::path(place_.home) / identity_.writer; }

  std::string memory_;
  SharedRingPlace place_;
  TemporaryDirectory spool_;
  Identity identity_;
};

TEST_F(SharedRingsTest, AgentRule06_RingsLieInSharedMemoryWhereItHasRoom) {
  const auto writer = Create();
  ASSERT_NE(writer->MakeRing(kSmall), nullptr);
  EXPECT_TRUE(fs::exists(ring_path() / "ring-0"));
  EXPECT_FALSE(fs::exists(writer_path() / "ring-0"));
  struct stat status {};
  ASSERT_EQ(stat(writer_path().parent_path().c_str(), &status), 0);
  EXPECT_EQ(ReadText(ring_path() / "spool"), writer_path().string() + "\n" +
                                                 std::to_string(status.st_dev) + ":" +
                                                 std::to_string(status.st_ino));
  for (const fs::path& path : {fs::path(place_.home), ring_path()}) {
    EXPECT_EQ(fs::status(path).permissions(), fs::perms(0700)) << path;
  }
  EXPECT_NE(ReadText(writer_path() / "writer.json").find("\"rings\": \"" + ring_path().string()),
            std::string::npos);
}

TEST_F(SharedRingsTest, AgentRule06_WithoutFourTimesTheNeedRingsLieBesideTheSpool) {
  place_.need_bytes = fs::space("/dev/shm").available / 4 + (16 << 20);
  const auto writer = Create();
  ASSERT_NE(writer->MakeRing(kSmall), nullptr);
  EXPECT_TRUE(fs::exists(writer_path() / "ring-0"));
  EXPECT_FALSE(fs::exists(ring_path()));
  EXPECT_NE(ReadText(writer_path() / "writer.json").find("\"rings\": \"\""), std::string::npos);
}

TEST_F(SharedRingsTest, AgentRule06_WhatIsNoPlaceForRingsIsLeftAlone) {
  const std::string home = place_.home;
  const struct {
    const char* name;
    std::function<void()> make;
  } rows[] = {{"a link", [&] { fs::create_directory_symlink(memory_, home); }},
              {"open to others",
               [&] {
                 fs::create_directory(home);
                 fs::permissions(home, fs::perms(0755));
               }},
              {"no memory file system", [&] { place_.home = spool_.path() + "/home"; }}};
  for (const auto& row : rows) {
    SCOPED_TRACE(row.name);
    identity_.writer = NewUuid();
    row.make();
    const auto writer = Create();
    ASSERT_NE(writer->MakeRing(kSmall), nullptr);
    EXPECT_TRUE(fs::exists(writer_path() / "ring-0"));
    fs::remove_all(home);
  }
}

// A hole there would be a SIGBUS at the first store.
TEST_F(SharedRingsTest, AgentRule06_AFullSharedMemoryIsNoSignal) {
  const int status = RunInChild([this] {
    if (unshare(CLONE_NEWNS) != 0 ||
        mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
        mount("none", memory_.c_str(), "tmpfs", 0, "mode=0700,size=1m") != 0) {
      _exit(kExitSkipped);
    }
    const auto writer = Create();
    std::vector<std::unique_ptr<Ring>> rings;
    for (int i = 0; i < 6; ++i) {
      // 256 KiB each; room for three of them, and what is asked for a need of nearly nothing.
      rings.push_back(writer->MakeRing({.capacity = 8192}));
      ASSERT_NE(rings.back(), nullptr);
      RingProducer producer;
      producer.Attach(rings.back().get());
      for (int k = 0; k < 8000; ++k) {
        ASSERT_TRUE(producer.Push(EventAt(1)));
      }
    }
    EXPECT_TRUE(fs::exists(ring_path() / "ring-0"));
    EXPECT_TRUE(fs::exists(writer_path() / "ring-5"));
    EXPECT_FALSE(fs::exists(ring_path() / "ring-5"));
  });
  if (WIFEXITED(status) && WEXITSTATUS(status) == kExitSkipped) {
    GTEST_SKIP() << "mounting takes root in a namespace of its own";
  }
  EXPECT_EQ(status, 0) << "signal " << WTERMSIG(status);
}

TEST_F(SharedRingsTest, AgentRule01_RingsInSharedMemoryOutliveAKill) {
  const int status = RunInChild([this] {
    const auto writer = Create();
    const auto ring = writer->MakeRing(kSmall);
    RingProducer producer;
    producer.Attach(ring.get());
    ASSERT_TRUE(producer.Push(EventAt(4711)));
    raise(SIGKILL);
  });
  ASSERT_TRUE(WIFSIGNALED(status));
  const std::string bytes = ReadText(ring_path() / "ring-0");
  spool::Event event{};
  ASSERT_EQ(bytes.size(), spool::RingFileBytes(256));
  std::memcpy(&event, bytes.data() + spool::kPageBytes, sizeof(event));
  EXPECT_EQ(event.time, 4711u);
  EXPECT_EQ(event.stamp, 1u);
}

TEST_F(SharedRingsTest, AgentRule11_AWorkersRingsLieInAFolderOfItsName) {
  const auto writer = Create();
  ExpectInChild([&] {
    std::string message;
    const auto worker = writer->CreateWorker(&message);
    ASSERT_NE(worker, nullptr) << message;
    ASSERT_NE(worker->MakeRing(kSmall), nullptr);
    EXPECT_TRUE(fs::exists(ring_path() / "w0-0" / "ring-0"));
    // And of its own child.
    ExpectInChild([&] {
      const auto inner = worker->CreateWorker(&message);
      ASSERT_NE(inner, nullptr) << message;
      ASSERT_NE(inner->MakeRing(kSmall), nullptr);
      EXPECT_TRUE(fs::exists(ring_path() / "w1-0" / "ring-0"));
    });
  });
}

TEST(SharedRingPlaceTest, AgentRule06_TheNeedIsThatOfAllRanksOfTheMachine) {
  const std::string own = "/stepwell-" + std::to_string(geteuid());
  constexpr std::size_t kRing = 4 << 20;
  const struct {
    const char* name;
    std::map<std::string, std::string> variables;
    std::int32_t world_size;
    std::string home;
    std::size_t need_bytes;
  } rows[] = {
      {"alone", {}, 0, "/dev/shm" + own, kRing},
      {"of a world", {}, 8, "/dev/shm" + own, 8 * kRing},
      {"of a machine", {{"LOCAL_WORLD_SIZE", "2"}}, 64, "/dev/shm" + own, 2 * kRing},
      {"no number", {{"LOCAL_WORLD_SIZE", "many"}}, 3, "/dev/shm" + own, 3 * kRing},
      {"elsewhere", {{"STEPWELL_SHARED_MEMORY", "/m"}}, 1, "/m" + own, kRing},
      {"nowhere", {{"STEPWELL_SHARED_MEMORY", ""}}, 1, "", 0},
      {"relative", {{"STEPWELL_SHARED_MEMORY", "m"}}, 1, "", 0},
  };
  for (const auto& row : rows) {
    SCOPED_TRACE(row.name);
    const SharedRingPlace place = SharedRingPlace::Read(
        [&row](const char* name) {
          const auto found = row.variables.find(name);
          return found == row.variables.end() ? nullptr : found->second.c_str();
        },
        row.world_size);
    EXPECT_EQ(place.home, row.home);
    EXPECT_EQ(place.need_bytes, row.need_bytes);
  }
}

}  // namespace
}  // namespace stepwell::recorder
