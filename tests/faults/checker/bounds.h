// Bounds of what a fault may cost a master, an agent or a training that records: a part of the checker, beside what it says of
// samples. The kernel tells what processes use; this says which of it is too much.
//
//   const std::vector<std::string> findings = Exceeded(usage, Bounds::OfMaster());
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace stepwell::faults {

// The most that one process had at any look.
struct Usage {
  std::string name;             // for people: "serve 4711"
  std::int64_t memory_kib = 0;  // resident, by the kernel's own high-water mark
  std::int64_t descriptors = 0;
  std::int64_t threads = 0;
};

struct Bounds {
  std::int64_t memory_kib = 0;
  std::int64_t descriptors = 0;
  std::int64_t threads = 0;

  static Bounds OfMaster();
  // Of one that was given a limit of its memory, which a test may fill.
  static Bounds OfMaster(std::int64_t limit_kib);
  static Bounds OfAgent();
  // A fault_trainer, with the rings of its threads, which count to it as far as they are mapped.
  static Bounds OfTrainer();
};

// Of a process by its number now; a process that is gone has no threads.
Usage ReadUsage(int pid, const std::string& name);
// `most` takes what is more in `seen`.
void TakeMost(const Usage& seen, Usage& most);
// One line for each bound that is broken.
std::vector<std::string> Exceeded(const Usage& usage, const Bounds& bounds);
std::string ToText(const Usage& usage);

}  // namespace stepwell::faults
