// When a token is fetched, shown and let go of: whatever the master says, and however long tokens live.
#include "client/agent/token_renewal.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "absl/random/random.h"
#include "absl/strings/str_cat.h"
#include "tests/support/codec_vectors.h"

namespace stepwell::agent {
namespace {

constexpr absl::Duration kStart = absl::Seconds(1000);

TEST(TokenRenewalTest, IsFetchedAtOnceAndRenewedAtAboutHalfOfItsLife) {
  TokenRenewal renewal(kStart);
  EXPECT_TRUE(renewal.IsFetchDue(kStart));
  EXPECT_EQ(renewal.Shown(kStart), "");
  const struct {
    const char* name;
    double chance;
    absl::Duration renewed;
  } rows[] = {{"first", 0.0, absl::Minutes(24)},
              {"middle", 0.5, absl::Minutes(30)},
              {"last", 1.0, absl::Minutes(36)}};
  for (const auto& row : rows) {
    SCOPED_TRACE(row.name);
    renewal.OnFetched(row.name, absl::Hours(1), kStart, row.chance);
    EXPECT_EQ(renewal.Shown(kStart), row.name);
    EXPECT_EQ(renewal.NextTime(kStart), kStart + row.renewed);
    EXPECT_FALSE(renewal.IsFetchDue(kStart + row.renewed - absl::Seconds(1)));
    EXPECT_TRUE(renewal.IsFetchDue(kStart + row.renewed));
    EXPECT_EQ(renewal.Shown(kStart + absl::Hours(1) - absl::Seconds(31)), row.name);
    EXPECT_EQ(renewal.Shown(kStart + absl::Hours(1) - absl::Seconds(30)), "") << "near its end";
  }
}

TEST(TokenRenewalTest, WhatFailsIsTriedAgainWithoutHasteAndTheOldOneIsShownMeanwhile) {
  const struct {
    const char* name;
    absl::Status why;
    bool is_held;  // one that was fetched lives
    absl::Duration soonest, latest;
  } rows[] = {
      {"away", absl::UnavailableError(""), false, absl::Milliseconds(500), absl::Minutes(1)},
      {"full", absl::ResourceExhaustedError(""), false, absl::Milliseconds(500), absl::Minutes(1)},
      {"older master", absl::UnimplementedError(""), false, absl::Minutes(5), absl::Minutes(5)},
      {"asks nobody", absl::FailedPreconditionError(""), false, absl::Minutes(5), absl::Minutes(5)},
      {"denied", absl::PermissionDeniedError(""), false, absl::Minutes(5), absl::Minutes(5)},
      {"not known", absl::UnauthenticatedError(""), false, absl::Milliseconds(500),
       absl::Minutes(5)},
      {"denied to renew", absl::PermissionDeniedError(""), true, absl::Milliseconds(500),
       absl::Minutes(1)},
  };
  for (const auto& row : rows) {
    SCOPED_TRACE(row.name);
    TokenRenewal renewal(kStart);
    if (row.is_held) renewal.OnFetched("held", absl::Hours(1), kStart, 0);
    const absl::Duration now = kStart + (row.is_held ? absl::Minutes(24) : absl::ZeroDuration());
    for (int i = 0; i < 20; ++i) {
      renewal.OnFailed(row.why, renewal.Shown(now), now);
      EXPECT_EQ(renewal.Shown(now), row.is_held ? "held" : "");
      EXPECT_GE(renewal.NextTime(now), now + row.soonest);
      EXPECT_LE(renewal.NextTime(now), now + row.latest);
    }
  }
}

TEST(TokenRenewalTest, OneThatIsRefusedIsShownNoMoreAndTheCredentialOfBeforeIsTriedSoon) {
  TokenRenewal renewal(kStart);
  renewal.OnFetched("first", absl::Hours(1), kStart, 0);
  renewal.OnRejected("another", kStart);
  EXPECT_EQ(renewal.Shown(kStart), "first");
  renewal.OnRejected("first", kStart);
  EXPECT_EQ(renewal.Shown(kStart), "");
  EXPECT_LE(renewal.NextTime(kStart), kStart + absl::Seconds(3));
  renewal.OnFetched("second", absl::Hours(1), kStart, 0);
  renewal.OnFailed(absl::UnauthenticatedError(""), "second", kStart);
  EXPECT_EQ(renewal.Shown(kStart), "");
  EXPECT_LE(renewal.NextTime(kStart), kStart + absl::Seconds(3));
}

// A launcher's: what the agent was started with ended long ago.
TEST(TokenRenewalTest, WhereItIsTheOnlyOneItIsShownOnAndTriedAgainBeforeItsEnd) {
  for (const absl::Duration lives : {absl::Seconds(10), absl::Minutes(1), absl::Hours(1)}) {
    SCOPED_TRACE(lives);
    TokenRenewal renewal(kStart);
    renewal.OnFetched("first", lives, kStart, 0);
    renewal.SetOnlyOne();
    // As late as it is renewed at all.
    absl::Duration now = kStart + lives * 0.6;
    const absl::Duration end = kStart + lives - std::min(lives * 0.1, absl::Seconds(30));
    renewal.OnFailed(absl::UnauthenticatedError(""), "first", now);
    int tries = 0;
    while (renewal.NextTime(now) < end) {
      const absl::Duration next = renewal.NextTime(now);
      ASSERT_GE(next, now + absl::Milliseconds(500));
      ASSERT_LE(next, now + std::max((end - now) * 0.25, absl::Milliseconds(500)));
      EXPECT_EQ(renewal.Shown(now), "first");
      // Its writers say so as well, each of them.
      renewal.OnRejected("first", now);
      EXPECT_EQ(renewal.NextTime(now), next);
      now = next;
      EXPECT_TRUE(renewal.IsFetchDue(now));
      renewal.OnFailed(absl::UnauthenticatedError(""), "first", now);
      ++tries;
    }
    EXPECT_GE(tries, 3);
    EXPECT_LE(tries, 60);
    EXPECT_EQ(renewal.Shown(end), "");
    renewal.OnFetched("second", lives, now, 0);
    EXPECT_EQ(renewal.Shown(now), "second");
    renewal.OnRejected("second", now);
    EXPECT_EQ(renewal.Shown(now), "second");
  }
}

TEST(TokenRenewalTest, WhereTheOtherOneIsRefusedAsWellTheyAreTriedInTurnUntilItsEnd) {
  TokenRenewal renewal(kStart);
  renewal.OnFetched("first", absl::Hours(1), kStart, 0);
  absl::Duration now = kStart;
  for (int i = 0; i < 5; ++i) {
    renewal.OnFailed(absl::UnauthenticatedError(""), "first", now);
    EXPECT_EQ(renewal.Shown(now), "");
    now = renewal.NextTime(now);
    renewal.OnFailed(absl::UnavailableError(""), "", now);
    EXPECT_EQ(renewal.Shown(now), "") << "that says nothing of it";
    now = renewal.NextTime(now);
    renewal.OnFailed(absl::UnauthenticatedError(""), "", now);
    EXPECT_EQ(renewal.Shown(now), "first");
    now = renewal.NextTime(now);
    EXPECT_TRUE(renewal.IsFetchDue(now));
  }
  now = kStart + absl::Minutes(59) + absl::Seconds(30);
  renewal.OnFailed(absl::UnauthenticatedError(""), "", now);
  EXPECT_EQ(renewal.Shown(now), "");
}

// A maker that ends soon: what it makes lives ever shorter.
TEST(TokenRenewalTest, WhatLivesEverShorterIsNotFetchedEverFaster) {
  const absl::Duration end = kStart + absl::Hours(3);
  TokenRenewal renewal(kStart);
  absl::Duration now = kStart;
  int fetches = 0;
  while (now < end) {
    if (renewal.IsFetchDue(now)) {
      renewal.OnFetched(absl::StrCat(++fetches), std::min(absl::Hours(1), end - now), now, 0);
      ASSERT_GE(renewal.NextTime(now), now + std::min((end - now) * 0.9, absl::Seconds(15)));
    }
    now = renewal.NextTime(now);
  }
  EXPECT_LE(fetches, 40);
  // Whatever is said of a life.
  renewal.OnFetched("brief", absl::Nanoseconds(1), end, 0);
  EXPECT_GE(renewal.NextTime(end + absl::Nanoseconds(1)), end + absl::Milliseconds(500));
}

// A master that gives what it does not take.
TEST(TokenRenewalTest, WhatIsRefusedEachTimeIsFetchedEverMoreSeldom) {
  TokenRenewal renewal(kStart);
  absl::Duration now = kStart;
  int fetches = 0;
  for (; now < kStart + absl::Hours(1); now = renewal.NextTime(now)) {
    renewal.OnFetched(absl::StrCat(++fetches), absl::Hours(1), now, 0);
    renewal.OnRejected(absl::StrCat(fetches), now);
  }
  EXPECT_LE(fetches, 120);
  // One that was taken until its turn ends that.
  renewal.OnFetched("good", absl::Hours(1), now, 0);
  renewal.OnFetched("better", absl::Hours(1), now + absl::Minutes(24), 0);
  renewal.OnRejected("better", now + absl::Minutes(25));
  EXPECT_LE(renewal.NextTime(now), now + absl::Minutes(25) + absl::Seconds(1));
}

// Whoever asks at each time that it names, and no other, always has a token that lives.
TEST(TokenRenewalTest, WhoComesWhenItSaysHasATokenThatLives) {
  std::seed_seq seed{stepwell::testing::TestSeed()};
  absl::BitGen chance(seed);
  for (int round = 0; round < 500; ++round) {
    // As a master gives them, and its makers' ends shorten them.
    const int longest = absl::Uniform(chance, 4, 86'400);
    absl::Duration now = kStart;
    TokenRenewal renewal(now);
    absl::Duration ends = now;
    bool had = false;
    for (int i = 0; i < 50; ++i) {
      if (renewal.IsFetchDue(now)) {
        const absl::Duration took = absl::Milliseconds(absl::Uniform(chance, 0, 100));
        const absl::Duration lives = absl::Seconds(absl::Uniform(chance, longest / 2, longest));
        renewal.OnFetched(absl::StrCat(i), lives, now, absl::Uniform(chance, 0.0, 1.0));
        ends = now + lives;
        now += took;
        had = true;
      }
      ASSERT_FALSE(had && renewal.Shown(now).empty()) << round;
      ASSERT_LT(now, ends) << round;
      const absl::Duration next = renewal.NextTime(now);
      ASSERT_GT(next, now) << round;
      now = next;
    }
  }
}

}  // namespace
}  // namespace stepwell::agent
