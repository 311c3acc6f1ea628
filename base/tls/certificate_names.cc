#include "base/tls/certificate_names.h"

#include <arpa/inet.h>
#include <openssl/x509v3.h>

#include <algorithm>
#include <array>
#include <climits>
#include <ctime>
#include <functional>
#include <set>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/tls/openssl_text.h"
#include "base/utf8.h"

namespace stepwell {
namespace {

constexpr std::size_t kDnsBytesMax = 253;
constexpr std::size_t kUriBytesMax = 512;
constexpr std::size_t kCommonNameBytesMax = 128;  // 64 characters are RFC 5280's bound
// Of a client's certificate; one with more has none of them.
constexpr int kNamesMax = 64;

bool IsDnsName(absl::string_view name) {
  return !name.empty() && name.size() <= kDnsBytesMax &&
         std::all_of(name.begin(), name.end(), [](unsigned char byte) {
           return absl::ascii_isalnum(byte) || byte == '-' || byte == '.' || byte == '_';
         });
}

bool IsUri(absl::string_view name) {
  const auto colon = name.find(':');
  return colon != absl::string_view::npos && colon > 0 && name.size() <= kUriBytesMax &&
         std::all_of(name.begin(), name.end(),
                     [](unsigned char byte) { return absl::ascii_isgraph(byte) && byte != '*'; });
}

bool IsCommonName(absl::string_view name) {
  if (name.empty() || name.size() > kCommonNameBytesMax) return false;
  std::string_view rest(name.data(), name.size());
  while (!rest.empty()) {
    const std::size_t bytes = CharacterBytes(rest);
    if (bytes == 0 || BeginsWithControl(rest) || rest.front() == '*') return false;
    rest.remove_prefix(bytes);
  }
  return true;
}

std::string BytesOf(const ASN1_STRING* text) {
  return {reinterpret_cast<const char*>(ASN1_STRING_get0_data(text)),
          static_cast<std::size_t>(ASN1_STRING_length(text))};
}

void Take(const std::string& name, std::set<std::string>& names) {
  if (auto checked = CheckCertificateName(name); checked.ok()) names.insert(*std::move(checked));
}

void ForEachAlternative(const X509* certificate, int count_max,
                        const std::function<void(const GENERAL_NAME&)>& take) {
  auto* found = static_cast<GENERAL_NAMES*>(
      X509_get_ext_d2i(certificate, NID_subject_alt_name, nullptr, nullptr));
  if (found == nullptr) return;
  const int count = sk_GENERAL_NAME_num(found);
  for (int at = 0; at < count && count <= count_max; ++at) take(*sk_GENERAL_NAME_value(found, at));
  GENERAL_NAMES_free(found);
}

void TakeAlternatives(const X509* certificate, std::set<std::string>& names) {
  ForEachAlternative(certificate, kNamesMax, [&names](const GENERAL_NAME& name) {
    if (name.type == GEN_DNS) Take(absl::StrCat("dns:", BytesOf(name.d.dNSName)), names);
    if (name.type == GEN_URI) {
      Take(absl::StrCat("uri:", BytesOf(name.d.uniformResourceIdentifier)), names);
    }
  });
}

// "10.0.0.7", "2001:db8::7"; empty where it is neither.
std::string AddressOf(const std::string& bytes) {
  const int family = bytes.size() == 4 ? AF_INET : bytes.size() == 16 ? AF_INET6 : AF_UNSPEC;
  std::array<char, INET6_ADDRSTRLEN> text{};
  if (family == AF_UNSPEC) return "";
  return inet_ntop(family, bytes.data(), text.data(), text.size()) == nullptr ? "" : text.data();
}

void TakeCommonName(const X509* certificate, std::set<std::string>& names) {
  const X509_NAME* subject = X509_get_subject_name(certificate);
  const int at = X509_NAME_get_index_by_NID(subject, NID_commonName, -1);
  // Of two nobody knows which is meant.
  if (at < 0 || X509_NAME_get_index_by_NID(subject, NID_commonName, at) >= 0) return;
  unsigned char* text = nullptr;
  const int bytes =
      ASN1_STRING_to_UTF8(&text, X509_NAME_ENTRY_get_data(X509_NAME_get_entry(subject, at)));
  if (bytes < 0) return;
  Take(absl::StrCat("cn:", absl::string_view(reinterpret_cast<const char*>(text),
                                             static_cast<std::size_t>(bytes))),
       names);
  OPENSSL_free(text);
}

std::vector<std::string> NamesOf(const X509* certificate) {
  std::set<std::string> names;
  if (certificate != nullptr) {
    TakeAlternatives(certificate, names);
    TakeCommonName(certificate, names);
  }
  // What could not be read of it is nobody else's error.
  ERR_clear_error();
  return {names.begin(), names.end()};
}

std::int64_t EndOf(const X509* certificate) {
  std::int64_t end_us = 1;
  std::tm end{};
  if (certificate != nullptr && ASN1_TIME_to_tm(X509_get0_notAfter(certificate), &end) == 1) {
    end_us = std::max<std::int64_t>(1, std::int64_t{timegm(&end)} * 1'000'000);
  }
  ERR_clear_error();
  return end_us;
}

}  // namespace

absl::StatusOr<std::string> CheckCertificateName(const std::string& text_untrusted) {
  absl::string_view rest = text_untrusted;
  if (absl::ConsumePrefix(&rest, "dns:")) {
    if (IsDnsName(rest)) return absl::AsciiStrToLower(text_untrusted);
  } else if (absl::ConsumePrefix(&rest, "uri:")) {
    if (IsUri(rest)) return text_untrusted;
  } else if (absl::ConsumePrefix(&rest, "cn:")) {
    if (IsCommonName(rest)) return text_untrusted;
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "allowed: dns:NAME (1 to ", kDnsBytesMax, " bytes of [A-Za-z0-9._-]), uri:URI (at most ",
      kUriBytesMax, " bytes of ASCII, with its scheme), cn:NAME (1 to ", kCommonNameBytesMax,
      " bytes of UTF-8); names are compared whole, there is no wildcard *"));
}

