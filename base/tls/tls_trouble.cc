#include "base/tls/tls_trouble.h"

#include <arpa/inet.h>
#include <openssl/x509v3.h>
#include <poll.h>

#include <array>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/steady_time.h"
#include "base/tcp_probe.h"
#include "base/tls/openssl_text.h"

namespace stepwell {
namespace {

// Until `step` is through, or failed for good: its last result.
template <typename Step>
int Drive(SSL* tls, SteadyTime deadline, Step step) {
  for (;;) {
    ERR_clear_error();
    const int result = step();
    if (result > 0) return result;
    const int want = SSL_get_error(tls, result);
    const short events = want == SSL_ERROR_WANT_WRITE ? POLLOUT : POLLIN;
    if (want != SSL_ERROR_WANT_READ && want != SSL_ERROR_WANT_WRITE) return result;
    if (!TcpProbe::WaitFor(SSL_get_fd(tls), events, deadline)) return 0;
  }
}

bool LoadClient(SSL_CTX* context, const TlsMaterial& material, const std::string& host) {
  X509_STORE* store = SSL_CTX_get_cert_store(context);
  const auto bundle = BioOf(material.ca_pem);
  while (X509* one = PEM_read_bio_X509(bundle.get(), nullptr, nullptr, nullptr)) {
    X509_STORE_add_cert(store, one);
    X509_free(one);
  }
  ERR_clear_error();
  SSL_CTX_set_verify(context, SSL_VERIFY_PEER, nullptr);
  X509_VERIFY_PARAM* expected = SSL_CTX_get0_param(context);
  std::array<unsigned char, 16> numbers{};
  const bool is_numeric = inet_pton(AF_INET, host.c_str(), numbers.data()) == 1 ||
                          inet_pton(AF_INET6, host.c_str(), numbers.data()) == 1;
  if (is_numeric) {
    X509_VERIFY_PARAM_set1_ip_asc(expected, host.c_str());
  } else {
    X509_VERIFY_PARAM_set1_host(expected, host.c_str(), 0);
  }
  if (material.cert_pem.empty()) return true;
  const auto cert_text = BioOf(material.cert_pem);
  const OpensslOwned<X509> cert(PEM_read_bio_X509(cert_text.get(), nullptr, nullptr, nullptr));
  const OpensslOwned<EVP_PKEY> key(
      PEM_read_bio_PrivateKey(BioOf(material.key_pem).get(), nullptr, nullptr, nullptr));
  if (SSL_CTX_use_certificate(context, cert.get()) != 1) return false;
  while (X509* one = PEM_read_bio_X509(cert_text.get(), nullptr, nullptr, nullptr)) {
    SSL_CTX_add_extra_chain_cert(context, one);
  }
  ERR_clear_error();
  return SSL_CTX_use_PrivateKey(context, key.get()) == 1;
}

std::string OfMaster(long verdict, const std::string& host) {
  switch (verdict) {
    case X509_V_ERR_CERT_HAS_EXPIRED:
      return "the master's certificate has expired";
    case X509_V_ERR_CERT_NOT_YET_VALID:
      return "the master's certificate is not valid yet: is the clock of this machine right?";
    case X509_V_ERR_HOSTNAME_MISMATCH:
    case X509_V_ERR_IP_ADDRESS_MISMATCH:
      return absl::StrCat("the master's certificate is for other names than '", host,
                          "': call it by one of them, or have it made anew with this one "
                          "('stepwell tls init DIR --renew --name ",
                          host, "')");
    default:
      return absl::StrCat("the master's certificate is not signed by the CA of --tls-ca (",
                          X509_verify_cert_error_string(verdict), ")");
  }
}

bool IsNoTls(int reason) {
  return reason == SSL_R_WRONG_VERSION_NUMBER || reason == SSL_R_PACKET_LENGTH_TOO_LONG ||
         reason == SSL_R_HTTP_REQUEST;
}

// Of a master that asked for a certificate and closed then. gRPC's server does so without a word.
std::string OfOwn(const TlsMaterial& own) {
  if (own.cert_pem.empty()) {
    return "the master asks its clients for a certificate: --tls-cert and --tls-key "
           "(STEPWELL_TLS_CERT, STEPWELL_TLS_KEY)";
  }
  if (own.expires < RealClock::Get().Now()) return "the certificate of --tls-cert has expired";
  return "the master does not take the certificate of --tls-cert: another CA signed it, or it is "
         "not for clients";
}

struct Tried {
  bool is_through = false;
  bool is_asked = false;   // for a certificate
  bool is_closed = false;  // before the master said anything
  long verdict = X509_V_OK;
  int reason = 0;
};

// A handshake as gRPC's, and the first word behind it: of TLS 1.3 a client is refused only there.
Tried Try(SSL* tls, SteadyTime deadline) {
  static constexpr std::array<unsigned char, 3> kHttp2 = {2, 'h', '2'};
  SSL_set_alpn_protos(tls, kHttp2.data(), kHttp2.size());
  Tried tried;
  const auto note = [](SSL* /*tls*/, void* asked) {
    *static_cast<bool*>(asked) = true;
    return 1;
  };
  SSL_set_cert_cb(tls, note, &tried.is_asked);
  tried.is_through = Drive(tls, deadline, [tls] { return SSL_connect(tls); }) > 0;
  std::array<char, 16> word{};
  const auto read = [&] { return SSL_read(tls, word.data(), word.size()); };
  tried.is_closed = !tried.is_through || (Drive(tls, deadline, read) <= 0 && !deadline.HasPassed());
  tried.verdict = SSL_get_verify_result(tls);
  tried.reason = ERR_GET_REASON(ERR_peek_error());
  ERR_clear_error();
  return tried;
}

}  // namespace

std::string TlsTrouble(const std::string& address, const TlsMaterial& own,
                       absl::Duration patience) {
  const SteadyTime deadline = SteadyTime::Now() + patience;
  const TcpProbe probe(address, deadline);
  if (!probe.connected()) return "";
  const std::string& host = probe.host();
  const OpensslOwned<SSL_CTX> context(SSL_CTX_new(TLS_client_method()));
  if (context == nullptr) return OpensslText();
  if (!own.ca_pem.empty() && !LoadClient(context.get(), own, host)) return OpensslText();
  const OpensslOwned<SSL> tls(SSL_new(context.get()));
  if (tls == nullptr || SSL_set_fd(tls.get(), probe.fd()) != 1) return OpensslText();
  SSL_set_tlsext_host_name(tls.get(), host.c_str());
  const Tried tried = Try(tls.get(), deadline);
  if (own.ca_pem.empty()) {
    // Who has no TLS himself wants to know one thing.
    if (!tried.is_through) return "";
    return "the master speaks TLS: name the CA of its certificate by --tls-ca (STEPWELL_TLS_CA)";
  }
  if (tried.verdict != X509_V_OK) return OfMaster(tried.verdict, host);
  if (IsNoTls(tried.reason)) {
    return "the master speaks no TLS there: leave out --tls-ca (STEPWELL_TLS_CA)";
  }
  return tried.is_asked && tried.is_closed ? OfOwn(own) : "";
}

}  // namespace stepwell
