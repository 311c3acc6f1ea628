#include "client/agent/link_note.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>

#include "client/agent/file_descriptor.h"

namespace stepwell::agent {
namespace {

class LinkNoteTest : public ::testing::Test {
 protected:
  void SetUp() override {
    char pattern[] = "/tmp/stepwell-link-note-test-XXXXXX";
    ASSERT_NE(mkdtemp(pattern), nullptr);
    path_ = pattern;
    auto directory = OpenAt(AT_FDCWD, path_, O_RDONLY | O_DIRECTORY);
    ASSERT_TRUE(directory.ok()) << directory.status();
    directory_ = *std::move(directory);
  }
  void TearDown() override { std::filesystem::remove_all(path_); }

  std::string path_;
  FileDescriptor directory_;
};

TEST_F(LinkNoteTest, TellsWhatIsNotReachedUntilItIs) {
  EXPECT_EQ(ReadLinkNote(directory_.get()), LinkFacts());
  LinkNote note(directory_.get(), "127.0.0.1:7817");
  note.Follow({{"host:1", "Connection refused"}, {"nohost:2", "Domain name not found"}});
  EXPECT_EQ(ReadLinkNote(directory_.get()),
            (LinkFacts{"127.0.0.1:7817",
                       {{"host:1", "Connection refused"}, {"nohost:2", "Domain name not found"}}}));
  note.Follow({{"host:1", "Connection refused"}});
  EXPECT_EQ(ReadLinkNote(directory_.get()).troubles.size(), 1U);
  // Of the agent before, which was killed: the next one overwrites it although it knows of nothing.
  LinkNote(directory_.get(), "127.0.0.1:7817").Follow({});
  EXPECT_EQ(ReadLinkNote(directory_.get()), (LinkFacts{"127.0.0.1:7817", {}}));
}

TEST_F(LinkNoteTest, WhatIsNoNoteSaysNothing) {
  for (const char* text :
       {"", "[]", "{\"server\": 7, \"troubles\": []}", "{\"troubles\": {\"a\": 1}}"}) {
    std::ofstream(path_ + "/" + kLinkNoteFile) << text;
    EXPECT_EQ(ReadLinkNote(directory_.get()), LinkFacts()) << text;
  }
}

}  // namespace
}  // namespace stepwell::agent
