// The part of NVIDIA's management library (NVML) that the agent calls, declared anew: the agent is
// built on machines without its header and runs on machines without the library. Sizes are those of
// the library's binary interface.
#pragma once

#include <cstddef>
#include <cstdint>

namespace stepwell::agent::nvml {

using Device = void*;
using GpmSample = void*;

enum Result : int {
  kSuccess = 0,
  kUninitialized = 1,
  kInvalidArgument = 2,
  kNotSupported = 3,
  kNoPermission = 4,
  kNotFound = 6,
  kDriverNotLoaded = 9,
  kTimeout = 10,
  kFunctionNotFound = 13,
  kGpuIsLost = 15,
  kResetRequired = 16,
  kVersionMismatch = 18,  // of library and driver: after an upgrade under way
  kArgumentVersionMismatch = 25,
  kDeprecated = 26,
  kNotReady = 27,
  kGpuNotFound = 28,
  kUnknown = 999,
};

struct Utilization {
  unsigned gpu;     // percent of time in which a kernel ran
  unsigned memory;  // percent of time in which memory was read or written
};
static_assert(sizeof(Utilization) == 8);

struct Memory {
  std::uint64_t total;
  std::uint64_t free;
  std::uint64_t used;  // with what the driver keeps for itself
};
static_assert(sizeof(Memory) == 24);

struct MemoryV2 {
  unsigned version;
  std::uint64_t total;
  std::uint64_t reserved;
  std::uint64_t free;
  std::uint64_t used;
};
static_assert(sizeof(MemoryV2) == 40);
inline constexpr unsigned kMemoryV2 = sizeof(MemoryV2) | (2u << 24);

struct TemperatureV1 {
  unsigned version;
  unsigned sensor;
  int celsius;
};
static_assert(sizeof(TemperatureV1) == 12);
inline constexpr unsigned kTemperatureV1 = sizeof(TemperatureV1) | (1u << 24);
inline constexpr unsigned kTemperatureGpu = 0;

inline constexpr unsigned kClockSm = 1;
inline constexpr unsigned kClockMemory = 2;

inline constexpr unsigned kPcieSent = 0;
inline constexpr unsigned kPcieReceived = 1;

// Which member of a value is set.
enum ValueType : unsigned {
  kDouble = 0,
  kUnsignedInt = 1,
  kUnsignedLong = 2,
  kUnsignedLongLong = 3,
  kSignedLongLong = 4,
  kSignedInt = 5,
  kUnsignedShort = 6,
};
union Value {
  double as_double;
  unsigned as_unsigned_int;
  unsigned long as_unsigned_long;
  unsigned long long as_unsigned_long_long;
  long long as_signed_long_long;
  int as_signed_int;
  unsigned short as_unsigned_short;
};
static_assert(sizeof(Value) == 8);

struct FieldValue {
  unsigned field;
  unsigned scope;
  long long timestamp_us;
  long long latency_us;
  unsigned value_type;
  int result;
  Value value;
};
static_assert(sizeof(FieldValue) == 40);
static_assert(offsetof(FieldValue, value_type) == 24 && offsetof(FieldValue, value) == 32);

inline constexpr unsigned kFieldMemoryTemperature = 82;
inline constexpr unsigned kFieldNvlinkSentKib = 138;
inline constexpr unsigned kFieldNvlinkReceivedKib = 139;
inline constexpr unsigned kFieldPcieSentBytes = 197;
inline constexpr unsigned kFieldPcieReceivedBytes = 198;
inline constexpr unsigned kScopeAllLinks = 0xffffffffu;

// Why clocks are lower than they could be. Idleness and settings of the user are no throttling.
inline constexpr std::uint64_t kReasonPowerCap = 0x4;
inline constexpr std::uint64_t kReasonHardwareSlowdown = 0x8;
inline constexpr std::uint64_t kReasonSyncBoost = 0x10;
inline constexpr std::uint64_t kReasonSoftwareThermal = 0x20;
inline constexpr std::uint64_t kReasonHardwareThermal = 0x40;
inline constexpr std::uint64_t kReasonPowerBrake = 0x80;

struct GpmMetric {
  unsigned metric;
  int result;
  double value;
  const char* names[3];  // short and long name, unit; of the library
};
static_assert(sizeof(GpmMetric) == 40);

// The library writes the metrics that are asked for; its own array is longer.
inline constexpr std::size_t kGpmMetricCountMax = 16;
struct GpmMetricsGet {
  unsigned version;
  unsigned metric_count;
  GpmSample before;
  GpmSample after;
  GpmMetric metrics[kGpmMetricCountMax];
};
static_assert(offsetof(GpmMetricsGet, metrics) == 24);
inline constexpr unsigned kGpmMetricsGetV1 = 1;

struct GpmSupport {
  unsigned version;
  unsigned is_supported;
};
static_assert(sizeof(GpmSupport) == 8);
inline constexpr unsigned kGpmSupportV1 = 1;

inline constexpr unsigned kGpmSmUtil = 2;
inline constexpr unsigned kGpmSmOccupancy = 3;
inline constexpr unsigned kGpmTensorUtil = 5;
inline constexpr unsigned kGpmDramUtil = 10;
inline constexpr unsigned kGpmFp64Util = 11;
inline constexpr unsigned kGpmFp32Util = 12;
inline constexpr unsigned kGpmFp16Util = 13;
inline constexpr unsigned kGpmPcieSentMib = 20;  // MiB per second
inline constexpr unsigned kGpmPcieReceivedMib = 21;
inline constexpr unsigned kGpmNvlinkReceivedMib = 60;
inline constexpr unsigned kGpmNvlinkSentMib = 61;

inline constexpr unsigned kUuidBytesMax = 96;

}  // namespace stepwell::agent::nvml
