// The flood of headers that gRPC 1.51 has no bound for: one block of HEADERS that never ends, in frames of
// CONTINUATION, each read in full. Within TLS, against a master that asks for certificates, and one that does
// not; plain numbers of what it costs the master.
#include <gmock/gmock.h>
#include <openssl/ssl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <fstream>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "base/tls/openssl_text.h"
#include "base/tls/tls_authority.h"
#include "tests/e2e/raw_call.h"
#include "tests/e2e/spine.h"

namespace stepwell::testing {
namespace {

constexpr char kPreface[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
constexpr std::size_t kFrameBytes = 16'000;
constexpr std::int64_t kMib = 1 << 20;

std::string Frame(int type, int flags, int stream, const std::string& payload) {
  const auto byte = [](std::size_t value) { return static_cast<char>(value & 0xff); };
  std::string frame;
  for (const int shift : {16, 8, 0}) frame += byte(payload.size() >> shift);
  frame += {byte(type), byte(flags), 0, 0, 0, byte(stream)};
  return frame + payload;
}

// A literal that says it has 2^31 bytes, and does not end.
std::string FloodBegin() {
  return absl::StrCat(std::string(kPreface), Frame(4, 0, 0, ""),
                      Frame(1, 0, 1, std::string("\x00\x01x\x7f\x80\xff\xff\xff\x07", 9)));
}

// Of a process, from /proc.
struct Cost {
  double cpu_seconds = 0;
  std::int64_t rss_bytes = 0;
};
Cost CostOf(pid_t pid) {
  std::stringstream text;
  text << std::ifstream(absl::StrCat("/proc/", pid, "/stat")).rdbuf();
  const std::string all = text.str();
  const std::vector<std::string> words = absl::StrSplit(all.substr(all.rfind(')') + 2), ' ');
  const auto ticks = std::stod(words.at(11)) + std::stod(words.at(12));
  return {ticks / static_cast<double>(sysconf(_SC_CLK_TCK)),
          std::stoll(words.at(21)) * sysconf(_SC_PAGESIZE)};
}

struct Flooded {
  std::int64_t taken_bytes = 0;  // by our kernel, or the master
  double cpu_seconds = 0;
  std::int64_t grown_bytes = 0;
  bool ended = false;  // by the master
};

// What our own kernel takes is not what the master takes: left alone it grows to megabytes.
void BoundSendBuffer(BIO* connection) {
  int fd = -1;
  if (BIO_get_fd(connection, &fd) < 0 || fd < 0) return;
  const int bytes = 64 << 10;
  setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes));
}

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
  // Sends until `bytes_max` were taken, the master ends the connection, or `patience` is over.
  Flooded Flood(const TlsPair& own, std::int64_t bytes_max, absl::Duration patience) const {
    const OpensslOwned<SSL_CTX> context(SSL_CTX_new(TLS_client_method()));
    const OpensslOwned<X509> cert(
        PEM_read_bio_X509(BioOf(own.cert_pem).get(), nullptr, nullptr, nullptr));
    const OpensslOwned<EVP_PKEY> key(
        PEM_read_bio_PrivateKey(BioOf(own.key_pem).get(), nullptr, nullptr, nullptr));
    if (cert != nullptr) {
      SSL_CTX_use_certificate(context.get(), cert.get());
      SSL_CTX_use_PrivateKey(context.get(), key.get());
    }
    SSL_CTX_set_alpn_protos(context.get(), reinterpret_cast<const unsigned char*>("\x02h2"), 3);
    OpensslOwned<BIO> connection(BIO_new_ssl_connect(context.get()));
    BIO_set_conn_hostname(connection.get(), master_->grpc_address().c_str());
    BIO_set_nbio(connection.get(), 1);
    const Cost before = CostOf(master_->pid());
    const absl::Time until = absl::Now() + patience;
    Flooded flooded;
    std::string pending = FloodBegin();
    const std::string more = Frame(9, 0, 1, std::string(kFrameBytes, 'a'));
    while (flooded.taken_bytes < bytes_max && absl::Now() < until) {
      BoundSendBuffer(connection.get());
      const int taken =
          BIO_write(connection.get(), pending.data(), static_cast<int>(pending.size()));
      if (taken > 0) {
        flooded.taken_bytes += taken;
        pending.erase(0, static_cast<std::size_t>(taken));
        if (pending.empty()) pending = more;
      } else if (!BIO_should_retry(connection.get())) {
        flooded.ended = true;
        break;
      } else {
        absl::SleepFor(absl::Milliseconds(5));
      }
      // What it says: an alert, or nothing.
      std::string said(4096, '\0');
      const int got = BIO_read(connection.get(), said.data(), static_cast<int>(said.size()));
      if (got == 0 || (got < 0 && !BIO_should_retry(connection.get()))) {
        flooded.ended = true;
        break;
      }
    }
    absl::SleepFor(absl::Milliseconds(500));  // what it still works off
    const Cost after = CostOf(master_->pid());
    flooded.cpu_seconds = after.cpu_seconds - before.cpu_seconds;
    flooded.grown_bytes = after.rss_bytes - before.rss_bytes;
    ERR_clear_error();
    std::printf("flood: %lld bytes taken, %.2f s of CPU, %lld KiB more memory, %s\n",
                static_cast<long long>(flooded.taken_bytes), flooded.cpu_seconds,
                static_cast<long long>(flooded.grown_bytes >> 10),
                flooded.ended ? "ended" : "still open");
    return flooded;
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
  EXPECT_GE(flooded.taken_bytes, 2 * kMib);
  EXPECT_LT(flooded.grown_bytes, 512 * kMib);
  EXPECT_THAT(HealthFor({}), ::testing::HasSubstr("status 16")) << "it answers others";
}

}  // namespace
}  // namespace stepwell::testing
