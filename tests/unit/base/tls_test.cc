// Certificates: what is made can be read, what does not fit together is refused, renewed files are taken
// whole or not at all.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "base/clock.h"
#include "base/tls/tls_authority.h"
#include "base/tls/tls_files.h"
#include "base/tls/tls_reload.h"

namespace stepwell {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;

class TlsFilesTest : public ::testing::Test {
 protected:
  TlsFilesTest() {
    std::filesystem::create_directories(folder_);
    Write("ca.pem", ca_.own().cert_pem);
    const TlsPair pair = Signed(TlsSide::kServer);
    Write("cert.pem", pair.cert_pem);
    Write("key.pem", pair.key_pem);
  }
  ~TlsFilesTest() override { std::filesystem::remove_all(folder_); }

  TlsPair Signed(TlsSide side, absl::Duration lasts = absl::Hours(1)) const {
    auto pair = ca_.Sign({side, "test", {"localhost", "::1"}, now_, now_ + lasts});
    EXPECT_TRUE(pair.ok()) << pair.status();
    return *pair;
  }
  // As another file of that name, so that it has another stamp.
  std::string Write(const std::string& name, const std::string& text) const {
    std::ofstream(folder_ + "/new") << text;
    EXPECT_EQ(std::rename((folder_ + "/new").c_str(), Path(name).c_str()), 0);
    return Path(name);
  }
  std::string Path(const std::string& name) const { return folder_ + "/" + name; }
  TlsFiles All() const { return {Path("ca.pem"), Path("cert.pem"), Path("key.pem")}; }
  std::string Refusal(const TlsFiles& files, TlsSide side) const {
    return std::string(ReadTls(files, side).status().message());
  }

  const std::string folder_ = absl::StrCat(::testing::TempDir(), "tls-", getpid());
  const absl::Time now_ = absl::Now();
  const TlsAuthority ca_ = *TlsAuthority::Make("test", now_, now_ + absl::Hours(2));
};

TEST_F(TlsFilesTest, ReadsWhatAnAuthorityMade) {
  const auto read = ReadTls(All(), TlsSide::kServer);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->ca_pem, ca_.own().cert_pem);
  EXPECT_EQ(absl::ToUnixSeconds(read->expires), absl::ToUnixSeconds(now_ + absl::Hours(1)));
}

TEST_F(TlsFilesTest, RefusesWhatDoesNotFitTogether) {
  const TlsPair other = Signed(TlsSide::kServer);
  Write("other.pem", other.key_pem);
  Write("text.pem", "no PEM\n");
  Write("locked.pem",
        "-----BEGIN ENCRYPTED PRIVATE KEY-----\nMIHsMFcGCSqGSIb3DQEFDTBKMCkGCSqGSIb3DQEFDDAcBAg=\n"
        "-----END ENCRYPTED PRIVATE KEY-----\n");
  const TlsFiles all = All();
  // Whole in its first certificate alone: each port would read another part of it.
  const std::string ca = ca_.own().cert_pem;
  Write("cut.pem", absl::StrCat(ca, ca.substr(0, ca.size() / 2)));
  Write("bad.pem", absl::StrCat(ca, absl::StrReplaceAll(ca, {{"MII", "!II"}}), ca));
  for (const char* name : {"cut.pem", "bad.pem"}) {
    EXPECT_THAT(Refusal({Path(name), all.cert, all.key}, TlsSide::kServer),
                EndsWith("what follows certificate 1 in it cannot be read"));
    EXPECT_THAT(Refusal({Path(name), "", ""}, TlsSide::kClient),
                EndsWith("what follows certificate 1 in it cannot be read"));
  }
  Write("chain.pem", absl::StrCat(Signed(TlsSide::kServer).cert_pem, ca.substr(0, ca.size() / 2)));
  EXPECT_THAT(Refusal({all.ca, Path("chain.pem"), all.key}, TlsSide::kServer),
              EndsWith("what follows certificate 1 in it cannot be read"))
      << "before its key is looked at";
  Write("two.pem", absl::StrCat("# of the lab\n", ca, "\n", ca, "that is all\n"));
  EXPECT_EQ(Refusal({Path("two.pem"), all.cert, all.key}, TlsSide::kServer), "");
  EXPECT_THAT(Refusal({all.ca, all.cert, Path("other.pem")}, TlsSide::kServer),
              HasSubstr("is not the key of"));
  EXPECT_THAT(Refusal({all.ca, all.cert, Path("text.pem")}, TlsSide::kServer),
              EndsWith("no private key in PEM"));
  EXPECT_THAT(Refusal({all.ca, Path("text.pem"), all.key}, TlsSide::kServer),
              EndsWith("no certificate in PEM"));
  EXPECT_THAT(Refusal({Path("text.pem"), "", ""}, TlsSide::kClient),
              EndsWith("no certificate in PEM"));
  EXPECT_THAT(Refusal(all, TlsSide::kClient), EndsWith("is no certificate of a client"));
  EXPECT_EQ(Refusal({Path("none"), "", ""}, TlsSide::kClient),
            "--tls-ca (STEPWELL_TLS_CA) " + Path("none") + ": No such file or directory");
  EXPECT_EQ(Refusal({Path("none"), "", ""}, TlsSide::kServer),
            "--tls-client-ca " + Path("none") + ": No such file or directory");
}

