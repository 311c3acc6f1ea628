#include "base/tls/tls_authority.h"

#include <arpa/inet.h>
#include <openssl/ec.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>

#include <algorithm>
#include <array>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "base/tls/openssl_text.h"

namespace stepwell {
namespace {

constexpr int kSerialBytes = 16;
constexpr std::size_t kSubjectBytesMax = 64;  // RFC 5280's bound of a common name

absl::Status Failed(const char* doing) {
  return absl::InternalError(absl::StrCat(doing, ": ", OpensslText()));
}

std::string TextOf(BIO* bio) {
  char* text = nullptr;
  const long bytes = BIO_get_mem_data(bio, &text);
  return {text, static_cast<std::size_t>(bytes)};
}

absl::StatusOr<TlsPair> PemOf(X509* certificate, EVP_PKEY* key) {
  const OpensslOwned<BIO> cert_text(BIO_new(BIO_s_mem()));
  const OpensslOwned<BIO> key_text(BIO_new(BIO_s_mem()));
  if (PEM_write_bio_X509(cert_text.get(), certificate) != 1 ||
      PEM_write_bio_PrivateKey(key_text.get(), key, nullptr, nullptr, 0, nullptr, nullptr) != 1) {
    return Failed("write a certificate");
  }
  return TlsPair{TextOf(cert_text.get()), TextOf(key_text.get())};
}

bool AddExtension(X509* to, X509* issuer, int nid, const std::string& value) {
  X509V3_CTX context;
  X509V3_set_ctx_nodb(&context);
  X509V3_set_ctx(&context, issuer, to, nullptr, nullptr, 0);
  X509_EXTENSION* extension = X509V3_EXT_conf_nid(nullptr, &context, nid, value.c_str());
  if (extension == nullptr) return false;
  const bool is_added = X509_add_ext(to, extension, -1) == 1;
  X509_EXTENSION_free(extension);
  return is_added;
}

bool SetSerial(X509* certificate) {
  std::array<unsigned char, kSerialBytes> bytes{};
  if (RAND_bytes(bytes.data(), kSerialBytes) != 1) return false;
  bytes[0] &= 0x7f;  // positive
  BIGNUM* number = BN_bin2bn(bytes.data(), kSerialBytes, nullptr);
  const bool is_set = BN_to_ASN1_INTEGER(number, X509_get_serialNumber(certificate)) != nullptr;
  BN_free(number);
  return is_set;
}

bool SetTimes(X509* certificate, absl::Time from, absl::Time until) {
  return ASN1_TIME_set(X509_getm_notBefore(certificate), absl::ToTimeT(from)) != nullptr &&
         ASN1_TIME_set(X509_getm_notAfter(certificate), absl::ToTimeT(until)) != nullptr;
}

bool SetSubject(X509* certificate, const std::string& subject) {
  return X509_NAME_add_entry_by_txt(X509_get_subject_name(certificate), "CN", MBSTRING_UTF8,
                                    reinterpret_cast<const unsigned char*>(subject.data()),
                                    static_cast<int>(subject.size()), -1, 0) == 1;
}

bool IsAddress(const std::string& name) {
  std::array<unsigned char, 16> numbers{};
  return inet_pton(AF_INET, name.c_str(), numbers.data()) == 1 ||
         inet_pton(AF_INET6, name.c_str(), numbers.data()) == 1;
}

// Names go into OpenSSL's own little language, where commas and colons mean something.
bool IsMachineName(const std::string& name) {
  return !name.empty() && name.size() <= 253 &&
         std::all_of(name.begin(), name.end(), [](unsigned char c) {
           return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                  c == '-' || c == '.' || c == '_' || c == '*';
         });
}

absl::StatusOr<std::string> AlternativeNames(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) {
    const bool is_address = IsAddress(name);
    if (!is_address && !IsMachineName(name)) {
      return absl::InvalidArgumentError(
          absl::StrCat("'", name, "' is neither a name of a machine nor an address in numbers"));
    }
    absl::StrAppend(&text, text.empty() ? "" : ",", is_address ? "IP:" : "DNS:", name);
  }
  return text;
}

struct Parsed {
  OpensslOwned<X509> certificate;
  OpensslOwned<EVP_PKEY> key;
};

absl::StatusOr<Parsed> Parse(const TlsPair& pair) {
  Parsed parsed;
  parsed.certificate.reset(
      PEM_read_bio_X509(BioOf(pair.cert_pem).get(), nullptr, nullptr, nullptr));
  parsed.key.reset(PEM_read_bio_PrivateKey(BioOf(pair.key_pem).get(), nullptr, nullptr, nullptr));
  if (parsed.certificate == nullptr || parsed.key == nullptr ||
      X509_check_private_key(parsed.certificate.get(), parsed.key.get()) != 1 ||
      X509_check_ca(parsed.certificate.get()) == 0) {
    ERR_clear_error();
    return absl::InvalidArgumentError("these are not a CA's certificate and its key");
  }
  return parsed;
}

// Signed by `issuer_key`; by `key` itself where there is no `issuer`.
absl::StatusOr<TlsPair> Finish(X509* certificate, EVP_PKEY* key, X509* issuer, EVP_PKEY* issuer_key,
                               const std::vector<std::pair<int, std::string>>& extensions) {
  X509* signer = issuer == nullptr ? certificate : issuer;
  if (X509_set_version(certificate, 2) != 1 || !SetSerial(certificate) ||
      X509_set_pubkey(certificate, key) != 1 ||
      X509_set_issuer_name(certificate, X509_get_subject_name(signer)) != 1) {
    return Failed("fill a certificate");
  }
  for (const auto& [nid, value] : extensions) {
    if (!AddExtension(certificate, signer, nid, value)) return Failed(OBJ_nid2sn(nid));
  }
  if (X509_sign(certificate, issuer == nullptr ? key : issuer_key, EVP_sha256()) == 0) {
    return Failed("sign a certificate");
  }
  return PemOf(certificate, key);
}

}  // namespace

