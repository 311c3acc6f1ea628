#include "client/agent/writer_finder.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <memory>

namespace stepwell::agent {
namespace {

class WriterFinderTest : public ::testing::Test {
 protected:
  void SetUp() override { MakeRoot("/tmp"); }
  void MakeRoot(const std::string& where) {
    std::string pattern = where + "/stepwell-finder-test-XXXXXX";
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    path_ = pattern;
    directory_ = FileDescriptor(open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  }
  void TearDown() override { std::filesystem::remove_all(path_); }

  static WriterIdentity Identity() {
    WriterIdentity identity;
    identity.writer = Uuid::Random();
    identity.trial = "t";
    return identity;
  }
  std::string Make(const WriterIdentity& identity = Identity()) {
    const auto made = MakeWriterDirectory(directory_.get(), identity);
    EXPECT_TRUE(made.ok()) << made.status();
    return made.ok() ? made->name : "";
  }
  // An open file description's lock: F_GETLK of this same process sees it as another's.
  int Lock(const std::string& name) const {
    const int file = open((path_ + "/" + name + "/lock").c_str(), O_RDWR | O_CREAT, 0600);
    struct flock lock {};
    lock.l_type = F_WRLCK;
    lock.l_whence = SEEK_SET;
    lock.l_len = 1;
    EXPECT_EQ(fcntl(file, F_OFD_SETLK, &lock), 0);
    return file;
  }
  // As of long ago, so that nothing but what has changed is looked at again.
  void Age() {
    const timespec long_ago[2] = {{1'700'000'000, 0}, {1'700'000'000, 0}};
    ASSERT_EQ(futimens(directory_.get(), long_ago), 0);
    names();
  }
  std::vector<std::string> names() {
    std::vector<std::string> found;
    for (const FoundWriter& writer : finder_->FindNew()) found.push_back(writer.name);
    return found;
  }

  std::string path_;
  FileDescriptor directory_;
  std::unique_ptr<WriterFinder> finder_;
};

using Names = std::vector<std::string>;

TEST_F(WriterFinderTest, GivesEachOnceAsSoonAsItIsThere) {
  finder_ = std::make_unique<WriterFinder>(directory_.get());
  EXPECT_EQ(names(), Names());
  const std::string first = Make();
  EXPECT_EQ(names(), Names({first}));
  EXPECT_EQ(names(), Names());
  // Two within one tick of the kernel's clock.
  const std::string second = Make();
  EXPECT_EQ(names(), Names({second}));
  const std::string third = Make();
  EXPECT_EQ(names(), Names({third}));
  Age();
  EXPECT_EQ(names(), Names());
  const std::string fourth = Make();
  EXPECT_EQ(names(), Names({fourth}));
}

TEST_F(WriterFinderTest, OneIsAWriterOnceItHasItsWriterJsonHoweverLate) {
  finder_ = std::make_unique<WriterFinder>(directory_.get());
  const WriterIdentity identity = Identity();
  const std::string name = identity.writer.ToText();
  std::filesystem::create_directory(path_ + "/" + name);
  Age();
  EXPECT_EQ(names(), Names());
  // The directory above does not change with it.
  Make(identity);
  EXPECT_EQ(names(), Names({name}));
}

TEST_F(WriterFinderTest, AgentRule06_ACopyIsNotServedWhileTheOriginalRecords) {
  WriterIdentity identity = Identity();
  const std::string name = identity.writer.ToText();
  identity.path = path_ + "/" + name;
  Make(identity);
  const std::string copy = path_ + "-copy";
  std::filesystem::copy(path_, copy, std::filesystem::copy_options::recursive);
  const FileDescriptor copied(open(copy.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  const int lock = Lock(name);
  finder_ = std::make_unique<WriterFinder>(copied.get());
  EXPECT_EQ(names(), Names());
  // The original is none.
  finder_ = std::make_unique<WriterFinder>(directory_.get());
  EXPECT_EQ(names(), Names({name}));
  close(lock);
  finder_ = std::make_unique<WriterFinder>(copied.get());
  EXPECT_EQ(names(), Names({name}));
  std::filesystem::remove_all(copy);
}

TEST_F(WriterFinderTest, SoManyAreServedAtOnceAndTheRestWaits) {
  finder_ = std::make_unique<WriterFinder>(directory_.get(), geteuid(), /*count_max=*/2);
  std::vector<std::string> all = {Make(), Make(), Make()};
  std::vector<std::string> found = names();
  ASSERT_EQ(found.size(), 2u);
  Age();
  EXPECT_EQ(names(), Names());
  std::filesystem::remove_all(path_ + "/" + found[0]);
  finder_->Drop(found[0]);
  const std::vector<std::string> third = names();
  ASSERT_EQ(third.size(), 1u);
  found.push_back(third[0]);
  std::sort(found.begin(), found.end());
  std::sort(all.begin(), all.end());
  EXPECT_EQ(found, all);
}

// After hundreds of runs that nobody uploaded.
TEST_F(WriterFinderTest, TheLivingHavePlacesBeforeTheDead) {
  for (int i = 0; i < 20; ++i) Make();
  const std::string living = Make();
  const int lock = Lock(living);
  finder_ = std::make_unique<WriterFinder>(directory_.get(), geteuid(), /*count_max=*/2);
  std::vector<std::string> found = names();
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0], living);
  EXPECT_EQ(finder_->places_wanted(), 19u);
  // A new one of those that live waits for nobody but others of them.
  const std::string second = Make();
  const int second_lock = Lock(second);
  EXPECT_EQ(names(), Names());
  EXPECT_EQ(finder_->places_wanted(), 20u);
  finder_->SetAside(found[1], {.state = AsideWriter::State::kUnsent});
  EXPECT_EQ(names(), Names({second}));
  close(lock);
  close(second_lock);
}

TEST_F(WriterFinderTest, WhatWasSetAsideComesBackWhenThereIsRoom) {
  finder_ = std::make_unique<WriterFinder>(directory_.get(), geteuid(), /*count_max=*/1);
  Make();
  Make();
  const std::vector<std::string> first = names();
  ASSERT_EQ(first.size(), 1u);
  finder_->SetAside(first[0], {.state = AsideWriter::State::kUnsent});
  const std::vector<std::string> second = names();
  ASSERT_EQ(second.size(), 1u);
  EXPECT_NE(second, first);
  finder_->SetAside(second[0], {.state = AsideWriter::State::kDelivered});
  std::vector<FoundWriter> back = finder_->FindNew();
  ASSERT_EQ(back.size(), 1u);
  EXPECT_EQ(back[0].name, first[0]);
  EXPECT_TRUE(back[0].is_back);
  finder_->SetAside(first[0], {.state = AsideWriter::State::kDelivered});
  EXPECT_EQ(names(), Names());
}

TEST_F(WriterFinderTest, OneOfAnotherOwnerIsLeftAlone) {
  finder_ = std::make_unique<WriterFinder>(directory_.get(), geteuid() + 1);
  Make();
  EXPECT_EQ(names(), Names());
}

// What a user mounted there may keep the agent waiting for ever.
TEST_F(WriterFinderTest, OneOnAnotherFileSystemIsLeftAlone) {
  const WriterIdentity identity = Identity();
  const std::string path = path_ + "/" + identity.writer.ToText();
  std::filesystem::create_directory(path);
  const pid_t child = fork();
  if (child == 0) {
    if (unshare(CLONE_NEWNS) != 0 ||
        mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
        mount("none", path.c_str(), "tmpfs", 0, "mode=0700") != 0) {
      _exit(77);
    }
    directory_ = FileDescriptor(open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    Make(identity);
    finder_ = std::make_unique<WriterFinder>(directory_.get());
    const bool is_left = names().empty();
    umount(path.c_str());
    // The same on this one is taken.
    finder_ = std::make_unique<WriterFinder>(directory_.get());
    Make(identity);
    _exit(is_left && names().size() == 1 ? 0 : 1);
  }
  int status = -1;
  waitpid(child, &status, 0);
  ASSERT_TRUE(WIFEXITED(status));
  if (WEXITSTATUS(status) == 77) GTEST_SKIP() << "no mounts here";
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

// A user of a system agent fills his root; what the agent does for him at a visit has bounds.
class CrowdedFinderTest : public WriterFinderTest {
 protected:
  // Thousands of directories take seconds on a disk.
  void SetUp() override { MakeRoot(access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp"); }
  // Directories that become no writers.
  void MakeUnready(std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
      ASSERT_TRUE(std::filesystem::create_directory(path_ + "/" + Uuid::Random().ToText()));
    }
  }
  void MakeFiles(std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
      const std::string path = path_ + "/no-uuid-" + std::to_string(i);
      close(open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
    }
  }
  // How many visits it takes until it is found; `count_max` where it is not.
  std::size_t VisitsUntil(const std::string& name, std::size_t count_max) {
    for (std::size_t count = 1; count <= count_max; ++count) {
      finder_->Refill();
      const Names found = names();
      if (std::find(found.begin(), found.end(), name) != found.end()) return count;
    }
    return count_max + 1;
  }
};

TEST_F(CrowdedFinderTest, ALookReadsSoManyNamesAndTheNextOneGoesOn) {
  finder_ = std::make_unique<WriterFinder>(directory_.get());
  constexpr std::size_t kParts = 4;
  MakeFiles(kParts * WriterFinder::kNamesReadMax);
  const std::string name = Make();
  for (std::size_t part = 0; part < kParts; ++part) {
    EXPECT_EQ(names(), Names()) << "what is listed is looked at in the end";
    EXPECT_FALSE(finder_->has_looked_through());
  }
  EXPECT_EQ(names(), Names({name}));
  EXPECT_TRUE(finder_->has_looked_through());
  // What comes later, too.
  const std::string later = Make();
  EXPECT_LE(VisitsUntil(later, 10), kParts + 1);
}

TEST_F(CrowdedFinderTest, AVisitOpensSoManyAndEachHasItsTurn) {
  finder_ = std::make_unique<WriterFinder>(directory_.get());
  constexpr std::size_t kTurns = 4;
  MakeUnready(kTurns * WriterFinder::kOpenedMax);
  EXPECT_EQ(names(), Names());
  // The looks of one visit share its bound: further ones have nothing to open.
  const std::string name = Make();
  EXPECT_EQ(names(), Names());
  EXPECT_FALSE(finder_->has_looked_through());
  // To the end of this pass, and through one more.
  EXPECT_LE(VisitsUntil(name, 20), 2 * kTurns + 1);
  const std::string later = Make();
  EXPECT_LE(VisitsUntil(later, 20), 2 * kTurns + 1);
}

TEST_F(CrowdedFinderTest, MoreThanOneVisitOpensAreAllFoundOnce) {
  finder_ = std::make_unique<WriterFinder>(directory_.get());
  Names all;
  for (std::size_t i = 0; i < WriterFinder::kOpenedMax + 50; ++i) all.push_back(Make());
  Names found = names();
  EXPECT_EQ(found.size(), WriterFinder::kOpenedMax);
  finder_->Refill();
  for (const std::string& name : names()) found.push_back(name);
  std::sort(all.begin(), all.end());
  std::sort(found.begin(), found.end());
  EXPECT_EQ(found, all);
}

// Also where the living are looked for first, over several visits.
TEST_F(CrowdedFinderTest, TheLivingHavePlacesBeforeAllThatAreDead) {
  for (std::size_t i = 0; i < 2 * WriterFinder::kOpenedMax; ++i) Make();
  const std::string living = Make();
  const int lock = Lock(living);
  finder_ = std::make_unique<WriterFinder>(directory_.get(), geteuid(), /*count_max=*/1);
  EXPECT_LE(VisitsUntil(living, 10), 3u);
  for (int visit = 0; visit < 3; ++visit) {
    finder_->Refill();
    EXPECT_EQ(names(), Names());
  }
  EXPECT_EQ(finder_->waiting().new_count(), 2 * WriterFinder::kOpenedMax);
  close(lock);
}

// An agent that leaves has one look.
TEST_F(CrowdedFinderTest, ALastLookMissesNobody) {
  finder_ = std::make_unique<WriterFinder>(directory_.get());
  MakeFiles(2 * WriterFinder::kNamesReadMax);
  MakeUnready(2 * WriterFinder::kOpenedMax);
  const std::string name = Make();
  EXPECT_EQ(names(), Names());
  finder_->LookAgain();
  EXPECT_EQ(names(), Names({name}));
  EXPECT_TRUE(finder_->has_looked_through());
}

TEST_F(WriterFinderTest, OneThatWasForgottenIsFoundAgain) {
  finder_ = std::make_unique<WriterFinder>(directory_.get());
  const std::string name = Make();
  EXPECT_EQ(names(), Names({name}));
  Age();
  finder_->Forget(name);
  EXPECT_EQ(names(), Names({name}));
}

}  // namespace
}  // namespace stepwell::agent
