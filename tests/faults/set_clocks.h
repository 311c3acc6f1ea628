// SetClocks: what the clocks of a machine are off by for all processes that a test starts while it is there: masters,
// PostgreSQL, agents, trainers (programs/set_clock.cc is preloaded into them). The test's own clock stays as it is. Nothing
// is set where that is not possible. Header only.
//
//   SetClocks clocks(scene);               // before anything is started
//   clocks.SetWall(-absl::Hours(1));
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <new>
#include <string>

#include "absl/time/time.h"
#include "tests/faults/programs/clock_offsets.h"
#include "tests/faults/scene.h"

namespace stepwell::faults {

class SetClocks {
 public:
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  static constexpr bool kIsPossible = false;  // their runtimes want to be the first that is loaded
#else
  static constexpr bool kIsPossible = true;
#endif

  explicit SetClocks(const Scene& scene) {
    if (!kIsPossible) return;
    const std::string path = scene.path("clock");
    const int file = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    EXPECT_EQ(ftruncate(file, sizeof(ClockOffsets)), 0);
    void* const mapped =
        mmap(nullptr, sizeof(ClockOffsets), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    EXPECT_NE(mapped, MAP_FAILED);
    offsets_ = new (mapped) ClockOffsets;
    setenv("SET_CLOCK_FILE", path.c_str(), 1);
    setenv("LD_PRELOAD", testing::BuiltProgram("libset_clock.so").c_str(), 1);
  }
  SetClocks(const SetClocks&) = delete;
  SetClocks& operator=(const SetClocks&) = delete;
  ~SetClocks() {
    if (!kIsPossible) return;
    unsetenv("LD_PRELOAD");
    munmap(offsets_, sizeof(ClockOffsets));
  }

  absl::Duration wall() const { return absl::Nanoseconds(offsets_->wall_ns.load()); }
  void SetWall(absl::Duration offset) { offsets_->wall_ns = absl::ToInt64Nanoseconds(offset); }
  // A suspended machine's goes on.
  void AddBoot(absl::Duration length) { offsets_->boot_ns += absl::ToInt64Nanoseconds(length); }

 private:
  ClockOffsets* offsets_ = nullptr;
};

}  // namespace stepwell::faults
