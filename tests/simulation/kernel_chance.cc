#include "tests/simulation/kernel_chance.h"

#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

namespace stepwell::simulation {
namespace {

Chance* current = nullptr;

}  // namespace

KernelChance::KernelChance(Chance& chance) { current = &chance; }
KernelChance::~KernelChance() { current = nullptr; }

}  // namespace stepwell::simulation

// The C library's, in this program.
extern "C" ssize_t getrandom(void* bytes, size_t size, unsigned flags) {
  using stepwell::simulation::current;
  if (current == nullptr) return syscall(SYS_getrandom, bytes, size, flags);
  for (size_t i = 0; i < size; ++i) {
    static_cast<unsigned char*>(bytes)[i] = static_cast<unsigned char>(current->Bits());
  }
  return static_cast<ssize_t>(size);
}
