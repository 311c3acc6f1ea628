// Tokens in the database: made, listed page by page, revoked, forgotten, used; and where trials lie.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "storage/pg_token_store.h"
#include "tests/contract/store_test.h"

namespace stepwell {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::StoreTest;

std::string IdOf(int number) { return absl::StrCat(absl::Hex(number, absl::kZeroPad12)); }

class TokenStoreTest : public StoreTest {
 protected:
  TokenRecord Create(int number, std::vector<std::string> grants = {"read:vision"}) {
    const auto made = store_.Create({.id = IdOf(number),
                                     .digest = std::string(32, static_cast<char>(number)),
                                     .name = absl::StrCat("token ", number),
                                     .grants = std::move(grants)});
    EXPECT_TRUE(made.ok()) << made.status();
    return made.value_or(TokenRecord());
  }
  std::vector<std::string> Living() {
    std::vector<std::string> ids;
    const auto living = store_.ReadLiving();
    EXPECT_TRUE(living.ok()) << living.status();
    for (const TokenRecord& token : living->tokens) ids.push_back(token.id);
    std::sort(ids.begin(), ids.end());
    return ids;
  }

  // Of which, and by whom: the id of a token that lives, or one of a file.
  TokenFetch FetchOf(int number, const std::string& made_by) const {
    return {.id = IdOf(number),
            .digest = std::string(32, static_cast<char>(number)),
            .name = "fetched by ci",
            .grant = "ingest:vision/run",
            .made_by = made_by,
            .lifetime = absl::Hours(1)};
  }
  absl::StatusCode Fetch(const TokenFetch& fetch) { return store_.Fetch(fetch).status().code(); }

