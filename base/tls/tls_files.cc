#include "base/tls/tls_files.h"

#include <openssl/err.h>
#include <openssl/pem.h>
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

// As it is told of, with the option that named it.
struct PemFile {
  const char* option;
  const std::string& path;
};

std::string Told(const PemFile& file) { return absl::StrCat(file.option, " ", file.path); }

absl::StatusOr<std::string> ReadPem(const PemFile& named) {
  errno = 0;
  std::ifstream file(named.path, std::ios::binary);
  if (!file) return absl::ErrnoToStatus(errno == 0 ? ENOENT : errno, Told(named));
  std::string text;
  char piece[4096];
  while (file.read(piece, sizeof piece) || file.gcount() > 0) {
    text.append(piece, static_cast<std::size_t>(file.gcount()));
    if (text.size() > kFileBytesMax) {
      return absl::InvalidArgumentError(absl::StrCat(Told(named), ": over 1 MiB; PEM is expected"));
    }
  }
  if (file.bad()) return absl::UnavailableError(absl::StrCat(Told(named), ": cannot be read"));
  return text;
}

absl::Status Wrong(const PemFile& file, const std::string& what) {
  ERR_clear_error();
  return absl::InvalidArgumentError(absl::StrCat(Told(file), ": ", what));
}

// Asks nobody for a password.
int NoPassword(char* /*text*/, int /*size*/, int /*for_writing*/, void* asked) {
  *static_cast<bool*>(asked) = true;
  return -1;
}

OpensslOwned<X509> FirstCertificate(const std::string& pem) {
  return OpensslOwned<X509>(PEM_read_bio_X509(BioOf(pem).get(), nullptr, nullptr, nullptr));
}

// All of them, for both ports read all, and one that is damaged otherwise than the other.
absl::Status CheckCertificates(const PemFile& file, const std::string& pem) {
  const auto bio = BioOf(pem);
  int count = 0;
  ERR_clear_error();
  while (OpensslOwned<X509>(PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr)) != nullptr) {
    ++count;
  }
  const unsigned long last = ERR_peek_last_error();
  const bool is_end =
      ERR_GET_LIB(last) == ERR_LIB_PEM && ERR_GET_REASON(last) == PEM_R_NO_START_LINE;
  ERR_clear_error();
  if (count == 0) return Wrong(file, "no certificate in PEM");
  if (!is_end)
    return Wrong(file, absl::StrCat("what follows certificate ", count, " in it cannot be read"));
  return absl::OkStatus();
}

absl::Time TimeOf(const ASN1_TIME* time) {
  std::tm parts{};
  if (ASN1_TIME_to_tm(time, &parts) != 1) return absl::InfinitePast();
  return absl::FromTM(parts, absl::UTCTimeZone());
}

absl::Status CheckPair(const PemFile& cert, const PemFile& key_file, TlsSide side,
                       TlsMaterial& read) {
  STEPWELL_RETURN_IF_ERROR(CheckCertificates(cert, read.cert_pem));
  const auto certificate = FirstCertificate(read.cert_pem);
  bool is_encrypted = false;
  const OpensslOwned<EVP_PKEY> key(
      PEM_read_bio_PrivateKey(BioOf(read.key_pem).get(), nullptr, NoPassword, &is_encrypted));
  if (is_encrypted)
    return Wrong(key_file, "the key is encrypted; one without a password is expected");
  if (key == nullptr) return Wrong(key_file, "no private key in PEM");
  if (X509_check_private_key(certificate.get(), key.get()) != 1) {
    return Wrong(key_file, absl::StrCat("is not the key of ", cert.path));
  }
  // Those of `stepwell tls init` say which side they are for: mixed up they are found here, not by
  // the first client.
  const bool is_server = side == TlsSide::kServer;
  const int purpose = is_server ? X509_PURPOSE_SSL_SERVER : X509_PURPOSE_SSL_CLIENT;
  if (X509_check_purpose(certificate.get(), purpose, 0) != 1) {
    return Wrong(cert,
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
  // A client's may come by a variable, also where there is no option.
  const bool is_server = side == TlsSide::kServer;
  const PemFile ca{is_server ? "--tls-client-ca" : "--tls-ca (STEPWELL_TLS_CA)", files.ca};
  const PemFile cert{is_server ? "--tls-cert" : "--tls-cert (STEPWELL_TLS_CERT)", files.cert};
  const PemFile key{is_server ? "--tls-key" : "--tls-key (STEPWELL_TLS_KEY)", files.key};
  if (!files.ca.empty()) {
    STEPWELL_ASSIGN_OR_RETURN(read.ca_pem, ReadPem(ca));
    STEPWELL_RETURN_IF_ERROR(CheckCertificates(ca, read.ca_pem));
  }
  if (files.cert.empty()) return read;
  STEPWELL_ASSIGN_OR_RETURN(read.cert_pem, ReadPem(cert));
  STEPWELL_ASSIGN_OR_RETURN(read.key_pem, ReadPem(key));
  STEPWELL_RETURN_IF_ERROR(CheckPair(cert, key, side, read));
  return read;
}

bool IsSignedBy(const std::string& cert, const std::string& ca) {
  const auto cert_pem = ReadPem({"", cert});
  const auto ca_pem = ReadPem({"", ca});
  if (!cert_pem.ok() || !ca_pem.ok()) return false;
  const auto signed_one = FirstCertificate(*cert_pem);
  const auto authority = FirstCertificate(*ca_pem);
  const bool is_signed = signed_one != nullptr && authority != nullptr &&
                         X509_verify(signed_one.get(), X509_get0_pubkey(authority.get())) == 1;
  ERR_clear_error();
  return is_signed;
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
