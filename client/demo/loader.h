// Loader reads training batches from disk: windows of bytes at random places of the training text.
// Confined to one thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <random>
#include <vector>

#include "client/demo/corpus.h"

namespace stepwell::demo {

class Loader {
 public:
  struct Options {
    int batch_size = 128;
    int window = 13;  // bytes per example: the context and the byte to predict
    std::chrono::duration<double, std::milli> delay{0};  // added to each batch
    std::uint64_t seed = 0;
  };

  // Opens the files of `ranges` that are longer than a window; they stay open.
  Loader(const std::vector<TextRange>& ranges, Options options);
  ~Loader();
  Loader(const Loader&) = delete;
  Loader& operator=(const Loader&) = delete;

  // batch_size windows, one after the other; valid until the next call. Blocks on the disk. Windows
  // that cannot be read any more (a file shrank) are read elsewhere.
  const std::vector<unsigned char>& Next();

 private:
  struct File {
    int fd;
    std::int64_t begin;
    std::int64_t start_count;  // places where a window fits
  };
  void ReadWindow(unsigned char* window);

  const Options options_;
  std::vector<File> files_;
  std::vector<std::int64_t> starts_before_;  // of each file, and of all at the end
  std::mt19937_64 random_;
  std::vector<unsigned char> batch_;
};

}  // namespace stepwell::demo
