// Directories as recorders and agents leave them, made by hand where each byte matters.
#include "client/agent/spool_survey.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <cstddef>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "client/agent/agent_lock.h"
#include "client/agent/found_roots.h"
#include "client/agent/spool.h"
#include "client/agent/writer_finder.h"
#include "client/recorder/src/spool_format.h"

namespace stepwell::agent {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class SpoolSurveyTest : public ::testing::Test {
 protected:
  void SetUp() override {
    char pattern[] = "/tmp/stepwell-survey-test-XXXXXX";
    ASSERT_NE(mkdtemp(pattern), nullptr);
    root_ = pattern;
    absl::StatusOr<FileDescriptor> format = OpenFormatDirectory(root_.string());
    ASSERT_TRUE(format.ok()) << format.status();
    format_ = *std::move(format);
  }
  void TearDown() override {
    if (holder_ > 0) {
      kill(holder_, SIGKILL);
      waitpid(holder_, nullptr, 0);
    }
    fs::remove_all(root_);
  }

  fs::path MakeWriter(bool is_sampler = false) {
    WriterIdentity identity;
    identity.writer = Uuid::Random();
    identity.trial = "resnet50-a";
    identity.project = "vision";
    identity.rank = 3;
    identity.is_sampler = is_sampler;
    const auto made = MakeWriterDirectory(format_.get(), identity);
    EXPECT_TRUE(made.ok()) << made.status();
    const fs::path path = root_ / "f1" / made->name;
    std::ofstream(path / "lock");
    return path;
  }

  // As a real spool writes them: `count` frames of 10 samples each, acked up to `acked`.
  void Spool(const fs::path& writer, const std::string& folder, int count, std::uint64_t acked) {
    const fs::path path = writer / "spool" / folder;
    fs::create_directories(path);
    auto spool = agent::Spool::Open(FileDescriptor(open(path.c_str(), O_RDONLY | O_DIRECTORY)),
                                    {.writer = Uuid::Random()}, RealClock::Get());
    ASSERT_TRUE(spool.ok()) << spool.status();
    for (int i = 0; i < count; ++i) {
      const agent::Spool::Sealed sealed{1'000'000 * (i + 1), {10, 1, 2}, std::string(100, 'x')};
      Checkpoint checkpoint;
      checkpoint.rings[0].tail = 100;
      ASSERT_TRUE((*spool)->AppendFrames({&sealed, 1}, checkpoint).ok());
    }
    (*spool)->SetAcked({acked, 1});
    ASSERT_TRUE((*spool)->Sync().ok());
  }

  template <typename T>
  static void Put(std::string& bytes, std::size_t offset, T value) {
    bytes.replace(offset, sizeof(value), reinterpret_cast<const char*>(&value), sizeof(value));
  }
  static void MakeHeader(const fs::path& directory, std::uint32_t state) {
    std::string header(spool::kPageBytes, '\0');
    header.replace(0, 8, spool::kHeaderMagic, 8);
    Put(header, offsetof(spool::WriterHeader, state), state);
    Put<std::uint64_t>(header, offsetof(spool::WriterHeader, dropped_no_ring), 2);
    Put<std::uint64_t>(header, offsetof(spool::WriterHeader, dropped_no_name), 3);
    std::ofstream(directory / "header") << header;
  }
  static void MakeRing(const fs::path& directory, int number, std::uint64_t head,
                       std::uint64_t tail, std::uint64_t dropped) {
    std::string ring(spool::kPageBytes, '\0');
    ring.replace(0, 8, spool::kRingMagic, 8);
    Put<std::uint32_t>(ring, offsetof(spool::RingHeader, capacity), 1024);
    Put(ring, offsetof(spool::RingHeader, head), head);
    Put(ring, offsetof(spool::RingHeader, tail), tail);
    Put(ring, offsetof(spool::RingHeader, dropped), dropped);
    std::ofstream(directory / absl::StrCat("ring-", number)) << ring;
  }

