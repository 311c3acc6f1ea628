// DirectoryListing: the names in a directory, read in parts: one that is without end need not be read
// at once, and is not begun anew each time. A name that is there all the while is given once; one that
// is renamed meanwhile perhaps twice, as POSIX has it. Thread-compatible.
//
//   DirectoryListing listing(directory);
//   while (const char* name = listing.Next()) ...   // or stop here, and go on later
#pragma once

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include <utility>

namespace stepwell::agent {

class DirectoryListing {
 public:
  // Begins at the first name of the directory that is open as `directory`.
  explicit DirectoryListing(int directory) {
    const int fd = openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) return;
    listing_ = fdopendir(fd);
    if (listing_ == nullptr) close(fd);
  }
  DirectoryListing(DirectoryListing&& other) noexcept
      : listing_(std::exchange(other.listing_, nullptr)) {}
  DirectoryListing& operator=(DirectoryListing&& other) noexcept {
    std::swap(listing_, other.listing_);
    return *this;
  }
  ~DirectoryListing() {
    if (listing_ != nullptr) closedir(listing_);
  }

  // False: no descriptors now, or it is gone.
  bool valid() const { return listing_ != nullptr; }
  // Null at the end. Until the next call; "." and ".." too.
  const char* Next() {
    const dirent* entry = listing_ == nullptr ? nullptr : readdir(listing_);
    return entry == nullptr ? nullptr : entry->d_name;
  }

 private:
  DIR* listing_ = nullptr;
};

}  // namespace stepwell::agent
