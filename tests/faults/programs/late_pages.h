// LatePages: pages of memory of which each is given a while after somebody first waits for it, as one that a busy disk
// has to read is. Who waits for one asks the kernel for nothing and sleeps all the same.
//
//   LatePages pages(60);
//   pages.Touch(0);      // waits, once for each page
#pragma once

#include <cstddef>
#include <thread>

namespace stepwell::faults {

class LatePages {
 public:
  // Ends the process with 77 where the kernel cannot (userfaultfd).
  explicit LatePages(std::size_t count);
  // Nobody waits any more.
  ~LatePages();
  LatePages(const LatePages&) = delete;
  LatePages& operator=(const LatePages&) = delete;

  std::size_t count() const { return count_; }
  // REQUIRES: page < count().
  void Touch(std::size_t page) const;

 private:
  void Give();

  const std::size_t count_;
  const std::size_t page_bytes_;
  char* pages_ = nullptr;
  int faults_ = -1;  // who waits is read here
  int ending_ = -1;  // an eventfd
  std::thread giver_;
};

}  // namespace stepwell::faults