TEST_F(TlsFilesTest, KnowsWhoSignedACertificate) {
  const TlsFiles all = All();
  Write("other-ca.pem", TlsAuthority::Make("other", now_, now_ + absl::Hours(2))->own().cert_pem);
  Write("text.pem", "no PEM\n");
  EXPECT_TRUE(IsSignedBy(all.cert, all.ca));
  EXPECT_FALSE(IsSignedBy(all.cert, Path("other-ca.pem")));
  EXPECT_FALSE(IsSignedBy(all.ca, all.cert));
  EXPECT_FALSE(IsSignedBy(all.cert, Path("text.pem")));
  EXPECT_FALSE(IsSignedBy(all.cert, Path("none.pem")));
}

TEST_F(TlsFilesTest, HalfAPairOfAClientIsNone) {
  EXPECT_TRUE(CheckClientTls({}).ok());
  EXPECT_TRUE(CheckClientTls({"ca", "", ""}).ok());
  EXPECT_TRUE(CheckClientTls({"ca", "cert", "key"}).ok());
  EXPECT_FALSE(CheckClientTls({"ca", "cert", ""}).ok());
  EXPECT_FALSE(CheckClientTls({"ca", "", "key"}).ok());
  EXPECT_FALSE(CheckClientTls({"", "cert", "key"}).ok());
}

TEST_F(TlsFilesTest, NoCertificateOutlivesItsAuthority) {
  Write("cert.pem", Signed(TlsSide::kServer, absl::Hours(99)).cert_pem);
  EXPECT_FALSE(TlsAuthority::Of(Signed(TlsSide::kServer)).ok());
  const TlsPair pair = Signed(TlsSide::kServer, absl::Hours(99));
  const TlsFiles files{"", Write("c", pair.cert_pem), Write("k", pair.key_pem)};
  EXPECT_LE(ReadTls(files, TlsSide::kServer)->expires, now_ + absl::Hours(2));
  EXPECT_FALSE(ca_.Sign({TlsSide::kServer, "x", {"a,DNS:b"}, now_, now_ + absl::Hours(1)}).ok());
}

TEST_F(TlsFilesTest, RenewedFilesAreTakenWholeOrNotAtAll) {
  FakeClock clock;
  const auto opened = TlsReload::Open(All(), TlsSide::kServer, clock);
  ASSERT_TRUE(opened.ok()) << opened.status();
  TlsReload& reload = **opened;
  const auto first = reload.Current();
  EXPECT_EQ(reload.Current(), first);

  const TlsPair renewed = Signed(TlsSide::kServer);
  Write("key.pem", renewed.key_pem);
  clock.Advance(absl::Seconds(1));
  EXPECT_EQ(reload.Current(), first) << "a key without its certificate";
  Write("cert.pem", renewed.cert_pem);
  clock.Advance(absl::Milliseconds(999));
  EXPECT_EQ(reload.Current(), first) << "looked at a moment ago";
  clock.Advance(absl::Milliseconds(1));
  const auto second = reload.Current();
  EXPECT_EQ(second->cert_pem, renewed.cert_pem);

  unlink(Path("cert.pem").c_str());
  clock.Advance(absl::Seconds(1));
  EXPECT_EQ(reload.Current(), second) << "gone";
}

// As it is where a key is made for root and then given away.
TEST_F(TlsFilesTest, AKeyThatCannotBeReadYetIsTakenOnceItCan) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can be somebody else for a moment";
  FakeClock clock;
  const auto opened = TlsReload::Open(All(), TlsSide::kServer, clock);
  ASSERT_TRUE(opened.ok()) << opened.status();
  const auto first = (*opened)->Current();
  const TlsPair renewed = Signed(TlsSide::kServer);
  Write("key.pem", renewed.key_pem);
  Write("cert.pem", renewed.cert_pem);
  const std::string folder = Path("key.pem").substr(0, Path("key.pem").rfind('/'));
  ASSERT_EQ(chmod(folder.c_str(), 0711), 0);
  ASSERT_EQ(chmod(Path("key.pem").c_str(), 0600), 0);
  clock.Advance(absl::Seconds(1));
  ASSERT_EQ(seteuid(65534), 0);
  const auto meanwhile = (*opened)->Current();
  ASSERT_EQ(seteuid(0), 0);
  EXPECT_EQ(meanwhile, first);
  clock.Advance(absl::Seconds(1));
  EXPECT_EQ((*opened)->Current()->cert_pem, renewed.cert_pem);
}

}  // namespace
}  // namespace stepwell
