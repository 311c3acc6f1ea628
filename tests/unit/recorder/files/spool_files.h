// The files of one writer as another process sees them: read with pread through spool_format.h.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "client/recorder/src/spool_format.h"
#include "tests/unit/recorder/spool_view.h"

namespace stepwell::recorder {

// The writers below `root`, with or without writer.json.
inline std::vector<std::filesystem::path> FindWriters(const std::string& root) {
  std::vector<std::filesystem::path> writers;
  const std::filesystem::path format = std::filesystem::path(root) / spool::kFormatDirectory;
  if (!std::filesystem::exists(format)) return writers;
  for (const auto& entry : std::filesystem::directory_iterator(format)) {
    if (entry.path().filename() != spool::kTraceFolder) writers.push_back(entry.path());
  }
  return writers;
}

inline std::string ReadText(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

class SpoolFiles {
 public:
  explicit SpoolFiles(std::filesystem::path directory) : directory_(std::move(directory)) {
    const int fd = open((directory_ / spool::kHeaderFile).c_str(), O_RDWR | O_CLOEXEC);
    void* mapped = mmap(nullptr, spool::kPageBytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    header_ = mapped == MAP_FAILED ? nullptr : static_cast<spool::WriterHeader*>(mapped);
  }
  ~SpoolFiles() {
    if (header_ != nullptr) munmap(header_, spool::kPageBytes);
  }
  SpoolFiles(const SpoolFiles&) = delete;
  SpoolFiles& operator=(const SpoolFiles&) = delete;

  spool::WriterHeader& header() { return *header_; }

  bool IsAlive() const { return IsLocked(spool::kProcessLockByte); }
  bool IsLocked(off_t byte) const {
    const int fd = open((directory_ / spool::kLockFile).c_str(), O_RDWR | O_CLOEXEC);
    struct flock asked {};
    asked.l_type = F_WRLCK;
    asked.l_whence = SEEK_SET;
    asked.l_start = byte;
    asked.l_len = 1;
    const bool is_locked = fcntl(fd, F_GETLK, &asked) == 0 && asked.l_type != F_UNLCK;
    close(fd);
    return is_locked;
  }

  std::vector<NameView> Names() const {
    const std::string bytes = ReadText(directory_ / spool::kNamesFile);
    EXPECT_EQ(bytes.size(), spool::kNamesBytesMax);
    return ReadNames(std::as_bytes(std::span(bytes)).first(header_->names_bytes.load()));
  }

  // The header page and the checked events between tail and head of ring `number`.
  struct RingView {
    std::string header_bytes;
    std::vector<spool::Event> events;
    const spool::RingHeader& header() const {
      return *reinterpret_cast<const spool::RingHeader*>(header_bytes.data());
    }
  };
  RingView ReadRing(std::uint32_t number) const {
    RingView view;
    const std::string bytes = ReadText(RingPath(number));
    if (bytes.size() < spool::kPageBytes) return view;
    view.header_bytes = bytes.substr(0, spool::kPageBytes);
    const spool::RingHeader& header = view.header();
    for (std::uint64_t at = header.tail; at < header.head; ++at) {
      spool::Event event;
      std::memcpy(&event, bytes.data() + spool::EventOffset(header.capacity, at), sizeof(event));
      EXPECT_EQ(event.stamp, static_cast<std::uint32_t>(at + 1));
      view.events.push_back(event);
    }
    return view;
  }
  std::filesystem::path RingPath(std::uint32_t number) const {
    return directory_ / (spool::kRingFilePrefix + std::to_string(number));
  }

  // All events of all rings, as lines.
  std::vector<std::string> Lines() const {
    std::vector<std::string> lines;
    const std::vector<NameView> names = Names();
    for (std::uint32_t ring = 0; ring < header_->ring_count; ++ring) {
      for (const spool::Event& event : ReadRing(ring).events) lines.push_back(Shown(names, event));
    }
    return lines;
  }

 private:
  std::filesystem::path directory_;
  spool::WriterHeader* header_ = nullptr;
};

}  // namespace stepwell::recorder