std::vector<std::string> CertificateNames(std::string_view pem) {
  const OpensslOwned<X509> certificate(
      PEM_read_bio_X509(BioOf(pem).get(), nullptr, nullptr, nullptr));
  return NamesOf(certificate.get());
}

std::vector<std::string> ServerNames(std::string_view pem) {
  const OpensslOwned<X509> certificate(
      PEM_read_bio_X509(BioOf(pem).get(), nullptr, nullptr, nullptr));
  std::vector<std::string> names;
  const auto add = [&names](const std::string& name) {
    const bool is_new = std::find(names.begin(), names.end(), name) == names.end();
    if (!name.empty() && is_new) names.push_back(name);
  };
  if (certificate != nullptr) {
    // The operator's own.
    ForEachAlternative(certificate.get(), INT_MAX, [&add](const GENERAL_NAME& name) {
      if (name.type == GEN_DNS && IsDnsName(BytesOf(name.d.dNSName))) add(BytesOf(name.d.dNSName));
      if (name.type == GEN_IPADD) add(AddressOf(BytesOf(name.d.iPAddress)));
    });
  }
  ERR_clear_error();
  return names;
}

std::int64_t CertificateEnd(std::string_view pem) {
  const OpensslOwned<X509> certificate(
      PEM_read_bio_X509(BioOf(pem).get(), nullptr, nullptr, nullptr));
  return EndOf(certificate.get());
}

std::int64_t PeerCertificateEnd(const ssl_st* connection) {
  const X509* certificate = SSL_get0_peer_certificate(connection);
  return certificate == nullptr ? 0 : EndOf(certificate);
}

std::vector<std::string> PeerCertificateNames(const ssl_st* connection) {
  return NamesOf(SSL_get0_peer_certificate(connection));
}

}  // namespace stepwell
