#include "client/recorder/src/spool_writer.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "tests/unit/recorder/files/in_child.h"
#include "tests/unit/recorder/files/spool_files.h"

namespace stepwell::recorder {
namespace {

namespace fs = std::filesystem;

Identity Someone() {
  Identity identity;
  identity.writer = NewUuid();
  identity.trial = "t";
  identity.pid = 42;
  identity.opened_monotonic_ns = 17;
  return identity;
}

unsigned ModeOf(const fs::path& path) {
  struct stat found {};
  EXPECT_EQ(stat(path.c_str(), &found), 0) << path;
  return found.st_mode & 0777;
}

class SpoolWriterTest : public testing::Test {
 protected:
  std::unique_ptr<SpoolWriter> Create(const std::string& root) {
    return SpoolWriter::Create(root, identity_, rings_, &message_);
  }

  TemporaryDirectory directory_;
  Identity identity_ = Someone();
  SharedRingPlace rings_;
  std::string message_;
};

TEST_F(SpoolWriterTest, AgentRule04_MakesTheFilesOfAWriter) {
  const std::string root = directory_.path() + "/spool";
  const auto writer = Create(root);
  ASSERT_NE(writer, nullptr) << message_;
  const fs::path path = fs::path(root) / "f1" / identity_.writer;
  EXPECT_EQ(writer->directory_path(), path.string());
  EXPECT_EQ(ModeOf(root), 0700u);
  EXPECT_EQ(ModeOf(path), 0700u);
  EXPECT_EQ(ModeOf(path / "writer.json"), 0600u);
  Identity told = identity_;
  told.path = path.string();
  EXPECT_EQ(ReadText(path / "writer.json"), ToJson(told));
  EXPECT_EQ(fs::file_size(path / "names"), spool::kNamesBytesMax);
  SpoolFiles files(path);
  EXPECT_EQ(std::string(files.header().magic, 8), "SWELLHD1");
  EXPECT_EQ(files.header().pid, 42u);
  EXPECT_EQ(files.header().opened_ns, 17u);
  EXPECT_EQ(files.header().state, spool::kWriterOpen);
}

TEST_F(SpoolWriterTest, AgentRule04_TheLockLivesAsLongAsTheProcess) {
  const auto writer = Create(directory_.path());
  ASSERT_NE(writer, nullptr);
  const std::string path = writer->directory_path();
  ExpectInChild([&] { EXPECT_TRUE(SpoolFiles(path).IsAlive()); });
  // Descriptors that a forked child inherited and closes do not let go of it.
  ExpectInChild([&] { writer->Unlock(); });
  ExpectInChild([&] { EXPECT_TRUE(SpoolFiles(path).IsAlive()); });
  writer->Unlock();
  ExpectInChild([&] { EXPECT_FALSE(SpoolFiles(path).IsAlive()); });
}

TEST_F(SpoolWriterTest, AgentRule06_RefusesRootsThatAreNoPlaceForASpool) {
  const std::string& base = directory_.path();
  fs::create_directory(base + "/real");
  ASSERT_EQ(chmod((base + "/real").c_str(), 0700), 0);
  fs::create_symlink(base + "/real", base + "/link");
  fs::create_directory(base + "/wide");
  ASSERT_EQ(chmod((base + "/wide").c_str(), 0750), 0);
  std::ofstream(base + "/file") << "x";
  const struct {
    const char* name;
    std::string message;
  } rows[] = {
      {"link", "cannot open the spool directory BASE/link: it is a symlink or no directory"},
      {"file", "cannot open the spool directory BASE/file: it is a symlink or no directory"},
      {"wide", "the spool directory BASE/wide is refused: others may enter it (chmod 700 it)"},
      {"no/parent", "cannot make the spool directory BASE/no/parent: No such file or directory"},
      {"", "cannot make the spool directory : No such file or directory"},
  };
  for (const auto& row : rows) {
    SCOPED_TRACE(row.name);
    const std::string root = *row.name == '\0' ? "" : base + "/" + row.name;
    EXPECT_EQ(Create(root), nullptr);
    std::string wanted = row.message;
    if (const auto at = wanted.find("BASE"); at != std::string::npos) wanted.replace(at, 4, base);
    EXPECT_EQ(message_, wanted);
  }
  EXPECT_TRUE(FindWriters(base + "/real").empty());
}

TEST_F(SpoolWriterTest, AgentRule06_RefusesAnotherUsersRoot) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can give a directory away";
  ASSERT_EQ(chown(directory_.path().c_str(), 65534, 65534), 0);
  EXPECT_EQ(Create(directory_.path()), nullptr);
  EXPECT_EQ(message_,
            "the spool directory " + directory_.path() + " is refused: it belongs to another user");
}

TEST_F(SpoolWriterTest, AgentRule01_RingsHaveNumbersInOrderAndAShare) {
  const auto writer = Create(directory_.path());
  ASSERT_NE(writer, nullptr);
  std::vector<std::unique_ptr<Ring>> rings;
  const Ring::Spec spec{.capacity = spool::kRingBytesMax / sizeof(spool::Event)};
  while (auto ring = writer->MakeRing(spec)) rings.push_back(std::move(ring));
  // 16 rings of 4 MiB are 64 MiB, and their header pages come on top.
  EXPECT_EQ(rings.size(), 15u);
  SpoolFiles files(writer->directory_path());
  EXPECT_EQ(files.header().ring_count, rings.size());
  for (std::uint32_t i = 0; i < rings.size(); ++i) {
    EXPECT_EQ(rings[i]->header().ring, i);
    EXPECT_EQ(fs::file_size(files.RingPath(i)), spool::RingFileBytes(spec.capacity));
  }
  writer->FreeRing(std::move(rings.back()));
  EXPECT_NE(writer->MakeRing(spec), nullptr);
}

TEST_F(SpoolWriterTest, ADeletedDirectoryGivesNoRings) {
  const auto writer = Create(directory_.path());
  ASSERT_NE(writer, nullptr);
  fs::remove_all(writer->directory_path());
  EXPECT_EQ(writer->MakeRing({.capacity = 256}), nullptr);
  EXPECT_EQ(writer->header().ring_count, 0u);
}

// By its own process's eyes a lock is none.
bool IsLocked(const std::string& writer) {
  return WEXITSTATUS(RunInChild([&] {
           const int file = open((writer + "/lock").c_str(), O_RDONLY | O_CLOEXEC);
           struct flock lock {};
           lock.l_type = F_WRLCK;
           lock.l_whence = SEEK_SET;
           lock.l_len = 1;
           _exit(fcntl(file, F_GETLK, &lock) == 0 && lock.l_type != F_UNLCK ? 1 : 0);
         })) == 1;
}

// A program that looks through all files, and closes what it opened, has let go of the lock.
TEST_F(SpoolWriterTest, AgentRule04_ALockThatWasDroppedByTheWayIsTakenAgain) {
  ExpectInChild([this] {
    const auto writer = Create(directory_.path());
    ASSERT_NE(writer, nullptr);
    EXPECT_TRUE(IsLocked(writer->directory_path()));
    close(open((writer->directory_path() + "/lock").c_str(), O_RDONLY));
    EXPECT_FALSE(IsLocked(writer->directory_path()));
    writer->KeepFiles();
    EXPECT_TRUE(IsLocked(writer->directory_path()));
    // Where another file stands there by now it is not ours to lock.
    close_range(3, 1000, 0);
    fs::rename(writer->directory_path() + "/lock", writer->directory_path() + "/other");
    std::ofstream(writer->directory_path() + "/lock") << "";
    writer->KeepFiles();
    EXPECT_FALSE(IsLocked(writer->directory_path()));
  });
}

// A program that closes every descriptor and opens files of its own must not find ours in them.
TEST_F(SpoolWriterTest, SurvivesAProgramThatClosesAllDescriptors) {
  ExpectInChild([this] {
    const auto writer = Create(directory_.path());
    ASSERT_NE(writer, nullptr);
    for (int fd = 3; fd < 256; ++fd) close(fd);
    const std::string path = directory_.path() + "/users";
    std::vector<int> users;
    for (int i = 0; i < 32; ++i) users.push_back(open(path.c_str(), O_RDWR | O_CREAT, 0600));
    EXPECT_EQ(writer->MakeRing({.capacity = 256}), nullptr);
    // Its maintenance thread opens its own again.
    EXPECT_FALSE(IsLocked(writer->directory_path()));
    writer->KeepFiles();
    EXPECT_TRUE(IsLocked(writer->directory_path()));
    EXPECT_NE(writer->MakeRing({.capacity = 256}), nullptr);
    writer->Unlock();
    EXPECT_FALSE(IsLocked(writer->directory_path()));
    for (const int fd : users) EXPECT_GE(fcntl(fd, F_GETFD), 0) << fd;
    EXPECT_EQ(fs::file_size(path), 0u);
  });
}

// Growing a file past the limit raises SIGXFSZ, which would end the trial.
TEST_F(SpoolWriterTest, AFileSizeLimitIsNoSignal) {
  ExpectInChild([this] {
    const auto writer = Create(directory_.path());
    ASSERT_NE(writer, nullptr);
    const rlimit limit{64 * 1024, 64 * 1024};
    ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
    EXPECT_EQ(writer->MakeRing({.capacity = 8192}), nullptr);
    EXPECT_EQ(Create(directory_.path() + "/other"), nullptr);
    EXPECT_NE(message_.find("File too large"), std::string::npos) << message_;
  });
}

}  // namespace
}  // namespace stepwell::recorder
