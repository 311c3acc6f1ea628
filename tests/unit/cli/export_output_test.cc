#include "client/cli/export_output.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <sstream>

namespace stepwell::cli {
namespace {

namespace fs = std::filesystem;

class ExportOutputTest : public ::testing::Test {
 protected:
  ExportOutputTest() {
    std::string made = ::testing::TempDir() + "export-XXXXXX";
    folder_ = mkdtemp(made.data());
  }
  ~ExportOutputTest() override { fs::remove_all(folder_); }

  std::string Text(const std::string& name) const {
    std::stringstream text;
    text << std::ifstream(folder_ / name).rdbuf();
    return text.str();
  }
  int FileCount() const {
    return static_cast<int>(std::distance(fs::directory_iterator(folder_), {}));
  }
  absl::Status WriteAll(const std::string& name, const std::string& text) {
    auto output = ExportOutput::ToFile(folder_ / name);
    if (!output.ok()) return output.status();
    if (absl::Status written = (*output)->Write(text); !written.ok()) return written;
    return (*output)->Finish();
  }

  fs::path folder_;
};

TEST_F(ExportOutputTest, AFileHasItsNameOnlyOnceItIsWhole) {
  {
    const auto output = ExportOutput::ToFile(folder_ / "a.csv");
    ASSERT_TRUE(output.ok()) << output.status();
    ASSERT_TRUE((*output)->Write("half").ok());
    EXPECT_FALSE(fs::exists(folder_ / "a.csv"));
    EXPECT_EQ(FileCount(), 1);
  }
  EXPECT_EQ(FileCount(), 0) << "nothing is left of a half one";
  ASSERT_TRUE(WriteAll("a.csv", "whole").ok());
  EXPECT_EQ(Text("a.csv"), "whole");
  EXPECT_EQ(FileCount(), 1);
  const mode_t mask = umask(0);
  umask(mask);
  struct stat found {};
  ASSERT_EQ(stat((folder_ / "a.csv").c_str(), &found), 0);
  EXPECT_EQ(found.st_mode & 0777, 0666 & ~mask) << "as any other new file";
}

TEST_F(ExportOutputTest, TheFormerFileStaysUntilTheNewOneIsWhole) {
  ASSERT_TRUE(WriteAll("a.csv", "former").ok());
  {
    const auto output = ExportOutput::ToFile(folder_ / "a.csv");
    ASSERT_TRUE((*output)->Write("new").ok());
    EXPECT_EQ(Text("a.csv"), "former");
  }
  EXPECT_EQ(Text("a.csv"), "former");
  ASSERT_TRUE(WriteAll("a.csv", "new").ok());
  EXPECT_EQ(Text("a.csv"), "new");
}

TEST_F(ExportOutputTest, ALinkIsWrittenThrough) {
  ASSERT_TRUE(WriteAll("a.csv", "former").ok());
  fs::create_symlink("a.csv", folder_ / "link.csv");
  ASSERT_TRUE(WriteAll("link.csv", "new").ok());
  EXPECT_TRUE(fs::is_symlink(folder_ / "link.csv"));
  EXPECT_EQ(Text("a.csv"), "new");
}

TEST_F(ExportOutputTest, WhatIsNoFileIsNeverReplaced) {
  for (const std::string& path : {folder_.string(), std::string("/dev/null")}) {
    const auto output = ExportOutput::ToFile(path);
    EXPECT_EQ(output.status().code(), absl::StatusCode::kInvalidArgument) << path;
    EXPECT_NE(output.status().message().find("is no file"), absl::string_view::npos);
  }
  EXPECT_FALSE(ExportOutput::ToFile(folder_ / "no" / "such" / "folder.csv").ok());
  EXPECT_EQ(FileCount(), 0);
}

TEST_F(ExportOutputTest, AFullDiskIsAnError) {
  std::ofstream full("/dev/full");
  const auto output = ExportOutput::ToStream(full);
  const absl::Status written = output->Write(std::string(100'000, 'x'));
  EXPECT_NE(written.message().find("standard output"), absl::string_view::npos) << written;
  EXPECT_FALSE(absl::IsOutOfRange(written));
}

TEST_F(ExportOutputTest, AClosedPipeIsNone) {
  signal(SIGPIPE, SIG_IGN);
  const fs::path pipe = folder_ / "pipe";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  std::fstream both(pipe, std::ios::in | std::ios::out);
  std::ofstream out(pipe);
  both.close();
  const auto output = ExportOutput::ToStream(out);
  EXPECT_TRUE(absl::IsOutOfRange(output->Write(std::string(100'000, 'x'))));
}

}  // namespace
}  // namespace stepwell::cli
