// Moves to a cgroup, takes and touches a MiB of memory after the other there, --limit of them, and then
// waits for its end: by the kernel's killer, or by its parent's.
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <fstream>

#include "tests/faults/programs/options.h"

int main(int argc, char** argv) {
  const stepwell::faults::ProgramOptions options(argc, argv,
                                                 {{"--cgroup", ""}, {"--limit", "1000"}});
  // Before it takes any: what a process has is charged to where it took it.
  if (!(std::ofstream(options.Text("--cgroup")) << getpid() << std::flush)) return 1;
  for (long i = 0; i < options.Number("--limit"); ++i) {
    void* bytes = std::malloc(std::size_t{1} << 20);
    if (bytes != nullptr) std::memset(bytes, 1, std::size_t{1} << 20);
  }
  pause();
}
