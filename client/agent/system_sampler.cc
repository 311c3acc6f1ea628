#include "client/agent/system_sampler.h"

#include <cmath>

#include "client/agent/writer_identity.h"

namespace stepwell::agent {
namespace {

// Two readings closer than this make rates of counter steps, not of load.
constexpr absl::Duration kRateSpanMin = absl::Milliseconds(20);

// Values keep two decimals of percents and operations, and whole bytes: what lies below is noise of
// the counters' own step, and columns of integers are a fraction of the size.
constexpr std::uint64_t kHundredths = 100;
constexpr std::uint64_t kWhole = 1;

SystemSample Gauge(const char* group, const char* name, const char* unit, std::uint64_t divisor,
                   double value) {
  const auto parts = static_cast<double>(divisor);
  return {{group, name, {}, unit, pb::SERIES_KIND_GAUGE, divisor},
          std::nearbyint(value * parts) / parts};
}

double Rate(std::uint64_t before, std::uint64_t now, absl::Duration elapsed) {
  return static_cast<double>(now - before) / absl::ToDoubleSeconds(elapsed);
}

}  // namespace

SystemTick SystemSampler::Sample(absl::Duration now) {
  SystemTick tick;
  SampleCpu(now, tick);
  SampleMemory(tick);
  SampleDisks(now, tick);
  SampleMounts(tick);
  SampleNetwork(now, tick);
  return tick;
}

void SystemSampler::Forget() {
  cpu_.reset();
  disks_.reset();
  network_.reset();
}

void SystemSampler::SampleCpu(absl::Duration now, SystemTick& tick) {
  const absl::StatusOr<CpuTimes> read = reader_.ReadCpu();
  if (!read.ok()) {
    tick.misses.push_back({"cpu", 1, read.status()});
    return;
  }
  // Counters that went back (a resumed machine, a hot-plugged processor) only start anew.
  if (cpu_ && read->total > cpu_->counters.total && read->busy >= cpu_->counters.busy) {
    const auto busy = static_cast<double>(read->busy - cpu_->counters.busy);
    const auto total = static_cast<double>(read->total - cpu_->counters.total);
    tick.samples.push_back(
        Gauge("cpu", "cpu_util_simple", "percent", kHundredths, 100 * busy / total));
  }
  cpu_ = {*read, now};
}

void SystemSampler::SampleMemory(SystemTick& tick) {
  const absl::StatusOr<std::uint64_t> available = reader_.ReadMemoryAvailable();
  if (!available.ok()) {
    tick.misses.push_back({"memory", 1, available.status()});
    return;
  }
  tick.samples.push_back(
      Gauge("memory", "memory_free", "bytes", kWhole, static_cast<double>(*available)));
}

void SystemSampler::SampleDisks(absl::Duration now, SystemTick& tick) {
  const absl::StatusOr<DiskCounters> read = reader_.ReadDisks();
  if (!read.ok()) {
    tick.misses.push_back({"disk", 3, read.status()});
    return;
  }
  if (disks_ && now - disks_->read_at >= kRateSpanMin) {
    const DiskCounters& before = disks_->counters;
    const absl::Duration elapsed = now - disks_->read_at;
    // A disk that was unplugged takes its counts with it.
    if (read->operations >= before.operations && read->read_bytes >= before.read_bytes &&
        read->written_bytes >= before.written_bytes) {
      tick.samples.push_back(Gauge("disk", "disk_iops", "1/s", kHundredths,
                                   Rate(before.operations, read->operations, elapsed)));
      tick.samples.push_back(Gauge("disk", "disk_throughput_read", "bytes/s", kWhole,
                                   Rate(before.read_bytes, read->read_bytes, elapsed)));
      tick.samples.push_back(Gauge("disk", "disk_throughput_write", "bytes/s", kWhole,
                                   Rate(before.written_bytes, read->written_bytes, elapsed)));
    }
  }
  disks_ = {*read, now};
}

void SystemSampler::SampleMounts(SystemTick& tick) {
  const absl::StatusOr<std::vector<MountUse>> mounts = reader_.ReadMounts();
  if (!mounts.ok()) {
    tick.misses.push_back({"disk", mount_count_, mounts.status()});
    return;
  }
  mount_count_ = static_cast<int>(mounts->size());
  for (const MountUse& use : *mounts) {
    SystemSample sample = Gauge("disk", "disk_util", "percent", kHundredths, use.used_percent);
    sample.series.labels["mount"] = CleanText(use.mount, 1024);
    tick.samples.push_back(std::move(sample));
  }
}

void SystemSampler::SampleNetwork(absl::Duration now, SystemTick& tick) {
  const absl::StatusOr<NetworkCounters> read = reader_.ReadNetwork();
  if (!read.ok()) {
    tick.misses.push_back({"network", 2, read.status()});
    return;
  }
  if (network_ && now - network_->read_at >= kRateSpanMin) {
    const NetworkCounters& before = network_->counters;
    const absl::Duration elapsed = now - network_->read_at;
    // An interface that went away takes its counts with it.
    if (read->sent_bytes >= before.sent_bytes && read->received_bytes >= before.received_bytes) {
      tick.samples.push_back(Gauge("network", "net_throughput_sent", "bytes/s", kWhole,
                                   Rate(before.sent_bytes, read->sent_bytes, elapsed)));
      tick.samples.push_back(Gauge("network", "net_throughput_recv", "bytes/s", kWhole,
                                   Rate(before.received_bytes, read->received_bytes, elapsed)));
    }
  }
  network_ = {*read, now};
}

}  // namespace stepwell::agent
