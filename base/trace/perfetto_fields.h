// PerfettoFields: numbers of fields in Perfetto's published messages (protos/perfetto/trace), as far as they are
// written or read here.
#pragma once

#include <cstdint>

namespace stepwell::perfetto {

namespace trace {
inline constexpr std::uint32_t kPacket = 1;
}  // namespace trace
namespace packet {
inline constexpr std::uint32_t kClockSnapshot = 6;
inline constexpr std::uint32_t kTimestamp = 8;
inline constexpr std::uint32_t kSequenceId = 10;
inline constexpr std::uint32_t kTrackEvent = 11;
inline constexpr std::uint32_t kInternedData = 12;
inline constexpr std::uint32_t kSequenceFlags = 13;
inline constexpr std::uint32_t kCompressedPackets = 50;
inline constexpr std::uint32_t kTimestampClockId = 58;
inline constexpr std::uint32_t kDefaults = 59;
inline constexpr std::uint32_t kTrackDescriptor = 60;
inline constexpr std::uint32_t kFirstOnSequence = 87;
}  // namespace packet
namespace clock {
inline constexpr std::uint32_t kClocks = 1;
inline constexpr std::uint32_t kPrimaryTraceClock = 2;
inline constexpr std::uint32_t kId = 1;
inline constexpr std::uint32_t kTime = 2;
inline constexpr std::uint32_t kIsIncremental = 3;
inline constexpr std::uint32_t kUnit = 4;
inline constexpr std::uint64_t kRealtime = 1;  // an id
}  // namespace clock
namespace descriptor {
inline constexpr std::uint32_t kUuid = 1;
inline constexpr std::uint32_t kName = 2;
inline constexpr std::uint32_t kProcess = 3;
inline constexpr std::uint32_t kThread = 4;
inline constexpr std::uint32_t kParent = 5;
inline constexpr std::uint32_t kCounter = 8;
inline constexpr std::uint32_t kPid = 1;
inline constexpr std::uint32_t kTid = 2;
inline constexpr std::uint32_t kSortIndex = 3;  // of a process: legacy_sort_index
inline constexpr std::uint32_t kThreadName = 5;
inline constexpr std::uint32_t kProcessName = 6;
inline constexpr std::uint32_t kProcessLabels = 8;
inline constexpr std::uint32_t kUnitName = 6;
}  // namespace descriptor
namespace event {
inline constexpr std::uint32_t kCategoryNumbers = 3;
inline constexpr std::uint32_t kArgs = 4;
inline constexpr std::uint32_t kType = 9;
inline constexpr std::uint32_t kNameNumber = 10;
inline constexpr std::uint32_t kTrack = 11;
inline constexpr std::uint32_t kCategories = 22;
inline constexpr std::uint32_t kName = 23;
inline constexpr std::uint32_t kCounter = 30;
inline constexpr std::uint32_t kDoubleCounter = 44;
inline constexpr std::uint32_t kFlows = 47;
inline constexpr std::uint32_t kTerminatingFlows = 48;
}  // namespace event
namespace arg {
inline constexpr std::uint32_t kNameNumber = 1;
inline constexpr std::uint32_t kBool = 2;
inline constexpr std::uint32_t kUint = 3;
inline constexpr std::uint32_t kInt = 4;
inline constexpr std::uint32_t kDouble = 5;
inline constexpr std::uint32_t kString = 6;
inline constexpr std::uint32_t kJson = 9;
inline constexpr std::uint32_t kName = 10;
}  // namespace arg
namespace interned {
inline constexpr std::uint32_t kCategories = 1;
inline constexpr std::uint32_t kNames = 2;
inline constexpr std::uint32_t kArgNames = 3;
inline constexpr std::uint32_t kNumber = 1;
inline constexpr std::uint32_t kText = 2;
}  // namespace interned

}  // namespace stepwell::perfetto
