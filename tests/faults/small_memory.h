// SmallMemory: a cgroup of v1 or v2 with a small bound of memory; whoever is in it when it is full may be
// killed.
//
//   SmallMemory memory("oom", 32 << 20);
//   if (!memory.trouble().empty()) GTEST_SKIP() << memory.trouble();
//   ASSERT_TRUE(memory.Take(trainer.pid()));
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <string>

#include "tests/support/child_process.h"

namespace stepwell::faults {

class SmallMemory {
 public:
  SmallMemory(const std::string& name, std::int64_t bytes);
  // Those who were in it have ended by now; the kernel may need a moment.
  ~SmallMemory();
  SmallMemory(const SmallMemory&) = delete;
  SmallMemory& operator=(const SmallMemory&) = delete;

  // Empty = it is there.
  const std::string& trouble() const { return trouble_; }
  std::int64_t kill_count() const;
  // Counts to it what `pid` takes from now on.
  bool Take(pid_t pid) const;

  // Fills it up with `victim` in it, whom the killer is to prefer, until it was killed. Empty = it was,
  // else why not.
  std::string Kill(pid_t victim, const std::function<bool()>& is_gone, const std::string& log);

 private:
  std::string path_;
  std::string events_;
  std::string trouble_;
  testing::ChildProcess hog_;
};

}  // namespace stepwell::faults
