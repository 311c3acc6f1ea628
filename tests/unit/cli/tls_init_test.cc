// stepwell tls init: what it makes, who may read it, how long it lasts, and that nothing is written over.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <string>

#include "base/tls/openssl_text.h"
#include "nlohmann/json.hpp"
#include "tests/unit/cli/outcome.h"

namespace stepwell::cli {
namespace {

using ::testing::HasSubstr;

class TlsInitTest : public ::testing::Test {
 protected:
  TlsInitTest() { std::filesystem::remove_all(directory_); }
  ~TlsInitTest() override { std::filesystem::remove_all(directory_); }
  Outcome Init(const std::vector<std::string>& more = {}) {
    std::vector<std::string> words = {"tls", "init", directory_};
    words.insert(words.end(), more.begin(), more.end());
    return RunWords(words);
  }
  std::string Read(const std::string& name) const {
    std::ifstream file(directory_ + "/" + name);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  OpensslOwned<X509> Certificate(const std::string& name) const {
    return OpensslOwned<X509>(
        PEM_read_bio_X509(BioOf(Read(name)).get(), nullptr, nullptr, nullptr));
  }
  bool IsSignedByTheCa(const std::string& name) const {
    const auto ca = Certificate("ca.pem");
    return X509_verify(Certificate(name).get(), X509_get0_pubkey(ca.get())) == 1;
  }
  int DaysLeft(const std::string& name) const {
    int days = -1;
    int seconds = 0;
    const auto certificate = Certificate(name);
    ASN1_TIME_diff(&days, &seconds, nullptr, X509_get0_notAfter(certificate.get()));
    return seconds > 43'200 ? days + 1 : days;
  }
  std::set<std::string> Files() const {
    std::set<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(directory_)) {
      names.insert(entry.path().filename());
    }
    return names;
  }

