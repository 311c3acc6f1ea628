// Measurement: two readings of this machine by one sensor, and the time between them as the sensor
// took it. Beside it the loads that truth tests put on the machine.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmath>
#include <fstream>
#include <functional>
#include <memory>
#include <string>

#include "tests/unit/agent/sensors/machine.h"

namespace stepwell::agent {

inline constexpr double kMib = 1 << 20;

// Of the one container, whatever it is called; NaN = it has none.
inline double OfContainer(const Values& values, const std::string& name) {
  for (const auto& [text, value] : values) {
    if (text.rfind(name + "{container=", 0) == 0) return value;
  }
  return std::nan("");
}

// The machine's own, which remembers what it said last: what a sensor divided its counters by.
class HeardClock final : public Clock {
 public:
  absl::Time Now() const override { return RealClock::Get().Now(); }
  absl::Duration Monotonic() const override { return heard_ = RealClock::Get().Monotonic(); }
  absl::Duration heard() const { return heard_; }

 private:
  mutable absl::Duration heard_;
};

class Measurement {
 public:
  explicit Measurement(Sensor& sensor) : sensor_(sensor) { Read(); }
  Values End() {
    const absl::Duration began = clock_.heard();
    const Values values = Read();
    seconds_ = absl::ToDoubleSeconds(clock_.heard() - began);
    return values;
  }
  double seconds() const { return seconds_; }

 private:
  Values Read() {
    Reading reading(context_);
    clock_.Monotonic();
    sensor_.Read(reading);
    return ValuesOf(reading);
  }
  Sensor& sensor_;
  const HeardClock clock_;
  const ReadingContext context_{std::make_shared<SeriesPool>(), std::make_shared<SensorSelection>(),
                                &clock_};
  double seconds_ = 0;
};

inline double ProcessorSeconds() {
  timespec spent{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &spent);
  return static_cast<double>(spent.tv_sec) + static_cast<double>(spent.tv_nsec) * 1e-9;
}

// Of processor time, however long that takes.
inline void Burn(double seconds) {
  volatile double sink = 1;
  const double until = ProcessorSeconds() + seconds;
  while (ProcessorSeconds() < until) {
    for (int i = 0; i < 10000; ++i) sink = std::sqrt(sink + i);
  }
}

// New memory, more than malloc keeps.
class TouchedMemory {
 public:
  explicit TouchedMemory(std::size_t bytes) : memory_(new char[bytes]) {
    for (std::size_t at = 0; at < bytes; at += 4096) memory_[at] = 1;
  }

 private:
  std::unique_ptr<char[]> memory_;
};

inline constexpr char kContainerLimitBytes[] = "268435456";
// What is wrong with what a container's sensor says of memory that this process touches, in a group of
// that limit; "" = nothing.
inline std::string TouchInContainer(Sensor& sensor) {
  constexpr std::size_t kBytes = 64 << 20;
  Measurement measurement(sensor);
  const double before = OfContainer(measurement.End(), "memory_container_used");
  const TouchedMemory memory(kBytes);
  const Values values = measurement.End();
  const double grown = OfContainer(values, "memory_container_used") - before;
  if (!(std::abs(grown - kBytes) <= 4 * kMib)) return "grown by " + std::to_string(grown);
  const double limit = OfContainer(values, "memory_container_limit");
  return limit == std::stod(kContainerLimitBytes) ? "" : "a limit of " + std::to_string(limit);
}

// Runs `body` in a child process that may change what it likes; its text is "" where all went well,
// "skip: why" where it was not permitted.
inline std::string InChild(const std::function<std::string()>& body) {
  int ends[2];
  EXPECT_EQ(pipe2(ends, O_CLOEXEC), 0);
  const pid_t child = fork();
  if (child == 0) {
    const std::string text = body();
    const ssize_t sent = write(ends[1], text.data(), text.size());
    _exit(sent == static_cast<ssize_t>(text.size()) ? 0 : 1);
  }
  close(ends[1]);
  std::string text;
  char buffer[4096];
  ssize_t got = 0;
  while ((got = read(ends[0], buffer, sizeof(buffer))) > 0) {
    text.append(buffer, static_cast<std::size_t>(got));
  }
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  return text;
}

inline void WriteFile(const std::string& path, const std::string& text) {
  std::ofstream(path) << text;
}

}  // namespace stepwell::agent
