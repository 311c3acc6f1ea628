#include "tests/faults/programs/late_pages.h"

#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <cstdlib>

namespace stepwell::faults {
namespace {

constexpr int kExitSkipped = 77;
// Who waits is asleep by then.
constexpr auto kLate = std::chrono::milliseconds(2);

}  // namespace

LatePages::LatePages(std::size_t count)
    : count_(count), page_bytes_(static_cast<std::size_t>(sysconf(_SC_PAGESIZE))) {
  const std::size_t bytes = count_ * page_bytes_;
  void* pages = mmap(nullptr, bytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  // Else poll tells nothing of it.
  const int flags = O_CLOEXEC | O_NONBLOCK | UFFD_USER_MODE_ONLY;
  faults_ = static_cast<int>(syscall(SYS_userfaultfd, flags));
  ending_ = eventfd(0, EFD_CLOEXEC);
  uffdio_api api = {.api = UFFD_API, .features = 0, .ioctls = 0};
  uffdio_register all = {};
  all.range = {.start = reinterpret_cast<std::uintptr_t>(pages), .len = bytes};
  all.mode = UFFDIO_REGISTER_MODE_MISSING;
  if (pages == MAP_FAILED || faults_ < 0 || ending_ < 0 || ioctl(faults_, UFFDIO_API, &api) != 0 ||
      ioctl(faults_, UFFDIO_REGISTER, &all) != 0) {
    std::_Exit(kExitSkipped);
  }
  pages_ = static_cast<char*>(pages);
  giver_ = std::thread([this] { Give(); });
}

LatePages::~LatePages() {
  const std::uint64_t one = 1;
  if (write(ending_, &one, sizeof(one)) != static_cast<ssize_t>(sizeof(one))) std::abort();
  giver_.join();
  close(ending_);
  close(faults_);
  munmap(pages_, count_ * page_bytes_);
}

void LatePages::Touch(std::size_t page) const {
  (void)*static_cast<volatile char*>(pages_ + page * page_bytes_);
}

void LatePages::Give() {
  pollfd watched[] = {{.fd = faults_, .events = POLLIN, .revents = 0},
                      {.fd = ending_, .events = POLLIN, .revents = 0}};
  while (poll(watched, 2, -1) >= 0 && watched[1].revents == 0) {
    uffd_msg message = {};
    if (read(faults_, &message, sizeof(message)) != static_cast<ssize_t>(sizeof(message))) continue;
    std::this_thread::sleep_for(kLate);
    uffdio_zeropage given = {};
    given.range = {.start = message.arg.pagefault.address & ~(std::uint64_t{page_bytes_} - 1),
                   .len = page_bytes_};
    if (ioctl(faults_, UFFDIO_ZEROPAGE, &given) != 0) std::abort();
  }
}

}  // namespace stepwell::faults
