// The flood of headers against a master that asks for certificates, and one that does not; plain numbers of what it
// costs the master.
#include <gmock/gmock.h>

#include <csignal>
#include <cstdio>
#include <fstream>

#include "absl/time/clock.h"
#include "base/tls/tls_authority.h"
#include "stepwell/v1/token.grpc.pb.h"
#include "tests/e2e/header_flood.h"
#include "tests/e2e/raw_call.h"
#include "tests/e2e/spine.h"

namespace stepwell::testing {
namespace {

constexpr std::int64_t kMib = 1 << 20;

class HpackFloodTest : public SpineTest {
 protected:
  void SetUp() override {
    std::signal(SIGPIPE, SIG_IGN);
    const TlsPair server = *ca_.Sign({TlsSide::kServer, "s", {"127.0.0.1"}, now_, End()});
    Write("ca.pem", ca_.own().cert_pem);
    Write("server.pem", server.cert_pem);
    Write("server.key", server.key_pem);
  }
  void StartWith(std::vector<std::string> more) {
    more.insert(more.end(),
                {"--tls-cert", scratch_ / "server.pem", "--tls-key", scratch_ / "server.key"});
    StartMaster(more);
  }
  absl::Time End() const { return now_ + absl::Hours(9); }
  void Write(const std::string& name, const std::string& text) const {
    std::ofstream(scratch_ / name) << text;
  }
  Flooded Flood(const TlsPair& own, std::int64_t bytes_max, absl::Duration patience) const {
    return FloodHeaders({master_->grpc_address(), own}, master_->pid(), bytes_max, patience);
  }
  std::string HealthFor(const TlsPair& own) const {
    return Health(
        grpc::CreateChannel(master_->grpc_address(),
                            grpc::SslCredentials({ca_.own().cert_pem, own.key_pem, own.cert_pem})));
  }

  const absl::Time now_ = absl::Now() - absl::Hours(1);
  const TlsAuthority ca_ = *TlsAuthority::Make("ca", now_, End());
  const TlsAuthority other_ = *TlsAuthority::Make("other", now_, End());
};

TEST_F(HpackFloodTest, NeverReachesWhatReadsHeadersWithoutACertificate) {
  StartWith({"--tls-client-ca", scratch_ / "ca.pem"});
  const TlsPair friendly = *ca_.Sign({TlsSide::kClient, "c", {}, now_, End()});
  const TlsPair stranger = *other_.Sign({TlsSide::kClient, "c", {}, now_, End()});
  ASSERT_EQ(HealthFor(friendly), "SERVING");
  for (const TlsPair& shown : {TlsPair(), stranger}) {
    const Flooded flooded = Flood(shown, 16 * kMib, absl::Seconds(20));
    EXPECT_TRUE(flooded.ended) << "the handshake is refused";
    EXPECT_LT(flooded.taken_bytes, 2 * kMib) << "no more than buffers on the way hold";
    EXPECT_LT(flooded.cpu_seconds, 0.5);
    EXPECT_LT(flooded.grown_bytes, 16 * kMib);
  }
  EXPECT_EQ(HealthFor(friendly), "SERVING");
  // That it is a flood at all: who has a certificate sends it into gRPC.
  const Flooded known = Flood(friendly, 4 * kMib, absl::Seconds(20));
  EXPECT_FALSE(known.ended);
  EXPECT_GE(known.taken_bytes, 2 * kMib);
  EXPECT_EQ(HealthFor(friendly), "SERVING");
}

// What docs/security.md says of a master that asks for a token alone, which comes after the headers.
TEST_F(HpackFloodTest, CostsAMasterWithoutCertificatesThreadsAndMemoryButNotItsLife) {
  StartWith({"--token-file", scratch_ / "token"});
  const Flooded flooded = Flood({}, 16 * kMib, absl::Seconds(30));
  EXPECT_TRUE(flooded.ended);
  EXPECT_GE(flooded.taken_bytes, 2 * kMib);
  EXPECT_LT(flooded.taken_bytes, 12 * kMib)
      << "what one may send on whom nobody knows, and buffers";
  EXPECT_LT(flooded.grown_bytes, 256 * kMib);
  EXPECT_THAT(HealthFor({}), ::testing::HasSubstr("status 16")) << "it answers others";
}

// What docs/security.md says of calls that are opened and reset at once, by a stranger and by who may read.
TEST_F(HpackFloodTest, ResetsCostAMasterWithoutCertificatesTimeAndMemoryButNotItsLife) {
  StartWith({"--token-file", scratch_ / "token"});
  std::string admin;
  std::ifstream(scratch_ / "token") >> admin;
  const auto channel = grpc::CreateChannel(
      master_->grpc_address(),
      grpc::CompositeChannelCredentials(grpc::SslCredentials({ca_.own().cert_pem, "", ""}),
                                        grpc::AccessTokenCredentials(admin)));
  v1::CreateTokenRequest request;
  request.set_name("reader");
  request.add_grants("read:*");
  v1::CreateTokenResponse reader;
  grpc::ClientContext context;
  ASSERT_TRUE(v1::TokenService::NewStub(channel)->CreateToken(&context, request, &reader).ok());
  for (const std::string& token : {std::string(), reader.text()}) {
    SCOPED_TRACE(token.empty() ? "a stranger" : "who may read");
    // Where it was a flood the address rests.
    ASSERT_TRUE(Eventually([&] { return HealthFor({}).find("status 16") != std::string::npos; },
                           absl::Seconds(30)));
    int count = 0;
    const Flooded flooded = FloodResets({master_->grpc_address()}, master_->pid(),
                                        CallBlock("/stepwell.v1.QueryService/FollowSamples", token),
                                        16 * kMib, absl::Seconds(20), count);
    std::printf("%d calls reset\n", count);
    EXPECT_TRUE(flooded.ended);
    EXPECT_GT(count, 128) << "a hundred may be there at a time";
    EXPECT_LT(count, 30'000) << "so many came where nobody counted them";
    EXPECT_LT(flooded.grown_bytes, 512 * kMib);
    EXPECT_TRUE(Eventually([&] { return Health(channel) == "SERVING"; }, absl::Seconds(30)));
  }
}

}  // namespace
}  // namespace stepwell::testing
