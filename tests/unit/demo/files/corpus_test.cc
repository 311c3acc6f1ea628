#include "client/demo/corpus.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "client/demo/held_out.h"
#include "client/demo/loader.h"

namespace stepwell::demo {
namespace {

namespace fs = std::filesystem;

class CorpusTest : public testing::Test {
 protected:
  CorpusTest() {
    path_ = fs::temp_directory_path() / "stepwell-demo-XXXXXX";
    if (mkdtemp(path_.data()) == nullptr) std::abort();
  }
  ~CorpusTest() override { fs::remove_all(path_); }

  void Write(const std::string& name, const std::string& text) {
    fs::create_directories(fs::path(path_ + "/" + name).parent_path());
    std::ofstream(path_ + "/" + name) << text;
  }
  std::optional<Corpus> Find(const std::vector<std::string>& held_outs = {}) {
    return Corpus::Find(path_, held_outs, &error_);
  }
  static std::string Text(std::size_t bytes) {
    std::string text;
    while (text.size() < bytes) text += "the quick brown fox jumps over the lazy dog\n";
    return text;
  }

  std::string path_;
  std::string error_;
};

TEST_F(CorpusTest, TakesTextAndNothingElse) {
  Write("a.md", Text(6000));
  Write("b/c.cc", Text(6000));
  Write("b/picture.png", Text(6000));
  Write("zeros.txt", std::string(5000, '\0'));
  Write(".hidden/d.md", Text(6000));
  Write("build/e.md", Text(6000));
  const auto corpus = Find({path_ + "/a.md"});
  ASSERT_TRUE(corpus) << error_;
  ASSERT_EQ(corpus->training().size(), 1u);
  EXPECT_EQ(corpus->training()[0].path, path_ + "/b/c.cc");
  ASSERT_EQ(corpus->held_out().size(), 1u);
  EXPECT_EQ(corpus->held_out()[0].path, path_ + "/a.md");
}

TEST_F(CorpusTest, SplitsManyFilesByTheirNames) {
  for (int i = 0; i < 100; ++i) Write("file" + std::to_string(i) + ".txt", Text(400));
  const auto corpus = Find();
  ASSERT_TRUE(corpus) << error_;
  EXPECT_EQ(corpus->training().size() + corpus->held_out().size(), 100u);
  EXPECT_GT(corpus->held_out().size(), 2u);
  EXPECT_LT(corpus->held_out().size(), 25u);
  const auto again = Find();
  EXPECT_EQ(again->held_out().size(), corpus->held_out().size());
}

TEST_F(CorpusTest, KeepsTheEndOfASingleFile) {
  Write("a.txt", Text(10'000));
  const auto corpus = Find();
  ASSERT_TRUE(corpus) << error_;
  ASSERT_EQ(corpus->training().size(), 1u);
  ASSERT_EQ(corpus->held_out().size(), 1u);
  EXPECT_EQ(corpus->training()[0].end, corpus->held_out()[0].begin);
  EXPECT_EQ(corpus->held_out()[0].end, static_cast<std::int64_t>(fs::file_size(path_ + "/a.txt")));
}

TEST_F(CorpusTest, SaysWhatIsMissing) {
  Write("a.txt", Text(100));
  EXPECT_FALSE(Find());
  EXPECT_NE(error_.find("too little to learn from"), std::string::npos) << error_;
  EXPECT_FALSE(Find({path_ + "/none.txt"}));
  EXPECT_NE(error_.find("no readable text file"), std::string::npos) << error_;
  EXPECT_FALSE(Corpus::Find(path_ + "/nowhere", {}, &error_));
}

TEST_F(CorpusTest, TheAlphabetIsWhatWasSeen) {
  Write("a.txt", Text(10'000));
  const auto corpus = Find();
  ASSERT_TRUE(corpus);
  const Alphabet& alphabet = corpus->alphabet();
  EXPECT_EQ(alphabet.size(), 26 + 2 + 1);  // letters, space, newline, and all the rest
  EXPECT_EQ(alphabet.symbol('X'), alphabet.size() - 1);
  EXPECT_EQ(alphabet.symbol('\n'), 0);
  EXPECT_NE(alphabet.symbol('a'), alphabet.symbol('b'));
}

TEST_F(CorpusTest, TheLoaderReadsWindowsOfTheTrainingTextOnly) {
  Write("a.txt", Text(10'000) + std::string(2'000, '#'));
  const auto corpus = Find();
  ASSERT_TRUE(corpus);
  const std::string training = ReadRange(corpus->training()[0]);
  Loader loader(corpus->training(), {.batch_size = 64, .window = 13, .seed = 1});
  std::string seen;
  for (int batch = 0; batch < 10; ++batch) {
    const std::vector<unsigned char>& windows = loader.Next();
    ASSERT_EQ(windows.size(), 64u * 13u);
    for (std::size_t at = 0; at < windows.size(); at += 13) {
      const std::string window(windows.begin() + at, windows.begin() + at + 13);
      ASSERT_NE(training.find(window), std::string::npos) << window;
      seen += window;
    }
  }
  EXPECT_NE(seen.find("quick"), std::string::npos);
}

TEST_F(CorpusTest, TheLoaderSurvivesFilesThatShrink) {
  Write("a.txt", Text(10'000));
  Write("b.txt", Text(10'000));
  const std::vector<TextRange> ranges = {{path_ + "/a.txt", 0, 10'000},
                                         {path_ + "/b.txt", 0, 9000}};
  Loader loader(ranges, {.batch_size = 8, .window = 13, .seed = 1});
  fs::resize_file(path_ + "/a.txt", 0);
  for (int batch = 0; batch < 20; ++batch) EXPECT_EQ(loader.Next().size(), 8u * 13u);
  fs::resize_file(path_ + "/b.txt", 0);
  EXPECT_EQ(loader.Next().size(), 8u * 13u);
}

TEST_F(CorpusTest, HeldOutPlacesAreSpreadAndMeasuredAlike) {
  Write("a.txt", Text(40'000));
  const auto corpus = Find();
  ASSERT_TRUE(corpus);
  const HeldOut held_out(*corpus, 12, 500);
  EXPECT_LE(held_out.place_count(), 500);
  EXPECT_GT(held_out.place_count(), 200);
  const double bigram = held_out.LossOfBigram(*corpus);
  EXPECT_GT(bigram, 0);
  EXPECT_LT(bigram, 2);
  Model model({.symbol_count = corpus->alphabet().size()}, 1);
  EXPECT_GT(held_out.LossOf(model), 2);  // knows nothing yet
}

}  // namespace
}  // namespace stepwell::demo
