#include "server/caller.h"

#include <gtest/gtest.h>

namespace stepwell {
namespace {

TEST(CallerTest, WhatATokenFetchedPaysWithIt) {
  const struct {
    const char* name;
    const char* made_by;
    const char* payer;
  } rows[] = {
      {"created", "", "0123456789ab"},
      {"fetched by a created one", "ba9876543210", "ba9876543210"},
      {"fetched by the file's, as it was then", "admin:4f2a", "admin"},
  };
  for (const auto& row : rows) {
    SCOPED_TRACE(row.name);
    const auto holder = std::make_shared<TokenHolder>();
    holder->id = "0123456789ab";
    holder->made_by = row.made_by;
    EXPECT_EQ(PayerOf(*holder), row.payer);
    EXPECT_EQ(PayerOf(Caller(holder)), row.payer);
  }
  EXPECT_EQ(PayerOf(Caller()), "");
}

}  // namespace
}  // namespace stepwell
