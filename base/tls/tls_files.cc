#include "base/tls/tls_files.h"

#include <openssl/x509v3.h>

#include <cerrno>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "base/tls/openssl_text.h"

namespace stepwell {
namespace {

// A chain of certificates is some kilobytes, a bundle of all public CAs a quarter of this.
constexpr std::size_t kFileBytesMax = 1 << 20;

absl::StatusOr<std::string> ReadPem(const std::string& path) {
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  if (!file) return absl::ErrnoToStatus(errno == 0 ? ENOENT : errno, path);
  std::string text;
  char piece[4096];
  while (file.read(piece, sizeof piece) || file.gcount() > 0) {
    text.append(piece, static_cast<std::size_t>(file.gcount()));
    if (text.size() > kFileBytesMax) {
      return absl::InvalidArgumentError(absl::StrCat(path, ": over 1 MiB; PEM is expected"));
    }
  }
  if (file.bad()) return absl::UnavailableError(absl::StrCat(path, ": cannot be read"));
  return text;
}

absl::Status Wrong(const std::string& path, const std::string& what) {
  ERR_clear_error();
  return absl::InvalidArgumentError(absl::StrCat(path, ": ", what));
}

// Asks nobody for a password.
int NoPassword(char* /*text*/, int /*size*/, int /*for_writing*/, void* asked) {
  *static_cast<bool*>(asked) = true;
  return -1;
}

OpensslOwned<X509> FirstCertificate(const std::string& pem) {
  return OpensslOwned<X509>(PEM_read_bio_X509(BioOf(pem).get(), nullptr, nullptr, nullptr));
}

absl::Time TimeOf(const ASN1_TIME* time) {
  std::tm parts{};
  if (ASN1_TIME_to_tm(time, &parts) != 1) return absl::InfinitePast();
  return absl::FromTM(parts, absl::UTCTimeZone());
}

absl::Status CheckPair(const TlsFiles& files, TlsSide side, TlsMaterial& read) {
  const auto certificate = FirstCertificate(read.cert_pem);
  if (certificate == nullptr) return Wrong(files.cert, "no certificate in PEM");
  bool is_encrypted = false;
  const OpensslOwned<EVP_PKEY> key(
      PEM_read_bio_PrivateKey(BioOf(read.key_pem).get(), nullptr, NoPassword, &is_encrypted));
  if (is_encrypted)
    return Wrong(files.key, "the key is encrypted; one without a password is expected");
  if (key == nullptr) return Wrong(files.key, "no private key in PEM");
  if (X509_check_private_key(certificate.get(), key.get()) != 1) {
    return Wrong(files.key, absl::StrCat("is not the key of ", files.cert));
  }
  // Those of `stepwell tls init` say which side they are for: mixed up they are found here, not by
  // the first client.
  const bool is_server = side == TlsSide::kServer;
  const int purpose = is_server ? X509_PURPOSE_SSL_SERVER : X509_PURPOSE_SSL_CLIENT;
  if (X509_check_purpose(certificate.get(), purpose, 0) != 1) {
    return Wrong(files.cert,
                 is_server ? "is no certificate of a server" : "is no certificate of a client");
  }
  read.expires = TimeOf(X509_get0_notAfter(certificate.get()));
  return absl::OkStatus();
}

std::string Variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

}  // namespace

absl::StatusOr<TlsMaterial> ReadTls(const TlsFiles& files, TlsSide side) {
  TlsMaterial read;
  if (!files.ca.empty()) {
    STEPWELL_ASSIGN_OR_RETURN(read.ca_pem, ReadPem(files.ca));
    if (FirstCertificate(read.ca_pem) == nullptr) return Wrong(files.ca, "no certificate in PEM");
  }
  if (files.cert.empty()) return read;
  STEPWELL_ASSIGN_OR_RETURN(read.cert_pem, ReadPem(files.cert));
  STEPWELL_ASSIGN_OR_RETURN(read.key_pem, ReadPem(files.key));
  STEPWELL_RETURN_IF_ERROR(CheckPair(files, side, read));
  return read;
}

TlsFiles ClientTls(TlsFiles given) {
  if (given.ca.empty()) given.ca = Variable("STEPWELL_TLS_CA");
  if (given.cert.empty() && given.key.empty()) {
    given.cert = Variable("STEPWELL_TLS_CERT");
    given.key = Variable("STEPWELL_TLS_KEY");
  }
  return given;
}

absl::Status CheckClientTls(const TlsFiles& files) {
  if (files.cert.empty() != files.key.empty()) {
    return absl::InvalidArgumentError(
        "a certificate wants its key and a key its certificate: --tls-cert and --tls-key "
        "(STEPWELL_TLS_CERT, STEPWELL_TLS_KEY) go together");
  }
  if (!files.cert.empty() && files.ca.empty()) {
    return absl::InvalidArgumentError(
        "--tls-cert without --tls-ca: name the CA of the master's certificate (STEPWELL_TLS_CA)");
  }
  return absl::OkStatus();
}

}  // namespace stepwell