  PgTokenStore store_{{.url = url_,
                       .fetched_per_trial_max = 3,
                       .fetched_per_maker_max = 6,
                       .family_living_max = 3}};
};

TEST_F(TokenStoreTest, OneThatIsFetchedIsBesideTheOthersAndIsReadByItself) {
  Create(1);
  const TokenNumbers before = *store_.ReadNumbers();
  const auto fetched = store_.Fetch(FetchOf(2, IdOf(1)));
  ASSERT_TRUE(fetched.ok()) << fetched.status();
  EXPECT_THAT(fetched->grants, ElementsAre("ingest:vision/run"));
  EXPECT_EQ(fetched->made_by, IdOf(1));
  EXPECT_EQ(fetched->family, IdOf(2));
  EXPECT_EQ(fetched->expires_time_us - fetched->created_time_us, 3'600'000'000);
  const TokenNumbers after = *store_.ReadNumbers();
  EXPECT_EQ(after.change_no, before.change_no);
  EXPECT_EQ(after.fetch_no, before.fetch_no + 1);
  ASSERT_TRUE(store_.Fetch(FetchOf(3, "admin:5f0c21d3a9be")).ok());
  const auto news = store_.ReadFetched(after.fetch_no);
  ASSERT_TRUE(news.ok()) << news.status();
  ASSERT_EQ(news->tokens.size(), 1u);
  EXPECT_EQ(news->tokens[0].id, IdOf(3));
  EXPECT_EQ(news->tokens[0].made_by, "admin:5f0c21d3a9be");
  EXPECT_EQ(news->tokens[0].digest, std::string(32, '\3'));
  EXPECT_EQ(news->numbers.fetch_no, after.fetch_no + 1);
  EXPECT_THAT(Living(), ElementsAre(IdOf(1), IdOf(2), IdOf(3)));
  EXPECT_EQ(store_.List({})->size(), 1u);
  EXPECT_EQ(store_.List({.with_fetched = true})->size(), 3u);
  EXPECT_NE(Fetch(FetchOf(2, IdOf(1))), absl::StatusCode::kOk) << "an id twice";
}

TEST_F(TokenStoreTest, OneThatIsFetchedEndsWithItsMakerWhichHasToLive) {
  TokenRecord maker{.id = IdOf(1), .digest = std::string(32, 'x'), .name = "ci"};
  maker.grants = {"write:vision"};
  maker.expires_time_us = absl::ToUnixMicros(absl::Now() + absl::Minutes(30));
  ASSERT_TRUE(store_.Create(maker).ok());
  TokenFetch second = FetchOf(3, IdOf(1));
  second.shown_id = second.family = IdOf(2);
  EXPECT_EQ(Fetch(second), absl::StatusCode::kUnauthenticated) << "what was shown is not there";
  const auto first = store_.Fetch(FetchOf(2, IdOf(1)));
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_EQ(first->expires_time_us, maker.expires_time_us);
  const auto renewed = store_.Fetch(second);
  ASSERT_TRUE(renewed.ok()) << renewed.status();
  EXPECT_EQ(renewed->family, IdOf(2));
  EXPECT_EQ(renewed->expires_time_us, maker.expires_time_us);
  Run("update stepwell.tokens set expires_time = now() where token_id like '%2'");
  EXPECT_THAT(Living(), ElementsAre(IdOf(1), IdOf(3))) << "a renewed one is good until its own end";
  second.id = IdOf(4);
  EXPECT_EQ(Fetch(second), absl::StatusCode::kUnauthenticated) << "what was shown has expired";
  ASSERT_TRUE(store_.Revoke(IdOf(1)).ok());
  EXPECT_THAT(Living(), ElementsAre());
  EXPECT_EQ(Fetch(FetchOf(5, IdOf(1))), absl::StatusCode::kUnauthenticated);
}

TEST_F(TokenStoreTest, RevokingOneThatWasFetchedEndsWhatItWasRenewedFromAndTo) {
  Create(1);
  for (const int number : {2, 5}) ASSERT_TRUE(store_.Fetch(FetchOf(number, IdOf(1))).ok());
  for (const int number : {3, 4}) {
    TokenFetch renewal = FetchOf(number, IdOf(1));
    renewal.grant = "ingest:id:7";  // so many may not be of the other
    renewal.shown_id = IdOf(number - 1);
    renewal.family = IdOf(2);
    ASSERT_TRUE(store_.Fetch(renewal).ok());
  }
  ASSERT_TRUE(store_.Revoke(IdOf(3)).ok());
  EXPECT_THAT(Living(), ElementsAre(IdOf(1), IdOf(5)));
}

TEST_F(TokenStoreTest, SoManyOfOneMakerAndTrialLiveAndOthersAreNotCounted) {
  Create(1);
  Create(2);
  for (const int number : {11, 12, 13}) ASSERT_TRUE(store_.Fetch(FetchOf(number, IdOf(1))).ok());
  const absl::Status full = store_.Fetch(FetchOf(14, IdOf(1))).status();
  EXPECT_EQ(full.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(full.message()), HasSubstr("limit 3"));
  EXPECT_EQ(Fetch(FetchOf(15, IdOf(2))), absl::StatusCode::kOk) << "another maker";
  TokenFetch other_trial = FetchOf(16, IdOf(1));
  other_trial.grant = "ingest:vision/other";
  EXPECT_EQ(Fetch(other_trial), absl::StatusCode::kOk);
  Run("update stepwell.tokens set expires_time = now() where token_id like '%b'");
  EXPECT_EQ(Fetch(FetchOf(17, IdOf(1))), absl::StatusCode::kOk) << "one has expired";
}

TEST_F(TokenStoreTest, OneThatIsRenewedAgainAndAgainTakesNoOthersPlace) {
  Create(1);
  TokenFetch renewal = FetchOf(12, IdOf(1));
  renewal.shown_id = renewal.family = IdOf(11);
  ASSERT_TRUE(store_.Fetch(FetchOf(11, IdOf(1))).ok());
  renewal.grant = "ingest:id:7";
  ASSERT_TRUE(store_.Fetch(renewal).ok());
  renewal.id = IdOf(13);
  ASSERT_TRUE(store_.Fetch(renewal).ok());
  renewal.id = IdOf(14);
  const absl::Status full = store_.Fetch(renewal).status();
  EXPECT_EQ(full.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(full.message()), HasSubstr("renewed one from the other"));
  EXPECT_EQ(Fetch(FetchOf(14, IdOf(1))), absl::StatusCode::kOk) << "another family";
}

TEST_F(TokenStoreTest, RowsOfOneMakerAreBoundedThoseThatEndedAmongThem) {
  Create(1);
  for (int number = 11; number < 17; ++number) {
    ASSERT_TRUE(store_.Fetch(FetchOf(number, IdOf(1))).ok());
    Run("update stepwell.tokens set expires_time = now() where made_by is not null");
  }
  const absl::Status full = store_.Fetch(FetchOf(17, IdOf(1))).status();
  EXPECT_EQ(full.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(full.message()), HasSubstr("limit 6"));
  Run("update stepwell.tokens set expires_time = now() - interval '11 minutes' "
      "where made_by is not null");
  EXPECT_EQ(Fetch(FetchOf(17, IdOf(1))), absl::StatusCode::kOk) << "they are forgotten";
}

TEST_F(TokenStoreTest, ARenewalEndsNinetyDaysAfterTheFirst) {
  Create(1);
  TokenFetch renewal = FetchOf(12, IdOf(1));
  renewal.shown_id = renewal.family = IdOf(11);
  ASSERT_TRUE(store_.Fetch(FetchOf(11, IdOf(1))).ok());
  Run("update stepwell.tokens set family_time = now() - interval '90 days' + interval '1 minute' "
      "where made_by is not null");
  const auto last = store_.Fetch(renewal);
  ASSERT_TRUE(last.ok()) << last.status();
  EXPECT_LE(last->expires_time_us - last->created_time_us, 60'000'000);
  Run("update stepwell.tokens set expires_time = now() where token_id like '%b'");
  Run("update stepwell.tokens set family_time = now() - interval '90 days' where made_by is not "
      "null");
  renewal.shown_id = IdOf(12);
  renewal.id = IdOf(13);
  EXPECT_EQ(Fetch(renewal), absl::StatusCode::kUnauthenticated);
  EXPECT_EQ(Number("select count(*) from stepwell.tokens"), 3) << "and none is made";
}

TEST_F(TokenStoreTest, ATextThatIsFoundEndsItsRenewalsHoweverLongItIsOver) {
  Create(1);
  TokenFetch renewal = FetchOf(12, IdOf(1));
  renewal.shown_id = renewal.family = IdOf(11);
  ASSERT_TRUE(store_.Fetch(FetchOf(11, IdOf(1))).ok());
  ASSERT_TRUE(store_.Fetch(renewal).ok());
  Run("update stepwell.tokens set expires_time = now() - interval '2 days' where token_id like "
      "'%b'");
  ASSERT_TRUE(store_.Fetch(FetchOf(14, IdOf(1))).ok());
  ASSERT_TRUE(store_.Revoke(IdOf(11)).ok());
  EXPECT_THAT(Living(), ElementsAre(IdOf(1), IdOf(14)));
}

TEST_F(TokenStoreTest, WhatWasFetchedIsForgottenTenMinutesAfterItsEndAndTakesNoPlaceOfOthers) {
  Create(1);
  for (const int number : {2, 3}) ASSERT_TRUE(store_.Fetch(FetchOf(number, IdOf(1))).ok());
  Run("update stepwell.tokens set expires_time = now() - interval '11 minutes' where token_id like "
      "'%2'");
  Run("update stepwell.tokens set expires_time = now() - interval '9 minutes' where token_id like "
      "'%3'");
  ASSERT_TRUE(store_.Fetch(FetchOf(4, IdOf(1))).ok());
  EXPECT_EQ(Number("select count(*) from stepwell.tokens"), 3);
  Run("insert into stepwell.tokens (token_id, secret_sha256, name, grants, expires_time, made_by, "
      "family, family_time, fetch_no) select lpad(to_hex(n + 100), 12, '0'), "
      "sha256(n::text::bytea), 't', "
      "'{ingest:a/b}', now() + interval '1 hour', '000000000001', 'f', now(), 1 "
      "from generate_series(1, 10000) n");
  Create(5);
}

TEST_F(TokenStoreTest, KeepsWhatItIsGivenAndRaisesItsNumber) {
  const std::int64_t before = store_.ReadNumbers()->change_no;
  const TokenRecord made = Create(1, {"ingest:default/a/b", "read:vision"});
  EXPECT_GT(made.created_time_us, 1'500'000'000'000'000);
  EXPECT_EQ(made.expires_time_us, 0);
  const auto living = store_.ReadLiving();
  ASSERT_TRUE(living.ok()) << living.status();
  EXPECT_EQ(living->numbers.change_no, before + 1);
  ASSERT_EQ(living->tokens.size(), 1u);
  EXPECT_EQ(living->tokens[0].digest, std::string(32, '\1'));
  EXPECT_EQ(living->tokens[0].name, "token 1");
  EXPECT_THAT(living->tokens[0].grants, ElementsAre("ingest:default/a/b", "read:vision"));
  EXPECT_FALSE(store_.Create(made).ok()) << "an id twice";
  EXPECT_EQ(store_.ReadNumbers()->change_no, before + 1);
}

TEST_F(TokenStoreTest, ACertificateHasGrantsOnceWhileTheyLive) {
  const auto give = [&](int number, const std::string& certificate, std::int64_t expires_us = 0) {
    TokenRecord token{.id = IdOf(number), .name = "agent", .grants = {"read:vision"}};
    token.certificate = certificate;
    token.expires_time_us = expires_us;
    return store_.Create(token);
  };
  const auto made = give(1, "dns:a.lab");
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_EQ(made->certificate, "dns:a.lab");
  EXPECT_EQ(made->digest, "");
  const auto living = store_.ReadLiving();
  ASSERT_EQ(living->tokens.size(), 1u);
  EXPECT_EQ(living->tokens[0].certificate, "dns:a.lab");
  const auto twice = give(2, "dns:a.lab");
  EXPECT_EQ(twice.status().code(), absl::StatusCode::kAlreadyExists);
  EXPECT_THAT(twice.status().message(), HasSubstr(IdOf(1)));
  EXPECT_TRUE(give(3, "dns:b.lab", absl::ToUnixMicros(absl::Now()) - 1'000'000).ok());
  EXPECT_TRUE(give(4, "dns:b.lab").ok()) << "the one of before has expired";
  EXPECT_EQ(store_.Revoke(IdOf(1))->certificate, "dns:a.lab");
  EXPECT_TRUE(give(5, "dns:a.lab").ok());
  EXPECT_FALSE(store_.Create({.id = IdOf(6), .name = "no key", .grants = {"admin"}}).ok());
}

TEST_F(TokenStoreTest, ARevokedOneLivesNoMoreAndOnceMoreChangesNothing) {
  Create(1);
  Create(2);
  const std::int64_t before = store_.ReadNumbers()->change_no;
  const auto revoked = store_.Revoke(IdOf(1));
  ASSERT_TRUE(revoked.ok()) << revoked.status();
  EXPECT_GT(revoked->revoked_time_us, 0);
  EXPECT_THAT(Living(), ElementsAre(IdOf(2)));
  EXPECT_EQ(store_.ReadNumbers()->change_no, before + 1);
  EXPECT_EQ(store_.Revoke(IdOf(1))->revoked_time_us, revoked->revoked_time_us);
  EXPECT_EQ(store_.Revoke(IdOf(3)).status().code(), absl::StatusCode::kNotFound);
}

TEST_F(TokenStoreTest, AnExpiredOneLivesNoMore) {
  const std::int64_t now_us = absl::ToUnixMicros(absl::Now());
  for (const auto& [number, expires_us] :
       {std::pair{1, now_us - 1'000'000}, {2, now_us + 3'600'000'000}}) {
    TokenRecord token{.id = IdOf(number), .digest = std::string(32, 'x'), .name = "t"};
    token.grants = {"admin"};
    token.expires_time_us = expires_us;
    const auto made = store_.Create(token);
    ASSERT_TRUE(made.ok()) << made.status();
    EXPECT_EQ(made->expires_time_us, expires_us) << "to the microsecond";
  }
  EXPECT_THAT(Living(), ElementsAre(IdOf(2)));
}

TEST_F(TokenStoreTest, TellsThoseThatEndedTheLastOneLast) {
  for (int i = 1; i <= 4; ++i) Create(i);
  TokenRecord expired{.id = IdOf(5), .digest = std::string(32, 'x'), .name = "t"};
  expired.grants = {"admin"};
  expired.expires_time_us = absl::ToUnixMicros(absl::Now() - absl::Hours(1));
  ASSERT_TRUE(store_.Create(expired).ok());
  TokenRecord given{.id = IdOf(6), .name = "t", .grants = {"admin"}, .certificate = "dns:a"};
  ASSERT_TRUE(store_.Create(given).ok());
  ASSERT_EQ(Fetch(FetchOf(7, IdOf(3))), absl::StatusCode::kOk);
  ASSERT_EQ(Fetch(FetchOf(8, IdOf(4))), absl::StatusCode::kOk);
  for (const int number : {2, 1, 3, 6}) ASSERT_TRUE(store_.Revoke(IdOf(number)).ok());
  const auto ended = [this](int limit) {
    std::vector<std::string> ids;
    const auto read = store_.ReadEnded(limit);
    EXPECT_TRUE(read.ok()) << read.status();
    for (const TokenRecord& token : *read) ids.push_back(token.id);
    return ids;
  };
  // The seventh ends with its maker, before its own time.
  EXPECT_THAT(ended(10), ElementsAre(IdOf(5), IdOf(2), IdOf(1), IdOf(3), IdOf(7)));
  EXPECT_THAT(ended(3), ElementsAre(IdOf(1), IdOf(3), IdOf(7)));
  EXPECT_EQ(store_.ReadEnded(1)->front().digest, std::string(32, 7));
}

TEST_F(TokenStoreTest, ListsNewestFirstPageByPage) {
  for (int number = 1; number <= 5; ++number) Create(number);
  ASSERT_TRUE(store_.Revoke(IdOf(4)).ok());
  const auto ids_of = [&](bool with_ended) {
    std::vector<std::string> ids;
    TokenPage page{.with_ended = with_ended, .limit = 2};
    for (;;) {
      const auto tokens = store_.List(page);
      EXPECT_TRUE(tokens.ok()) << tokens.status();
      if (!tokens.ok() || tokens->empty()) return ids;
      for (const TokenRecord& token : *tokens) ids.push_back(token.id);
      page.after = TokenPage::After{tokens->back().created_time_us, tokens->back().id};
    }
  };
  EXPECT_THAT(ids_of(false), ElementsAre(IdOf(5), IdOf(3), IdOf(2), IdOf(1)));
  EXPECT_THAT(ids_of(true), ElementsAre(IdOf(5), IdOf(4), IdOf(3), IdOf(2), IdOf(1)));
}

TEST_F(TokenStoreTest, WhatEndedThirtyDaysAgoGoesWithTheNextThatIsMade) {
  for (int number = 1; number <= 4; ++number) Create(number);
  Run("update stepwell.tokens set revoked_time = now() - interval '31 days' where token_id like "
      "'%1'");
  Run("update stepwell.tokens set expires_time = now() - interval '31 days' where token_id like "
      "'%2'");
  Run("update stepwell.tokens set expires_time = now() - interval '29 days' where token_id like "
      "'%3'");
  Create(5);
  EXPECT_EQ(Number("select count(*) from stepwell.tokens"), 3);
  EXPECT_THAT(Living(), ElementsAre(IdOf(4), IdOf(5)));
}

TEST_F(TokenStoreTest, TenThousandLiveAtOnce) {
  Run("insert into stepwell.tokens (token_id, secret_sha256, name, grants) select "
      "lpad(to_hex(n), 12, '0'), sha256(n::text::bytea), 't', '{admin}' "
      "from generate_series(1, 10000) n");
  const absl::Status full =
      store_
          .Create({.id = IdOf(0), .digest = std::string(32, 'x'), .name = "t", .grants = {"admin"}})
          .status();
  EXPECT_EQ(full.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(full.message()), HasSubstr("limit 10000"));
  ASSERT_TRUE(store_.Revoke(IdOf(7)).ok());
  Create(0);
}

TEST_F(TokenStoreTest, NotesTheLatestUseAlone) {
  Create(1);
  Create(2);
  ASSERT_TRUE(store_.NoteUsed({{IdOf(1), 1'700'000'000'123'456}, {IdOf(9), 1}}).ok());
  ASSERT_TRUE(store_.NoteUsed({{IdOf(1), 1'600'000'000'000'000}}).ok());
  const auto tokens = store_.List({});
  ASSERT_TRUE(tokens.ok());
  EXPECT_EQ(tokens->at(1).used_time_us, 1'700'000'000'123'456);
  EXPECT_EQ(tokens->at(0).used_time_us, 0);
}

TEST_F(TokenStoreTest, TellsWhereATrialLies) {
  const OpenedWriter writer = OpenWriter("my-run");
  const auto by_name = store_.FindPlace({.external_id = "my-run"});
  ASSERT_TRUE(by_name.ok()) << by_name.status();
  EXPECT_EQ(by_name->trial_id, Value(writer.trial_id));
  EXPECT_EQ(by_name->project, "default");
  const auto by_number = store_.FindPlace({.trial_id = Value(writer.trial_id)});
  ASSERT_TRUE(by_number.ok()) << by_number.status();
  EXPECT_EQ(by_number->external_id, "my-run");
  EXPECT_EQ(store_.FindPlace({.external_id = "other"}).status(),
            absl::NotFoundError("there is no trial 'other' in project 'default'"));
  Run("update stepwell.trials set deleted_time = now()");
  EXPECT_TRUE(store_.FindPlace({.external_id = "my-run"}).ok()) << "its tombstone lies there";
}

TEST_F(TokenStoreTest, NobodyElseReadsThem) {
  EXPECT_EQ(
      Number("select count(*) from pg_roles r, (values ('tokens'), ('token_changes')) t (name) "
             "where r.rolname = 'stepwell_read' "
             "and has_table_privilege(r.oid, 'stepwell.' || t.name, 'select')"),
      0);
}

}  // namespace
}  // namespace stepwell
