#include "base/tls/certificate_names.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/client_certificate.h"

namespace stepwell {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::OddClient;
using testing::OddNames;

TlsAuthority MakeCa() {
  return *TlsAuthority::Make("ca", absl::Now() - absl::Hours(1), absl::Now() + absl::Hours(9));
}

TEST(CertificateNamesTest, AreTakenWholeOrNotAtAll) {
  const std::string long_dns(254, 'a');
  const struct {
    const char* name;
    std::string given;
    std::string taken;  // empty = refused
  } rows[] = {
      {"dns", "dns:agent-7.lab", "dns:agent-7.lab"},
      {"small letters", "dns:Agent-7.LAB", "dns:agent-7.lab"},
      {"uri", "uri:spiffe://lab/Agent/7", "uri:spiffe://lab/Agent/7"},
      {"cn", "cn:Agent 7 \xc3\xa9", "cn:Agent 7 \xc3\xa9"},
      {"no kind", "agent-7.lab", ""},
      {"another kind", "email:a@lab", ""},
      {"empty", "", ""},
      {"empty dns", "dns:", ""},
      {"empty uri", "uri:", ""},
      {"empty cn", "cn:", ""},
      {"wildcard", "dns:*.lab", ""},
      {"wildcard in a uri", "uri:spiffe://lab/*", ""},
      {"wildcard in a cn", "cn:agent-*", ""},
      {"letters of no ASCII", "dns:\xc3\xa9.lab", ""},
      {"space in a dns", "dns:agent 7", ""},
      {"too long", "dns:" + long_dns, ""},
      {"no scheme", "uri:lab/agent", ""},
      {"space in a uri", "uri:spiffe://lab/a b", ""},
      {"control", "cn:agent\n7", ""},
      {"no UTF-8", "cn:agent\xff", ""},
      {"NUL", std::string("dns:agent\0.lab", 14), ""},
  };
  for (const auto& row : rows) {
    const auto taken = CheckCertificateName(row.given);
    EXPECT_EQ(taken.value_or(""), row.taken) << row.name;
    if (!taken.ok()) {
      EXPECT_THAT(taken.status().message(), HasSubstr("allowed: dns:NAME"));
    }
  }
}

TEST(ServerNamesTest, AreThoseThatClientsCallItBy) {
  const TlsAuthority ca = MakeCa();
  const auto names = [&](std::vector<std::string> given) {
    const TlsRequest request{TlsSide::kServer, "stepwell master", std::move(given),
                             absl::Now() - absl::Hours(1), absl::Now() + absl::Hours(1)};
    return ServerNames(ca.Sign(request)->cert_pem);
  };
  EXPECT_THAT(names({"localhost", "10.0.0.7", "Master.lab", "2001:db8::7", "localhost"}),
              ElementsAre("localhost", "10.0.0.7", "Master.lab", "2001:db8::7"));
  EXPECT_THAT(names({}), IsEmpty());
  std::vector<std::string> many;
  for (int i = 0; i < 300; ++i) many.push_back(absl::StrCat("host-", i, ".lab"));
  EXPECT_EQ(names(many), many) << "the bound is of clients' certificates";
  EXPECT_THAT(ServerNames("no certificate"), IsEmpty());
  // Names of a stranger's certificate may be anything.
  EXPECT_THAT(
      ServerNames(OddClient(ca, {.dns = {"*.lab", std::string("a\0b", 3), "a b", "", "good.lab"}})
                      .cert_pem),
      ElementsAre("good.lab"));
}

TEST(CertificateNamesTest, AreThoseOfTheFirstCertificateAndNoStrangeOnes) {
  const TlsAuthority ca = MakeCa();
  const auto names = [&](const OddNames& odd) {
    return CertificateNames(OddClient(ca, odd).cert_pem + ca.own().cert_pem);
  };
  EXPECT_THAT(names({.dns = {"B.lab", "a.lab", "b.lab"}, .uris = {"spiffe://lab/x"}}),
              ElementsAre("cn:test", "dns:a.lab", "dns:b.lab", "uri:spiffe://lab/x"));
  EXPECT_THAT(names({.dns = {std::string("good.lab\0.evil", 14), "*.lab", "g\xc3\xb6.lab", ""},
                     .uris = {"no-scheme", "spiffe://lab/\n"},
                     .common = {}}),
              IsEmpty());
  EXPECT_THAT(names({.common = {"one", "two"}}), IsEmpty()) << "nobody knows which is meant";
  EXPECT_THAT(names({.common = {"dns:a.lab"}}), ElementsAre("cn:dns:a.lab"));
  std::vector<std::string> many(65, "a.lab");
  EXPECT_THAT(names({.dns = many, .common = {}}), IsEmpty());
  many.pop_back();
  EXPECT_THAT(names({.dns = many, .common = {}}), ElementsAre("dns:a.lab"));
  EXPECT_THAT(CertificateNames("no certificate"), IsEmpty());
  EXPECT_THAT(CertificateNames(""), IsEmpty());
}

TEST(CertificateNamesTest, TheEndIsThatOfTheFirstCertificate) {
  const TlsAuthority ca = MakeCa();
  const absl::Time until = absl::FromUnixSeconds(absl::ToUnixSeconds(absl::Now()) + 3600);
  const TlsPair own = *ca.Sign({TlsSide::kClient, "a", {"a.lab"}, absl::Now(), until});
  EXPECT_EQ(CertificateEnd(own.cert_pem + ca.own().cert_pem), absl::ToUnixMicros(until));
  EXPECT_EQ(CertificateEnd("no certificate"), 1);
}

}  // namespace
}  // namespace stepwell
