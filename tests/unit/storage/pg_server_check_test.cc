#include "storage/pg_server_check.h"

#include <gtest/gtest.h>

#include <string>

namespace stepwell {
namespace {

std::string Said(const PgServerFacts& facts) { return CheckServerFacts(facts).ToString(); }

PgServerFacts Good() { return {.version = 150020, .encoding = "UTF8"}; }

TEST(PgServerCheckTest, ADurableServerPasses) {
  EXPECT_EQ(Said(Good()), "OK");
  PgServerFacts newer = Good();
  newer.version = 180001;
  EXPECT_EQ(Said(newer), "OK");
}

TEST(PgServerCheckTest, WhatIsWrongAndItsRemedyAreSaid) {
  PgServerFacts old = Good();
  old.version = 140011;
  EXPECT_EQ(Said(old),
            "FAILED_PRECONDITION: the PostgreSQL server is of version 14; 15 or newer is needed: "
            "upgrade it, or give --database-url of another");
  PgServerFacts latin = Good();
  latin.encoding = "LATIN1";
  EXPECT_EQ(
      Said(latin),
      "FAILED_PRECONDITION: the database has the encoding LATIN1; UTF8 is needed: make another "
      "(createdb --encoding UTF8 --template template0 NAME)");
  PgServerFacts unsynced = Good();
  unsynced.fsync = false;
  EXPECT_EQ(Said(unsynced),
            "FAILED_PRECONDITION: the PostgreSQL server has fsync = off: a power cut would lose "
            "samples that were acked. Mend it: alter system set fsync = on; select "
            "pg_reload_conf();");
  PgServerFacts torn = Good();
  torn.full_page_writes = false;
  EXPECT_EQ(
      Said(torn),
      "FAILED_PRECONDITION: the PostgreSQL server has full_page_writes = off: a power cut could "
      "damage what was acked. Mend it: alter system set full_page_writes = on; select "
      "pg_reload_conf();");
}

}  // namespace
}  // namespace stepwell
