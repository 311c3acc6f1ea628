// sensors_bench: what does one reading of each sensor cost, on this machine?
//
// Processor time of the thread that reads: the kernel's work for a file of /proc is done in that
// call. Once one reading after the other, and once after a pause each, in which caches and processor
// cool down: the agent's readings are of that kind. The GPU is a stand-in, so that its figure is ours
// without the driver's. What not every machine has (an InfiniBand adapter of one port, a container
// with a limit, cgroup v2) is read from files as the kernel's, in a directory: that is without the
// kernel's work to make them. The table for people on stderr is the one in docs/metrics.md.
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <utility>
#include <vector>

#include "bench/load/asked_options.h"
#include "bench/load/measured_commit.h"
#include "client/agent/sensors/boot_clock.h"
#include "client/agent/sensors/container_sensor.h"
#include "client/agent/sensors/cpu_sensor.h"
#include "client/agent/sensors/disk_sensor.h"
#include "client/agent/sensors/infiniband_sensor.h"
#include "client/agent/sensors/load_sensor.h"
#include "client/agent/sensors/memory_sensor.h"
#include "client/agent/sensors/mount_sensor.h"
#include "client/agent/sensors/network_sensor.h"
#include "client/agent/sensors/nvml_finder.h"
#include "client/agent/sensors/pressure_sensor.h"
#include "client/agent/sensors/process_sensor.h"
#include "tests/support/places/places.h"

namespace stepwell::agent {
namespace {

constexpr int kRunCount = 5;
// A tenth of what the agent may take at 1 Hz, for each sensor.
constexpr double kBarUs = 300;

constexpr int kPauseUs = 10'000;
constexpr char kPortCounters[] = "sys/class/infiniband/mlx5_0/ports/1/counters/";

struct Cost {
  // Of a reading, each run's mean; sorted.
  std::vector<double> runs_us;
  std::size_t sample_count = 0;
  double median_us() const { return runs_us[runs_us.size() / 2]; }
};

double ProcessorUs() {
  timespec spent{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &spent);
  return static_cast<double>(spent.tv_sec) * 1e6 + static_cast<double>(spent.tv_nsec) * 1e-3;
}

Cost Measure(Sensor& sensor, int readings, int pause_us) {
  const ReadingContext context{std::make_shared<SeriesPool>(), std::make_shared<SensorSelection>(),
                               &BootClock::Get()};
  Cost cost;
  for (int run = 0; run < kRunCount; ++run) {
    double spent_us = 0;
    for (int i = 0; i < readings; ++i) {
      if (pause_us > 0) usleep(static_cast<useconds_t>(pause_us));
      const double before_us = ProcessorUs();
      Reading reading(context);
      sensor.Read(reading);
      spent_us += ProcessorUs() - before_us;
      cost.sample_count = std::max(cost.sample_count, reading.samples().size());
    }
    cost.runs_us.push_back(spent_us / readings);
  }
  std::sort(cost.runs_us.begin(), cost.runs_us.end());
  return cost;
}

void Report(const std::string& name, const Cost& cost, const char* when) {
  std::string key = name;
  std::replace(key.begin(), key.end(), ' ', '_');
  std::printf(
      "{\"name\": \"sensors.%s\", \"value\": %.3f, \"unit\": \"us\", \"against\": \"processor time "
      "of one reading %s, %zu samples\", \"bar\": \"<= %.0f\", \"n\": %d, \"spread\": [%.3f, "
      "%.3f]}\n",
      key.c_str(), cost.median_us(), when, cost.sample_count, kBarUs, kRunCount,
      cost.runs_us.front(), cost.runs_us.back());
}

// A container in an adapter's machine, made of files.
class FileMachine {
 public:
  FileMachine() {
    char pattern[] = "/tmp/stepwell-sensors-bench-XXXXXX";
    root_ = mkdtemp(pattern);
    Write("proc/self/cgroup", "0::/\n");
    Write("proc/sys/kernel/hostname", "train-0\n");
    Write("proc/self/mountinfo",
          "1538 1537 0:29 / /sys/fs/cgroup ro,nosuid,nodev,noexec,relatime - cgroup2 cgroup rw\n");
    Write("sys/devices/system/cpu/online", "0-7\n");
    Write("sys/fs/cgroup/cpu.max", "400000 100000\n");
    Write("sys/fs/cgroup/cpuset.cpus.effective", "0-7\n");
    Write("sys/fs/cgroup/cpu.stat",
          "usage_usec 10000000\nuser_usec 9000000\nsystem_usec 1000000\nnr_periods 50\n"
          "nr_throttled 10\nthrottled_usec 100\n");
    for (const char* counter : {"port_xmit_data", "port_rcv_data", "port_xmit_packets",
                                "port_rcv_packets", "port_xmit_wait", "port_xmit_discards",
                                "port_rcv_errors", "symbol_error", "link_downed"}) {
      Write(std::string(kPortCounters) + counter, "1000000\n");
    }
  }
  ~FileMachine() { std::filesystem::remove_all(root_); }
  FileMachine(const FileMachine&) = delete;
  FileMachine& operator=(const FileMachine&) = delete;
  KernelText kernel() const { return KernelText(root_); }

