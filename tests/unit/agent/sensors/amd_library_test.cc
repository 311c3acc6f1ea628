#include "client/agent/sensors/amd_library.h"

#include <gtest/gtest.h>

#include <cstring>

namespace stepwell::agent {
namespace {

TEST(AmdLibraryTest, ALimitsUnitIsKnownByItsSize) {
  const std::pair<std::uint64_t, double> rows[] = {{15, 15},
                                                   {550, 550},
                                                   {99'999, 99'999},
                                                   {1'000'000, 1},
                                                   {550'000'000, 550},
                                                   {1'000'000'000, 1000},
                                                   {203'500'000, 203.5}};
  for (const auto& [limit, watts] : rows) EXPECT_EQ(AmdWatts(limit).value(), watts) << limit;
  // None at all, neither unit, two numbers of 32 bits side by side, not known.
  for (const std::uint64_t limit :
       {std::uint64_t{0}, std::uint64_t{100'000}, std::uint64_t{999'999},
        std::uint64_t{550} << 32 | 550, ~std::uint64_t{0}}) {
    EXPECT_TRUE(absl::IsUnimplemented(AmdWatts(limit).status())) << limit;
  }
}

absl::StatusOr<AmdTable> TableOf(int format, int revision) {
  return ReadAmdTable([&](std::byte* room) {
    // All that a library of today fills in, each number another one.
    for (std::uint64_t at = 0; at < 4544; at += sizeof(at)) std::memcpy(room + at, &at, sizeof(at));
    room[2] = static_cast<std::byte>(format);
    room[3] = static_cast<std::byte>(revision);
    return absl::OkStatus();
  });
}

TEST(AmdLibraryTest, ATableIsReadAsFarAsItsRevisionReaches) {
  for (int revision = 0; revision < 10; ++revision) {
    SCOPED_TRACE(revision);
    const AmdTable table = TableOf(1, revision).value();
    EXPECT_EQ(table.revision, revision);
    EXPECT_EQ(table.throttlers.has_value(), revision == 3);
    EXPECT_EQ(table.received_kib[0].has_value(), revision >= 4);
    EXPECT_EQ(table.sent_kib[7].has_value(), revision >= 4);
    EXPECT_EQ(table.cycles.has_value(), revision >= 6);
  }
  EXPECT_EQ(TableOf(1, 3)->throttlers, 112u);
  EXPECT_EQ(TableOf(1, 6)->received_kib[7], 184u + 56);
  EXPECT_EQ(TableOf(1, 6)->sent_kib[0], 248u);
  EXPECT_EQ(TableOf(1, 6)->cycles->all, 424u);
  EXPECT_EQ(TableOf(1, 6)->cycles->memory_hot, 464u);
}

TEST(AmdLibraryTest, ATableOfAnotherFormatAndOneNotFilledInSayNothing) {
  EXPECT_TRUE(absl::IsUnimplemented(TableOf(2, 3).status()));
  EXPECT_TRUE(
      absl::IsUnimplemented(ReadAmdTable([](std::byte*) { return absl::OkStatus(); }).status()));
  EXPECT_TRUE(absl::IsUnavailable(
      ReadAmdTable([](std::byte*) { return absl::UnavailableError("no"); }).status()));
  const AmdTable bare = ReadAmdTable([](std::byte* room) {
                          room[2] = std::byte{1};
                          room[3] = std::byte{8};
                          return absl::OkStatus();
                        }).value();
  EXPECT_FALSE(bare.cycles || bare.throttlers || bare.sent_kib[0] || bare.received_kib[7]);
}

}  // namespace
}  // namespace stepwell::agent
