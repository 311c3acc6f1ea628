#include "client/agent/sensors/container_claims.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <iterator>

#include "absl/strings/str_cat.h"

namespace stepwell::agent {
namespace {

// As other runs of this test on the machine do not call theirs.
std::string Trial() { return absl::StrCat("claims of ", getpid()); }

std::ptrdiff_t DescriptorCount() {
  return std::distance(std::filesystem::directory_iterator("/proc/self/fd"), {});
}

TEST(ContainerClaimsTest, WhatIsNotAskedForAnyMoreIsGivenBackAndFreeForAnother) {
  const std::ptrdiff_t before = DescriptorCount();
  ContainerClaims first(Trial());
  ContainerClaims second(Trial());
  absl::Duration now;
  EXPECT_TRUE(first.Hold("a", now));
  EXPECT_TRUE(first.Hold("b", now));
  EXPECT_FALSE(second.Hold("a", now));
  EXPECT_EQ(DescriptorCount(), before + 2);
  // The ranks have left a. Also with long between two ticks, what is asked for stays.
  now += absl::Minutes(10);
  EXPECT_TRUE(first.Hold("b", now));
  first.GiveBack(now);
  EXPECT_EQ(DescriptorCount(), before + 1);
  EXPECT_EQ(first.count(), 1U);
  EXPECT_TRUE(second.Hold("a", now));
  EXPECT_FALSE(second.Hold("b", now));
  // Within some seconds nothing is given back: a rank may be between two processes.
  first.GiveBack(now + ContainerClaims::kKeptFor);
  EXPECT_EQ(first.count(), 1U);
}

TEST(ContainerClaimsTest, AtMost64Descriptors) {
  const std::ptrdiff_t before = DescriptorCount();
  ContainerClaims claims(Trial());
  int held = 0;
  for (int i = 0; i < 200; ++i) held += claims.Hold(absl::StrCat("c", i), absl::Seconds(i)) ? 1 : 0;
  EXPECT_EQ(held, 64);
  EXPECT_EQ(DescriptorCount(), before + 64);
  claims.GiveBack(absl::Minutes(10));
  EXPECT_EQ(DescriptorCount(), before);
  EXPECT_TRUE(claims.Hold("c199", absl::Minutes(10)));
}

TEST(ContainerClaimsTest, NamesAreTheTextsOrLongEnoughHashes) {
  EXPECT_EQ(ContainerClaims::NameOf("m\np\nt", "c"), "stepwell-container/m\np\nt\nc");
  const std::string longer(100, 'x');
  const std::string hashed = ContainerClaims::NameOf(longer, "c");
  EXPECT_LE(hashed.size(), ContainerClaims::kNameBytesMax);
  EXPECT_NE(hashed, ContainerClaims::NameOf(longer, "d"));
  EXPECT_EQ(hashed, ContainerClaims::NameOf(longer, "c"));
  EXPECT_EQ(hashed.size(), std::string("stepwell-container-hash/").size() + 32);
}

}  // namespace
}  // namespace stepwell::agent