 private:
  void Write(const std::string& path, const std::string& text) const {
    std::filesystem::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << text;
  }
  std::filesystem::path root_;
};

std::vector<std::pair<std::string, std::unique_ptr<Sensor>>> MakeSensors(const KernelText& files) {
  const KernelText kernel("/");
  std::vector<std::pair<std::string, std::unique_ptr<Sensor>>> sensors;
  const auto add = [&](std::unique_ptr<Sensor> sensor, const char* name = nullptr) {
    const std::string known_as = name == nullptr ? sensor->face().name : name;
    sensors.emplace_back(known_as, std::move(sensor));
  };
  add(std::make_unique<CpuSensor>(kernel));
  add(std::make_unique<LoadSensor>(kernel));
  add(std::make_unique<MemorySensor>(kernel));
  add(std::make_unique<DiskSensor>(kernel));
  add(std::make_unique<NetworkSensor>(kernel));
  add(std::make_unique<PressureSensor>(PressureSensor::Of::kCpu, kernel));
  add(std::make_unique<PressureSensor>(PressureSensor::Of::kMemory, kernel));
  add(std::make_unique<PressureSensor>(PressureSensor::Of::kDisk, kernel));
  add(std::make_unique<ContainerCpuSensor>(files));
  add(std::make_unique<ContainerMemorySensor>(kernel));
  add(std::make_unique<LocalMountSensor>(kernel));
  add(std::make_unique<InfinibandPortSensor>("mlx5_0/1", kPortCounters, files), "infiniband");
  add(std::make_unique<InfinibandHealthSensor>("mlx5_0/1", kPortCounters, files),
      "infiniband health");
  add(std::make_unique<ProcessSensor>(getpid(), kernel), "process");
  NvmlFinder finder(BuildPlace("nvml_stub/new/libnvidia-ml.so.1"), kernel, RealClock::Get());
  for (std::unique_ptr<Sensor>& gpu : finder.Find().sensors) add(std::move(gpu), "gpu");
  return sensors;
}

int Run(bool quick) {
  char scenario[] = "/tmp/stepwell-sensors-bench-XXXXXX";
  close(mkstemp(scenario));
  std::ofstream(scenario) << "gpus 1\ngpu * util_gpu 10,90\ngpu * gpm_2 50\ngpu * gpm_5 30\n";
  setenv("STEPWELL_NVML_SCENARIO", scenario, 1);
  std::fprintf(stderr, "commit %s\n", bench::MeasuredCommit());
  std::fprintf(stderr, "| sensor | samples | µs after a pause | µs one after the other |\n");
  std::fprintf(stderr, "|---|---|---|---|\n");
  const FileMachine files;
  for (const auto& [name, sensor] : MakeSensors(files.kernel())) {
    const Cost hot = Measure(*sensor, quick ? 200 : 5000, 0);
    const Cost cool = Measure(*sensor, quick ? 10 : 100, kPauseUs);
    Report(name + " hot", hot, "after the other");
    Report(name, cool, "after a pause of 10 ms");
    std::fprintf(stderr, "| %s | %zu | %.0f | %.0f |\n", name.c_str(), hot.sample_count,
                 cool.median_us(), hot.median_us());
  }
  unlink(scenario);
  return 0;
}

}  // namespace
}  // namespace stepwell::agent

int main(int argc, char** argv) {
  const stepwell::bench::AskedOptions asked("sensors_bench",
                                            {stepwell::bench::AskedOptions::kQuick}, argc, argv);
  return stepwell::agent::Run(asked.Has("--quick"));
}
