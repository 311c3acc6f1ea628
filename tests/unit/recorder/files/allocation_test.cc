// Recording allocates nothing: every operator new of this program is counted, by thread.
#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <new>
#include <thread>

#include "tests/unit/recorder/files/in_child.h"
#include "tests/unit/recorder/files/recorder_fixture.h"

namespace {

thread_local std::uint64_t allocation_count = 0;

}  // namespace

// A sanitizer brings operators of its own, which must not be mixed with these.
#ifndef __SANITIZE_ADDRESS__
// Not inlined: gcc 12 takes what it sees of one of them for a mismatch with the others.
[[gnu::noinline]] void* operator new(std::size_t bytes) {
  ++allocation_count;
  if (void* memory = std::malloc(bytes)) return memory;
  throw std::bad_alloc();
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t /*bytes*/) noexcept {
  std::free(memory);
}
#endif

namespace stepwell::recorder {
namespace {

TEST_F(RecorderTest, AgentRule01_AWarmCallAllocatesNothing) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "the sanitizer counts and frees memory itself";
#endif
  ExpectInChild([this] {
    ASSERT_EQ(Open(), STEPWELL_RECORDING);
    const stepwell_scope_id forward = stepwell_define_scope("forward");
    const stepwell_series_id loss =
        stepwell_define_series("training", "loss", "", STEPWELL_GAUGE, nullptr, 0);
    const auto step = [=] {
      stepwell_scope scope;
      stepwell_scope_begin(&scope, forward);
      stepwell_record(loss, 1);
      stepwell_scope_end(&scope);
      stepwell_step_end(STEPWELL_NEXT_BATCH);
    };
    std::thread([&] {
      step();
      const std::uint64_t before = allocation_count;
      // Through full rings and grown ones.
      for (int i = 0; i < 20'000; ++i) step();
      EXPECT_EQ(allocation_count, before);
    }).join();
    // The count counts.
    const std::uint64_t before = allocation_count;
    delete new int(1);
    EXPECT_GT(allocation_count, before);
    stepwell_close(0);
  });
}

}  // namespace
}  // namespace stepwell::recorder
