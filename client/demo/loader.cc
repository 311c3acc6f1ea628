#include "client/demo/loader.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <thread>

namespace stepwell::demo {
namespace {

constexpr int kFilesMax = 512;    // a process may have 1024 descriptors open
constexpr int kAttemptsMax = 16;  // of one window

}  // namespace

Loader::Loader(const std::vector<TextRange>& ranges, Options options)
    : options_(options),
      random_(options.seed),
      batch_(static_cast<std::size_t>(options.batch_size * options.window)) {
  starts_before_.push_back(0);
  for (const TextRange& range : ranges) {
    const std::int64_t start_count = range.bytes() - options_.window + 1;
    if (start_count <= 0 || files_.size() >= kFilesMax) continue;
    const int fd = open(range.path.c_str(), O_RDONLY | O_CLOEXEC);
    if (fd < 0) continue;
    files_.push_back({fd, range.begin, start_count});
    starts_before_.push_back(starts_before_.back() + start_count);
  }
}

Loader::~Loader() {
  for (const File& file : files_) close(file.fd);
}

const std::vector<unsigned char>& Loader::Next() {
  for (int i = 0; i < options_.batch_size; ++i) ReadWindow(&batch_[i * options_.window]);
  if (options_.delay.count() > 0) std::this_thread::sleep_for(options_.delay);
  return batch_;
}

void Loader::ReadWindow(unsigned char* window) {
  if (files_.empty()) return;
  std::uniform_int_distribution<std::int64_t> places(0, starts_before_.back() - 1);
  for (int attempt = 0; attempt < kAttemptsMax; ++attempt) {
    const std::int64_t place = places(random_);
    const auto after = std::upper_bound(starts_before_.begin(), starts_before_.end(), place);
    const auto index = static_cast<std::size_t>(after - starts_before_.begin() - 1);
    const File& file = files_[index];
    const std::int64_t offset = file.begin + place - starts_before_[index];
    if (pread(file.fd, window, options_.window, offset) == options_.window) return;
  }
}

}  // namespace stepwell::demo
