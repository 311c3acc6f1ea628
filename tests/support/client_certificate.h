// ClientCertificate: certificates of clients with names as no sane CA would sign them. Header only; by OpenSSL.
#pragma once

#include <openssl/ec.h>
#include <openssl/x509v3.h>

#include <string>
#include <vector>

#include "absl/time/clock.h"
#include "base/tls/openssl_text.h"
#include "base/tls/tls_authority.h"

namespace stepwell::testing {

struct OddNames {
  std::vector<std::string> dns = {};  // any bytes
  std::vector<std::string> uris = {};
  std::vector<std::string> common = {"test"};
};

inline TlsPair OddClient(const TlsAuthority& ca, const OddNames& names) {
  const OpensslOwned<X509> issuer(
      PEM_read_bio_X509(BioOf(ca.own().cert_pem).get(), nullptr, nullptr, nullptr));
  const OpensslOwned<EVP_PKEY> issuer_key(
      PEM_read_bio_PrivateKey(BioOf(ca.own().key_pem).get(), nullptr, nullptr, nullptr));
  const OpensslOwned<X509> made(X509_new());
  const OpensslOwned<EVP_PKEY> key(EVP_EC_gen("P-256"));
  X509_set_version(made.get(), 2);
  ASN1_INTEGER_set(X509_get_serialNumber(made.get()), 4711);
  ASN1_TIME_set(X509_getm_notBefore(made.get()), absl::ToTimeT(absl::Now() - absl::Minutes(5)));
  ASN1_TIME_set(X509_getm_notAfter(made.get()), absl::ToTimeT(absl::Now() + absl::Hours(1)));
  for (const std::string& name : names.common) {
    X509_NAME_add_entry_by_txt(X509_get_subject_name(made.get()), "CN", MBSTRING_UTF8,
                               reinterpret_cast<const unsigned char*>(name.data()),
                               static_cast<int>(name.size()), -1, 0);
  }
  GENERAL_NAMES* alternatives = GENERAL_NAMES_new();
  const auto add = [alternatives](int type, const std::string& bytes) {
    ASN1_IA5STRING* text = ASN1_IA5STRING_new();
    ASN1_STRING_set(text, bytes.data(), static_cast<int>(bytes.size()));
    GENERAL_NAME* name = GENERAL_NAME_new();
    GENERAL_NAME_set0_value(name, type, text);
    sk_GENERAL_NAME_push(alternatives, name);
  };
  for (const std::string& name : names.dns) add(GEN_DNS, name);
  for (const std::string& uri : names.uris) add(GEN_URI, uri);
  if (sk_GENERAL_NAME_num(alternatives) > 0) {
    X509_add1_ext_i2d(made.get(), NID_subject_alt_name, alternatives, 0, 0);
  }
  GENERAL_NAMES_free(alternatives);
  X509_set_pubkey(made.get(), key.get());
  X509_set_issuer_name(made.get(), X509_get_subject_name(issuer.get()));
  X509_sign(made.get(), issuer_key.get(), EVP_sha256());
  const OpensslOwned<BIO> cert_text(BIO_new(BIO_s_mem()));
  const OpensslOwned<BIO> key_text(BIO_new(BIO_s_mem()));
  PEM_write_bio_X509(cert_text.get(), made.get());
  PEM_write_bio_PrivateKey(key_text.get(), key.get(), nullptr, nullptr, 0, nullptr, nullptr);
  const auto text_of = [](BIO* bio) {
    char* text = nullptr;
    const long bytes = BIO_get_mem_data(bio, &text);
    return std::string(text, static_cast<std::size_t>(bytes));
  };
  return {text_of(cert_text.get()), text_of(key_text.get())};
}

}  // namespace stepwell::testing