absl::StatusOr<TlsAuthority> TlsAuthority::Make(const std::string& subject, absl::Time from,
                                                absl::Time until) {
  const OpensslOwned<X509> certificate(X509_new());
  const OpensslOwned<EVP_PKEY> key(EVP_EC_gen("P-256"));
  if (certificate == nullptr || key == nullptr || !SetTimes(certificate.get(), from, until) ||
      !SetSubject(certificate.get(), subject.substr(0, kSubjectBytesMax))) {
    return Failed("begin a CA");
  }
  STEPWELL_ASSIGN_OR_RETURN(TlsPair own,
                            Finish(certificate.get(), key.get(), nullptr, nullptr,
                                   {{NID_basic_constraints, "critical,CA:TRUE,pathlen:0"},
                                    {NID_key_usage, "critical,keyCertSign,cRLSign"},
                                    {NID_subject_key_identifier, "hash"}}));
  return TlsAuthority(std::move(own));
}

absl::StatusOr<TlsAuthority> TlsAuthority::Of(TlsPair own) {
  STEPWELL_RETURN_IF_ERROR(Parse(own).status());
  return TlsAuthority(std::move(own));
}

bool TlsAuthority::IsName(const std::string& name) {
  return IsAddress(name) || IsMachineName(name);
}

absl::StatusOr<TlsPair> TlsAuthority::Sign(const TlsRequest& request) const {
  STEPWELL_ASSIGN_OR_RETURN(const Parsed ca, Parse(own_));
  const bool is_server = request.side == TlsSide::kServer;
  std::vector<std::pair<int, std::string>> extensions = {
      {NID_basic_constraints, "critical,CA:FALSE"},
      {NID_key_usage, "critical,digitalSignature"},
      {NID_ext_key_usage, is_server ? "serverAuth" : "clientAuth"},
      {NID_subject_key_identifier, "hash"},
      {NID_authority_key_identifier, "keyid:always"}};
  if (!request.names.empty()) {
    STEPWELL_ASSIGN_OR_RETURN(std::string names, AlternativeNames(request.names));
    extensions.emplace_back(NID_subject_alt_name, std::move(names));
  }
  const OpensslOwned<X509> certificate(X509_new());
  const OpensslOwned<EVP_PKEY> key(EVP_EC_gen("P-256"));
  if (certificate == nullptr || key == nullptr ||
      !SetTimes(certificate.get(), request.from, request.until) ||
      !SetSubject(certificate.get(), request.subject.substr(0, kSubjectBytesMax))) {
    return Failed("begin a certificate");
  }
  const ASN1_TIME* ca_end = X509_get0_notAfter(ca.certificate.get());
  if (ASN1_TIME_compare(X509_get0_notAfter(certificate.get()), ca_end) > 0) {
    X509_set1_notAfter(certificate.get(), ca_end);
  }
  return Finish(certificate.get(), key.get(), ca.certificate.get(), ca.key.get(), extensions);
}

}  // namespace stepwell