  // Another process holds `byte` of `file` until the test ends: F_GETLK does not see one's own.
  void Hold(const fs::path& file, off_t byte) {
    int ready[2];
    ASSERT_EQ(pipe(ready), 0);
    holder_ = fork();
    ASSERT_GE(holder_, 0);
    if (holder_ == 0) {
      const int fd = open(file.c_str(), O_RDWR | O_CREAT, 0600);
      struct flock lock {};
      lock.l_type = F_WRLCK;
      lock.l_start = byte;
      lock.l_len = 1;
      const char result = fcntl(fd, F_SETLK, &lock) == 0 ? 'y' : 'n';
      if (write(ready[1], &result, 1) != 1) _exit(1);
      while (true) pause();
    }
    char result = 0;
    ASSERT_EQ(read(ready[0], &result, 1), 1);
    ASSERT_EQ(result, 'y');
    close(ready[0]);
    close(ready[1]);
  }

  SpoolSurvey Survey() {
    absl::StatusOr<SpoolSurvey> survey = SurveySpool(root_.string());
    EXPECT_TRUE(survey.ok()) << survey.status();
    return survey.ok() ? *std::move(survey) : SpoolSurvey();
  }
  SurveyedWriter Only() {
    SpoolSurvey survey = Survey();
    EXPECT_EQ(survey.writers.size(), 1U);
    return survey.writers.empty() ? SurveyedWriter() : std::move(survey.writers.front());
  }
  // Names, bytes and times of all that is there.
  std::map<std::string, std::string> Contents() const {
    std::map<std::string, std::string> contents;
    for (const auto& entry : fs::recursive_directory_iterator(root_)) {
      struct stat status {};
      EXPECT_EQ(lstat(entry.path().c_str(), &status), 0);
      std::string bytes;
      if (entry.is_regular_file()) {
        std::ifstream file(entry.path());
        bytes = {std::istreambuf_iterator<char>(file), {}};
      }
      contents[entry.path().string()] =
          absl::StrCat(status.st_mtim.tv_sec, ".", status.st_mtim.tv_nsec, " ", bytes);
    }
    return contents;
  }