  const std::string directory_ =
      ::testing::TempDir() + "tls-init-" + std::to_string(getpid()) + "-certs";
};

TEST_F(TlsInitTest, MakesACaAndPairsWhoseKeysTheirOwnerAloneReads) {
  const mode_t before = umask(0);
  const Outcome made = Init({"--name", "master.lab", "--name", "10.0.0.7"});
  umask(before);
  ASSERT_EQ(made.exit, 0) << made.err;
  EXPECT_THAT(made.out, HasSubstr("master.lab 10.0.0.7"));
  EXPECT_EQ(Files(), (std::set<std::string>{"ca.key", "ca.pem", "client.key", "client.pem",
                                            "server.key", "server.pem"}));
  struct stat found {};
  ASSERT_EQ(stat(directory_.c_str(), &found), 0);
  EXPECT_EQ(found.st_mode & 07777, 0700u);
  for (const std::string& name : Files()) {
    ASSERT_EQ(stat((directory_ + "/" + name).c_str(), &found), 0);
    EXPECT_EQ(found.st_mode & 07777, name.ends_with(".key") ? 0600u : 0644u) << name;
  }
  for (const std::string name : {"server.pem", "client.pem"}) {
    EXPECT_TRUE(IsSignedByTheCa(name)) << name;
    EXPECT_EQ(DaysLeft(name), 398) << name;
  }
  EXPECT_EQ(DaysLeft("ca.pem"), 3650);
  const auto server = Certificate("server.pem");
  for (const char* name : {"master.lab", "localhost"}) {
    EXPECT_EQ(X509_check_host(server.get(), name, 0, 0, nullptr), 1) << name;
  }
  EXPECT_EQ(X509_check_ip_asc(server.get(), "10.0.0.7", 0), 1);
  EXPECT_EQ(X509_check_host(server.get(), "elsewhere.lab", 0, 0, nullptr), 0);
  EXPECT_EQ(X509_check_purpose(server.get(), X509_PURPOSE_SSL_SERVER, 0), 1);
  EXPECT_EQ(X509_check_purpose(server.get(), X509_PURPOSE_SSL_CLIENT, 0), 0);
  EXPECT_EQ(X509_check_ca(server.get()), 0);
}

TEST_F(TlsInitTest, RenewKeepsTheCaAndMakesAllOthersAnew) {
  ASSERT_EQ(Init().exit, 0);
  const std::string ca = Read("ca.pem") + Read("ca.key");
  const std::string server = Read("server.pem");
  const Outcome again = Init();
  EXPECT_EQ(again.exit, 1);
  EXPECT_THAT(again.err, HasSubstr("has a CA already; --renew"));
  EXPECT_EQ(Read("server.pem"), server);
  const Outcome renewed = Init({"--renew", "--days", "7", "--json"});
  EXPECT_EQ(renewed.exit, 0) << renewed.err;
  EXPECT_TRUE(nlohmann::json::parse(renewed.out).contains("expires"));
  EXPECT_EQ(Read("ca.pem") + Read("ca.key"), ca);
  EXPECT_NE(Read("server.pem"), server);
  EXPECT_TRUE(IsSignedByTheCa("server.pem"));
  EXPECT_EQ(DaysLeft("server.pem"), 7);
  EXPECT_EQ(DaysLeft("client.pem"), 7);
}

// A running master takes the new one at once: clients that call it by a name that is gone would be locked out.
TEST_F(TlsInitTest, RenewKeepsTheNamesOfTheMaster) {
  ASSERT_EQ(Init({"--name", "master.lab", "--name", "10.0.0.7"}).exit, 0);
  const Outcome renewed = Init({"--renew", "--name", "2001:db8::7", "--name", "master.lab"});
  ASSERT_EQ(renewed.exit, 0) << renewed.err;
  EXPECT_THAT(renewed.out, HasSubstr(" 2001:db8::7 master.lab 10.0.0.7"));
  ASSERT_EQ(Init({"--renew"}).exit, 0);
  const auto server = Certificate("server.pem");
  EXPECT_EQ(X509_check_host(server.get(), "master.lab", 0, 0, nullptr), 1);
  for (const char* address : {"10.0.0.7", "2001:db8::7", "127.0.0.1"}) {
    EXPECT_EQ(X509_check_ip_asc(server.get(), address, 0), 1) << address;
  }
}

TEST_F(TlsInitTest, ClientAloneMakesOneMoreAndTouchesNothingElse) {
  ASSERT_EQ(Init().exit, 0);
  const std::string server = Read("server.pem");
  const Outcome made = Init({"--client", "agent-7.lab"});
  EXPECT_EQ(made.exit, 0) << made.err;
  EXPECT_THAT(made.out, HasSubstr("dns:agent-7.lab"));
  EXPECT_EQ(Read("server.pem"), server);
  EXPECT_TRUE(IsSignedByTheCa("client-agent-7.lab.pem"));
  const auto client = Certificate("client-agent-7.lab.pem");
  EXPECT_EQ(X509_check_host(client.get(), "agent-7.lab", 0, 0, nullptr), 1);
  EXPECT_EQ(X509_check_purpose(client.get(), X509_PURPOSE_SSL_SERVER, 0), 0);
  const std::string first = Read("client-agent-7.lab.pem");
  const Outcome again = Init({"--client", "agent-7.lab"});
  EXPECT_EQ(again.exit, 1);
  EXPECT_THAT(again.err, HasSubstr("is there already"));
  EXPECT_EQ(Read("client-agent-7.lab.pem"), first);
}

TEST_F(TlsInitTest, WhereTheCaIsGoneNothingIsWrittenOver) {
  ASSERT_EQ(Init().exit, 0);
  std::filesystem::remove(directory_ + "/ca.pem");
  std::filesystem::remove(directory_ + "/ca.key");
  const auto files = Files();
  const std::string client = Read("client.pem");
  const Outcome without = Init();
  EXPECT_EQ(without.exit, 1);
  EXPECT_THAT(without.err, HasSubstr("has server.pem and no ca.pem: it would be written over"));
  const Outcome renewing = Init({"--renew"});
  EXPECT_EQ(renewing.exit, 1);
  EXPECT_THAT(renewing.err, HasSubstr("has no ca.pem and ca.key to renew by"));
  EXPECT_EQ(Files(), files);
  EXPECT_EQ(Read("client.pem"), client);
}

TEST_F(TlsInitTest, WhatIsNotThereIsNotRenewed) {
  EXPECT_EQ(Init({"--renew"}).exit, 1);
  EXPECT_FALSE(std::filesystem::exists(directory_));
}

TEST_F(TlsInitTest, WrongWordsAreRefusedAndMakeNothing) {
  for (const std::vector<std::string>& words : {std::vector<std::string>{"--days", "0"},
                                                {"--days", "3651"},
                                                {"--name", "two words"},
                                                {"--client", "10.0.0.7"},
                                                {"--client", "../ca"}}) {
    const Outcome refused = Init(words);
    EXPECT_EQ(refused.exit, 64) << words[1];
    EXPECT_THAT(refused.err, HasSubstr("allowed")) << words[1];
    EXPECT_FALSE(std::filesystem::exists(directory_)) << words[1];
  }
}

}  // namespace
}  // namespace stepwell::cli
