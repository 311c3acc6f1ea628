// recorder_bench: what does a scope cost a training step, against what nobody can do without (two
// clock reads and a push into a ring), and what does it cost while recording is off?
//
// It measures the installed face: the header's inline code over the shared library. The rings are
// drained as an agent would, between timed rounds, so that no round meets a full one.
#include <fcntl.h>
#include <sched.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "bench/load/asked_options.h"
#include "client/recorder/src/spool_format.h"
#include "stepwell/stepwell.h"

namespace {

namespace spool = stepwell::spool;

constexpr std::uint32_t kCapacity = spool::kRingBytesFirst / sizeof(spool::Event);
constexpr int kEventsPerRound = 4096;  // half a ring of the first size

std::uint64_t NowNs(clockid_t clock = CLOCK_MONOTONIC) {
  timespec now;
  clock_gettime(clock, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000u +
         static_cast<std::uint64_t>(now.tv_nsec);
}

// The floor: the least that a timed region with an event in a ring can be made of.
class FloorRing {
 public:
  void Push(std::uint64_t start, std::uint64_t duration) {
    if (head_ - tail_ >= kCapacity) return;
    spool::Event& slot = events_[head_ & (kCapacity - 1)];
    slot.time = start;
    slot.value = duration;
    slot.name = 1;
    published_.store(++head_, std::memory_order_release);
  }
  void Drain() { tail_ = head_; }

 private:
  std::vector<spool::Event> events_ = std::vector<spool::Event>(kCapacity);
  std::uint64_t head_ = 0;
  std::uint64_t tail_ = 0;
  std::atomic<std::uint64_t> published_{0};
};

// The agent's end of this process's first ring.
class RingTail {
 public:
  explicit RingTail(const std::string& root) {
    for (const auto& entry : std::filesystem::recursive_directory_iterator(root)) {
      if (entry.path().filename() != "ring-0") continue;
      const int fd = open(entry.path().c_str(), O_RDWR | O_CLOEXEC);
      void* mapped = mmap(nullptr, spool::kPageBytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
      close(fd);
      if (mapped != MAP_FAILED) header_ = static_cast<spool::RingHeader*>(mapped);
    }
  }
  bool is_open() const { return header_ != nullptr; }
  void Drain() { header_->tail.store(header_->head.load(std::memory_order_acquire)); }

 private:
  spool::RingHeader* header_ = nullptr;
};

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

// Of the thread's own time, the median of the rounds: neighbours on the machine cost neither side.
template <typename Body, typename Between>
double NsPerEvent(int rounds, Body body, Between between) {
  std::vector<double> spent;
  for (int round = 0; round < rounds; ++round) {
    between();
    const std::uint64_t begin_ns = NowNs(CLOCK_THREAD_CPUTIME_ID);
    for (int i = 0; i < kEventsPerRound; ++i) body();
    spent.push_back(static_cast<double>(NowNs(CLOCK_THREAD_CPUTIME_ID) - begin_ns));
  }
  return Median(spent) / kEventsPerRound;
}

// Not a function: its address would be called, not its code inlined.
const auto kScoped = [] {
  STEPWELL_SCOPE("bench");
  asm volatile("" ::: "memory");
};

void Print(const char* name, const std::vector<double>& runs, const char* unit, const char* against,
           const char* bar, const std::string& raw) {
  const auto [low, high] = std::minmax_element(runs.begin(), runs.end());
  std::printf(
      "{\"name\": \"%s\", \"value\": %.3f, \"unit\": \"%s\", \"against\": \"%s\", \"bar\": %s, "
      "%s\"n\": %zu, \"spread\": [%.3f, %.3f]}\n",
      name, Median(runs), unit, against, bar, raw.c_str(), runs.size(), *low, *high);
}

std::string Raw(const std::vector<double>& ours, const std::vector<double>& theirs) {
  char text[96];
  std::snprintf(text, sizeof(text), "\"raw\": {\"ours\": %.2f, \"theirs\": %.2f}, ", Median(ours),
                Median(theirs));
  return text;
}

void Pin() {
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(sched_getcpu(), &one);
  sched_setaffinity(0, sizeof(one), &one);
}

int Measure(int repeats, int rounds, const std::string& root) {
  const auto nothing = [] {};
  const auto empty = [] { asm volatile("" ::: "memory"); };
  // Before the first open, and after STEPWELL_DISABLED, a scope is this.
  std::vector<double> disabled;
  for (int i = 0; i < repeats; ++i) {
    const double loop = NsPerEvent(rounds, empty, nothing);
    disabled.push_back(std::max(0.0, NsPerEvent(rounds, kScoped, nothing) - loop));
  }

  stepwell::Recorder recorder(
      {.spool_dir = root, .exit_wait = std::chrono::milliseconds(0), .start_agent = false});
  if (recorder.state() != STEPWELL_RECORDING) {
    std::fprintf(stderr, "recorder_bench: %s\n", recorder.message().c_str());
    return 1;
  }
  const stepwell::Series series("bench", "value");
  kScoped();
  RingTail tail(root);
  if (!tail.is_open()) {
    std::fprintf(stderr, "recorder_bench: no ring below %s\n", root.c_str());
    return 1;
  }
  FloorRing floor;
  const auto drain = [&] {
    tail.Drain();
    floor.Drain();
  };
  std::vector<double> scope, scope_ratio, two_clocks, record, one_clock, record_ratio;
  for (int i = 0; i < repeats; ++i) {
    two_clocks.push_back(NsPerEvent(
        rounds,
        [&] {
          const std::uint64_t start = NowNs();
          asm volatile("" ::: "memory");
          floor.Push(start, NowNs() - start);
        },
        drain));
    scope.push_back(NsPerEvent(rounds, kScoped, drain));
    scope_ratio.push_back(scope.back() / two_clocks.back());
    one_clock.push_back(NsPerEvent(
        rounds, [&] { floor.Push(NowNs(), 1); }, drain));
    record.push_back(NsPerEvent(
        rounds, [&] { stepwell::Record(series, 1.5); }, drain));
    record_ratio.push_back(record.back() / one_clock.back());
  }
  if (recorder.dropped_count() > 0) {
    std::fprintf(stderr, "recorder_bench: the ring was full; these numbers are not of recording\n");
    return 1;
  }
  Print("recorder.scope", scope_ratio, "ratio", "two clock reads and a ring push", "\"<= 1.3\"",
        Raw(scope, two_clocks));
  Print("recorder.record", record_ratio, "ratio", "one clock read and a ring push", "\"<= 1.3\"",
        Raw(record, one_clock));
  Print("recorder.disabled", disabled, "ns", "an empty loop, subtracted", "\"<= 1\"", "");
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const stepwell::bench::AskedOptions asked("recorder_bench",
                                            {stepwell::bench::AskedOptions::kQuick}, argc, argv);
  const bool is_quick = asked.Has("--quick");
  unsetenv("STEPWELL_DISABLED");
  std::string root = "/dev/shm/stepwell-bench-XXXXXX";
  if (access("/dev/shm", W_OK) != 0) {
    root = std::filesystem::temp_directory_path() / "stepwell-bench-XXXXXX";
  }
  if (mkdtemp(root.data()) == nullptr) {
    std::perror("recorder_bench: no directory for the rings");
    return 1;
  }
  Pin();
  const int status = Measure(is_quick ? 5 : 21, is_quick ? 50 : 400, root);
  std::filesystem::remove_all(root);
  return status;
}