  fs::path root_;
  FileDescriptor format_;
  pid_t holder_ = 0;
};

TEST_F(SpoolSurveyTest, CountsWhatIsNotAcked) {
  const fs::path writer = MakeWriter();
  Spool(writer, "0", 5, 2);
  const SurveyedWriter found = Only();
  EXPECT_EQ(found.identity.trial, "resnet50-a");
  EXPECT_EQ(found.identity.rank, 3);
  EXPECT_EQ(found.unacked_frames, 3U);
  EXPECT_EQ(found.unacked_samples, 30U);
  EXPECT_GT(found.unacked_bytes, 300);
  EXPECT_EQ(found.unacked_since_us, 3'000'000) << "the oldest of them";
  EXPECT_EQ(found.acked_sequence, 2U);
  EXPECT_EQ(found.frames.size(), 5U);
  EXPECT_GT(found.spool_bytes, found.unacked_bytes);
  EXPECT_FALSE(found.is_done);
  std::ofstream(writer / "done");
  EXPECT_TRUE(Only().is_done);
  EXPECT_EQ(Only().unacked_frames, 0U) << "the last acks need not be on the disk";
  EXPECT_EQ(Only().acked_sequence, 5U);
}

TEST_F(SpoolSurveyTest, OfRetiredSpoolsOnlyTheLivingOneWaits) {
  const fs::path writer = MakeWriter();
  Spool(writer, "0", 5, 0);
  Spool(writer, "1", 2, 1);
  Spool(writer, "2.draft", 4, 0);
  const SurveyedWriter found = Only();
  EXPECT_EQ(found.spool_number, 1U);
  EXPECT_EQ(found.unacked_frames, 1U);
}

TEST_F(SpoolSurveyTest, StepsOverWhatIsDamagedOrTorn) {
  const fs::path writer = MakeWriter();
  Spool(writer, "0", 3, 0);
  const fs::path segment = writer / "spool/0/0000000001.seg";
  std::fstream(segment, std::ios::in | std::ios::out | std::ios::app) << "SWRCtorn";
  EXPECT_EQ(Only().unacked_frames, 3U);
  std::fstream bytes(segment, std::ios::in | std::ios::out);
  bytes.seekp(static_cast<std::streamoff>(fs::file_size(segment)) / 2);
  bytes << "\xff\xff";
  bytes.close();
  EXPECT_EQ(Only().unacked_frames, 2U);
}

TEST_F(SpoolSurveyTest, TellsHowFullRingsAre) {
  const fs::path writer = MakeWriter();
  MakeHeader(writer, spool::kWriterOpen);
  MakeRing(writer, 0, 150, 40, 7);  // up to 100 it is in frames
  MakeRing(writer, 5, 30, 10, 0);
  Spool(writer, "0", 1, 0);
  SurveyedWriter found = Only();
  EXPECT_EQ(found.ring_events, 50U + 20U);
  EXPECT_EQ(found.ring_events_max, 2048U);
  EXPECT_EQ(found.dropped_events, 2U + 3U + 7U);
  EXPECT_FALSE(found.is_closed);
  EXPECT_FALSE(found.rings_in_memory);
  // A ring that lies: no more than it has room for.
  MakeRing(writer, 5, ~std::uint64_t{0}, 0, 0);
  MakeHeader(writer, spool::kWriterClosed);
  found = Only();
  EXPECT_EQ(found.ring_events, 50U + 1024U);
  EXPECT_TRUE(found.is_closed);
}

TEST_F(SpoolSurveyTest, FindsRingsInSharedMemoryAndOfWorkers) {
  const fs::path writer = MakeWriter();
  const fs::path shared = root_ / "memory" / writer.filename();
  fs::create_directories(shared / "w0-0");
  MakeHeader(writer, spool::kWriterOpen);
  MakeRing(shared, 0, 10, 0, 0);
  MakeRing(writer, 1, 20, 0, 0);
  fs::create_directories(writer / "w0-0");
  MakeHeader(writer / "w0-0", spool::kWriterOpen);
  MakeRing(shared / "w0-0", 0, 400, 0, 0);
  MakeRing(writer / "w0-0", 1, 500, 0, 0);
  std::ifstream in(writer / "writer.json");
  std::string json{std::istreambuf_iterator<char>(in), {}};
  json.replace(json.rfind('}'), 1, absl::StrCat(", \"rings\": \"", shared.string(), "\"}"));
  std::ofstream(writer / "writer.json") << json;
  Hold(writer / "lock", 1);
  const SurveyedWriter found = Only();
  EXPECT_EQ(found.ring_events, 10U + 20U + 400U + 500U);
  EXPECT_EQ(found.dropped_events, 2U * 5U);
  EXPECT_TRUE(found.rings_in_memory);
  EXPECT_EQ(found.worker_count, 1);
  EXPECT_TRUE(found.is_live) << "a worker lives";
  EXPECT_EQ(found.pid, 0) << "its parent does not";
}

TEST_F(SpoolSurveyTest, SaysWhereSharedMemoryIsGone) {
  const fs::path writer = MakeWriter();
  MakeHeader(writer, spool::kWriterOpen);
  std::ifstream in(writer / "writer.json");
  std::string json{std::istreambuf_iterator<char>(in), {}};
  json.replace(json.rfind('}'), 1,
               absl::StrCat(", \"rings\": \"/nowhere/", writer.filename().string(),
                            "\", \"server\": \"offline\"}"));
  std::ofstream(writer / "writer.json") << json;
  EXPECT_TRUE(Only().rings_missing);
  EXPECT_FALSE(Only().is_live);
}

TEST_F(SpoolSurveyTest, KnowsWhoLives) {
  const fs::path writer = MakeWriter();
  EXPECT_FALSE(Only().is_live);
  Hold(writer / "lock", 0);
  EXPECT_TRUE(Only().is_live);
  EXPECT_EQ(Only().pid, holder_);
}

TEST_F(SpoolSurveyTest, KnowsTheAgent) {
  EXPECT_FALSE(Survey().is_served);
  Hold(root_ / "f1" / spool::kAgentLockFile, 0);
  EXPECT_TRUE(Survey().is_served);
  EXPECT_EQ(Survey().agent_pid, holder_);
  // The one of all users serves a user's root below its own.
  const std::string user = (root_ / "u7").string();
  ASSERT_TRUE(OpenFormatDirectory(user).ok());
  EXPECT_FALSE(SurveySpool(user)->is_served);
  EXPECT_EQ(SurveySpool(user, root_.string())->agent_pid, holder_);
}

TEST_F(SpoolSurveyTest, ASamplerHasNoProcess) {
  const fs::path writer = MakeWriter(/*is_sampler=*/true);
  EXPECT_TRUE(Only().identity.is_sampler);
  EXPECT_FALSE(Only().is_closed);
  std::ofstream(writer / "sampler.closed");
  EXPECT_TRUE(Only().is_closed);
}

TEST_F(SpoolSurveyTest, ChangesNothing) {
  const fs::path writer = MakeWriter();
  MakeHeader(writer, spool::kWriterOpen);
  MakeRing(writer, 0, 150, 40, 7);
  Spool(writer, "0", 3, 1);
  std::fstream(writer / "spool/0/0000000001.seg", std::ios::in | std::ios::out | std::ios::app)
      << "SWRCtorn";
  const auto before = Contents();
  Survey();
  EXPECT_EQ(Contents(), before);
}

TEST_F(SpoolSurveyTest, SaysWhatIsNoRootAndWhatIsNoWriter) {
  EXPECT_TRUE(absl::IsNotFound(SurveySpool((root_ / "none").string()).status()));
  const absl::Status status = SurveySpool((root_ / "f1").string()).status();
  EXPECT_TRUE(absl::IsNotFound(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("is no spool directory: it has no 'f1'"));
  // Not a writer yet, and one that never will be.
  fs::create_directories(root_ / "f1" / Uuid::Random().ToText());
  fs::create_directories(root_ / "f1" / "something-else");
  EXPECT_TRUE(Survey().writers.empty());
  std::ofstream(MakeWriter() / "writer.json") << "{\"format\": 1, \"writer\": 7}";
  EXPECT_THAT(Only().trouble, HasSubstr("\"writer\" must be a UUID"));
}

TEST_F(SpoolSurveyTest, FindsTheRootsThatRecordersChoose) {
  const std::string temporary = root_.string() + "/tmp";
  const std::string system = root_.string() + "/run";
  RootPlaces places;
  places.system = system;
  places.temporary = {temporary, "/nowhere"};
  places.user = 1000;
  EXPECT_TRUE(FindSpoolRoots(places).empty());
  for (const char* made : {"/tmp/stepwell-1000", "/tmp/stepwell-1000-a1B2c3", "/tmp/stepwell-10007",
                           "/run/u1000", "/run/u2000"}) {
    fs::create_directories(root_.string() + made + "/f1");
  }
  fs::create_directories(root_ / "tmp/stepwell-1000-empty");
  const auto paths = [](const std::vector<FoundRoot>& roots) {
    std::vector<std::string> all;
    for (const FoundRoot& root : roots) {
      all.push_back(root.path + (root.served_by.empty() ? "" : " by " + root.served_by));
    }
    return all;
  };
  EXPECT_THAT(paths(FindSpoolRoots(places)),
              ElementsAre(system + "/u1000 by " + system, temporary + "/stepwell-1000",
                          temporary + "/stepwell-1000-a1B2c3"));
  places.user = 0;
  EXPECT_THAT(paths(FindSpoolRoots(places)),
              ElementsAre(system + "/u1000 by " + system, system + "/u2000 by " + system));
  places.given = temporary + "/stepwell-10007";
  EXPECT_THAT(paths(FindSpoolRoots(places)), ElementsAre(places.given)) << "it alone";
}

}  // namespace
}  // namespace stepwell::agent
