#include "server/memory_shares.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/check.h"

namespace stepwell {
namespace {

constexpr std::int64_t kKiB = 1 << 10;
constexpr std::int64_t kMiB = 1 << 20;

using Part = MemoryShares::Part;

// In MiB, at limits of 512 MiB, 1 GiB and 4 GiB; in between by lines, beyond as at 4 GiB. At 1 GiB what was each part's own
// bound before there was one of all, but for what was 512 there: samples to fold, gRPC, HTTP's answers. `least`: below it the
// part does not work.
struct Row {
  Part part;
  std::array<std::int64_t, 3> at;
  std::int64_t least;
};
constexpr std::array<std::int64_t, 3> kLimits = {512, 1024, 4096};
constexpr std::array<Row, MemoryShares::kPartCount> kRows = {{
    {MemoryShares::kBase, {64, 64, 64}, 64},
    {MemoryShares::kStreams, {24, 24, 24}, 24},
    {MemoryShares::kStore, {40, 40, 48}, 40},
    {MemoryShares::kKept, {40, 56, 136}, 32},
    {MemoryShares::kWindows, {16, 64, 64}, 16},
    {MemoryShares::kMessages, {64, 64, 512}, 32},
    {MemoryShares::kChunks, {24, 32, 128}, 12},
    {MemoryShares::kDefinitions, {32, 48, 256}, 16},
    {MemoryShares::kQueue, {32, 64, 64}, 8},
    {MemoryShares::kUnfolded, {56, 128, 512}, 32},
    {MemoryShares::kCharts, {48, 240, 240}, 12},
    {MemoryShares::kLists, {16, 32, 128}, 4},
    {MemoryShares::kLatest, {8, 32, 32}, 1},
    {MemoryShares::kFollowed, {16, 64, 64}, 2},
    {MemoryShares::kAnswers, {20, 48, 512}, 8},
    {MemoryShares::kBodies, {12, 24, 128}, 8},
}};
constexpr std::int64_t kStreamsMeant = 256;
constexpr std::int64_t kWindowBytesMin = 64 * kKiB;
constexpr std::int64_t kWindowBytesMax = 256 * kKiB;
// Beyond which a fold begins by itself; a third of the unfolded, so that one may be under way while more comes.
constexpr std::int64_t kFoldBytesMax = 32 * kMiB;
// Of the unfolded, above the mark of a fold.
constexpr std::int64_t kUnfoldedMore = 24 * kMiB;

struct Wanted {
  std::int64_t bytes = 0;
  std::int64_t least = 0;
};

std::int64_t At(const Row& row, std::int64_t limit_bytes) {
  if (limit_bytes >= kLimits.back() * kMiB) return row.at.back() * kMiB;
  const std::size_t next = limit_bytes < kLimits[1] * kMiB ? 1 : 2;
  const std::int64_t from = kLimits[next - 1] * kMiB;
  const std::int64_t span = kLimits[next] * kMiB - from;
  const std::int64_t more = (row.at[next] - row.at[next - 1]) * kMiB;
  // By parts of 1024: of whole bytes the product would not fit.
  return row.at[next - 1] * kMiB + more / 1024 * ((limit_bytes - from) * 1024 / span);
}

std::string Size(std::int64_t bytes) { return absl::StrCat((bytes + kMiB - 1) / kMiB, "MiB"); }

std::array<Wanted, MemoryShares::kPartCount> WantedParts(const MemoryAsked& asked) {
  std::array<Wanted, MemoryShares::kPartCount> parts;
  for (const Row& row : kRows) {
    parts[row.part] = {At(row, asked.memory_bytes), row.least * kMiB};
  }
  for (const Part part : {MemoryShares::kStreams, MemoryShares::kWindows}) {
    Wanted& of_streams = parts[part];
    of_streams.bytes = of_streams.bytes / kStreamsMeant * asked.streams_max;
    of_streams.least = of_streams.least / kStreamsMeant * asked.streams_max;
  }
  for (const auto& [part, named] : {std::pair(MemoryShares::kQueue, asked.queue_bytes),
                                    std::pair(MemoryShares::kLatest, asked.latest_bytes),
                                    std::pair(MemoryShares::kFollowed, asked.follow_bytes)}) {
    if (named > 0) parts[part] = {named, named};
  }
  if (asked.fold_bytes > 0) {
    Wanted& unfolded = parts[MemoryShares::kUnfolded];
    // Half as much again, so that credit, which ends at three quarters, does not end before a fold begins.
    unfolded.least =
        std::max(unfolded.least, asked.fold_bytes + asked.fold_bytes / 2 + kUnfoldedMore);
    unfolded.bytes = std::max(unfolded.bytes, unfolded.least);
  }
  return parts;
}

absl::Status TooLittle(const MemoryAsked& asked, std::int64_t least) {
  std::vector<std::string> named;
  for (const auto& [name, bytes] :
       {std::pair("queue-bytes", asked.queue_bytes), std::pair("fold-bytes", asked.fold_bytes),
        std::pair("latest-bytes", asked.latest_bytes),
        std::pair("follow-bytes", asked.follow_bytes)}) {
    if (bytes > 0) named.push_back(absl::StrCat(name, " ", Size(bytes)));
  }
  named.push_back(absl::StrCat("streams-max ", asked.streams_max));
  return absl::InvalidArgumentError(absl::StrCat("memory-bytes is ", Size(asked.memory_bytes),
                                                 ", allowed are at least ", Size(least), " beside ",
                                                 absl::StrJoin(named, ", ")));
}

}  // namespace

std::int64_t MemoryShares::Sum() const {
  return std::accumulate(bytes.begin(), bytes.end(), std::int64_t{0});
}

absl::StatusOr<MemoryShares> DivideMemory(const MemoryAsked& asked) {
  STEPWELL_CHECK(asked.memory_bytes >= kMemoryBytesMin);
  auto parts = WantedParts(asked);
  std::int64_t sum = 0;
  std::int64_t least = 0;
  for (const Wanted& part : parts) {
    sum += part.bytes;
    least += part.least;
  }
  if (least > asked.memory_bytes) return TooLittle(asked, least);
  MemoryShares shares;
  shares.limit_bytes = asked.memory_bytes;
  const double excess = static_cast<double>(std::max<std::int64_t>(0, sum - asked.memory_bytes));
  const double given_up = sum > least ? excess / static_cast<double>(sum - least) : 0;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    // Each by as much of what it has above its least.
    const std::int64_t above = parts[i].bytes - parts[i].least;
    const auto less = static_cast<std::int64_t>(std::ceil(given_up * static_cast<double>(above)));
    shares.bytes[i] = parts[i].bytes - std::min(above, less);
  }
  const std::int64_t unfolded = shares.of(MemoryShares::kUnfolded);
  shares.fold_bytes =
      asked.fold_bytes > 0 ? asked.fold_bytes : std::min(kFoldBytesMax, unfolded / 3);
  // As gRPC has it: a power of two.
  shares.window_bytes = kWindowBytesMin;
  while (shares.window_bytes * 2 <= kWindowBytesMax &&
         shares.window_bytes * 2 * asked.streams_max <= shares.of(MemoryShares::kWindows)) {
    shares.window_bytes *= 2;
  }
  return shares;
}

}  // namespace stepwell
