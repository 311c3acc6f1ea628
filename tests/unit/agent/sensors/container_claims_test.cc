#include "client/agent/sensors/container_claims.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstddef>
#include <filesystem>
#include <iterator>
#include <string>

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
  // And a connection to who has it.
  EXPECT_EQ(DescriptorCount(), before + 3);
  // The ranks have left a. Also with long between two ticks, what is asked for stays.
  now += absl::Minutes(10);
  EXPECT_TRUE(first.Hold("b", now));
  first.GiveBack(now);
  EXPECT_EQ(DescriptorCount(), before + 2);
  EXPECT_EQ(first.count(), 1U);
  EXPECT_TRUE(second.Hold("a", now));
  EXPECT_FALSE(second.Hold("b", now));
  // Within some seconds nothing is given back: a rank may be between two processes.
  first.GiveBack(now + ContainerClaims::kKeptFor);
  EXPECT_EQ(first.count(), 1U);
}

TEST(ContainerClaimsTest, WhoWaitsAsksOnceHoweverLongItTakes) {
  ContainerClaims first(Trial());
  ContainerClaims second(Trial());
  ASSERT_TRUE(first.Hold("a", absl::ZeroDuration()));
  const std::ptrdiff_t before = DescriptorCount();
  // More often than may wait to be accepted.
  for (int i = 0; i < 5000; ++i) ASSERT_FALSE(second.Hold("a", absl::Seconds(i))) << i;
  EXPECT_EQ(DescriptorCount(), before + 1);
}

TEST(ContainerClaimsTest, AStrangersHoldOfANameKeepsNobodyFromMeasuring) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can be a stranger for a moment";
  const struct {
    const char* name;
    int type;
    bool listens;
  } rows[] = {
      {"it listens", SOCK_STREAM, true},
      {"it only has the name", SOCK_STREAM, false},
      {"it listens as no agent does", SOCK_SEQPACKET, true},
  };
  for (const auto& row : rows) {
    SCOPED_TRACE(row.name);
    ContainerClaims claims(Trial());
    ContainerClaims others(Trial());
    absl::Duration now;
    {
      const std::string name = ContainerClaims::NameOf(Trial(), "a");
      sockaddr_un named{};
      named.sun_family = AF_UNIX;
      name.copy(named.sun_path + 1, name.size());
      const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
      ASSERT_EQ(seteuid(40'001), 0);
      const FileDescriptor stranger(::socket(AF_UNIX, row.type | SOCK_CLOEXEC, 0));
      const int bound = bind(stranger.get(), reinterpret_cast<const sockaddr*>(&named), size);
      const int listening = row.listens ? listen(stranger.get(), 1) : 0;
      ASSERT_EQ(seteuid(0), 0);
      ASSERT_EQ(bound, 0);
      ASSERT_EQ(listening, 0);
      for (int i = 0; i < 10; ++i) {
        EXPECT_TRUE(claims.Hold("a", now));
        now += ContainerClaims::kTryInterval;
      }
    }
    // Once it is gone one of the agents has it.
    EXPECT_TRUE(claims.Hold("a", now));
    EXPECT_FALSE(others.Hold("a", now));
  }
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
