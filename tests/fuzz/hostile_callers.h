// HostileCallers: any bytes as what tells who calls: a client's certificate, its address, an operator's list of addresses. Names
// are such as grants are given to, whole and each once; the machines of one network are one, those of two never.
// Header only; pure.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <openssl/x509v3.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/check.h"
#include "base/tls/certificate_names.h"
#include "base/tls/openssl_text.h"
#include "server/peer_address.h"
#include "tests/fuzz/hostile_bytes.h"

namespace stepwell::testing {

// The first byte of an input, in seeds a digit.
enum class HostileCallersKind : std::uint8_t { kPem, kCertificate, kNames, kAddress, kText };
inline constexpr std::uint8_t kHostileCallersKinds = 5;

inline std::string PemOf(std::string_view der) {
  return absl::StrCat("-----BEGIN CERTIFICATE-----\n",
                      absl::Base64Escape(absl::string_view(der.data(), der.size())),
                      "\n-----END CERTIFICATE-----\n");
}

inline void ReadHostilePem(const std::string& pem) {
  const std::vector<std::string> names = CertificateNames(pem);
  // 64 alternatives, and the common one.
  STEPWELL_CHECK(names.size() <= 65);
  for (const std::string& name : names) {
    const auto checked = CheckCertificateName(name);
    STEPWELL_CHECK(checked.ok() && *checked == name);
    STEPWELL_CHECK(name.find('\0') == name.npos && name.find('*') == name.npos);
  }
  STEPWELL_CHECK(std::set<std::string>(names.begin(), names.end()).size() == names.size());
  STEPWELL_CHECK(std::is_sorted(names.begin(), names.end()));
  STEPWELL_CHECK(CertificateNames(pem) == names);
  STEPWELL_CHECK(ERR_peek_error() == 0);
}

// A certificate with names that are those of lines of the input: whose are taken is known here. Nobody signs it.
inline void ReadHostileNamesOfOne(HostileBytes& input) {
  const OpensslOwned<X509> made(X509_new());
  X509_set_version(made.get(), 2);
  ASN1_INTEGER_set(X509_get_serialNumber(made.get()), 4711);
  ASN1_TIME_set(X509_getm_notBefore(made.get()), 0);
  ASN1_TIME_set(X509_getm_notAfter(made.get()), 1);
  // Signed by nobody, but of the form of one that is.
  X509_ALGOR* signed_by = const_cast<X509_ALGOR*>(X509_get0_tbs_sigalg(made.get()));
  X509_ALGOR_set0(signed_by, OBJ_nid2obj(NID_sha256WithRSAEncryption), V_ASN1_NULL, nullptr);
  GENERAL_NAMES* alternatives = GENERAL_NAMES_new();
  std::set<std::string> expected;
  std::string common;
  int common_count = 0;
  int count = 0;
  while (!input.at_end()) {
    const std::string text(input.TakeUntil('\n'));
    const char kind = text.empty() ? '\0' : text[0];
    const std::string name = text.empty() ? "" : text.substr(1);
    if (kind == 'c') {
      common = name;
      common_count += X509_NAME_add_entry_by_NID(
          X509_get_subject_name(made.get()), NID_commonName, V_ASN1_UTF8STRING,
          reinterpret_cast<const unsigned char*>(name.data()), static_cast<int>(name.size()), -1,
          0);
      continue;
    }
    const int type = kind == 'd' ? GEN_DNS : kind == 'u' ? GEN_URI : GEN_EMAIL;
    ASN1_IA5STRING* bytes = ASN1_IA5STRING_new();
    ASN1_STRING_set(bytes, name.data(), static_cast<int>(name.size()));
    GENERAL_NAME* alternative = GENERAL_NAME_new();
    GENERAL_NAME_set0_value(alternative, type, bytes);
    sk_GENERAL_NAME_push(alternatives, alternative);
    ++count;
    if (type == GEN_EMAIL) continue;
    const auto checked = CheckCertificateName((kind == 'd' ? "dns:" : "uri:") + name);
    if (checked.ok()) expected.insert(*checked);
  }
  if (count > 64) expected.clear();
  if (common_count == 1) {
    const auto checked = CheckCertificateName("cn:" + common);
    if (checked.ok()) expected.insert(*checked);
  }
  if (count > 0) X509_add1_ext_i2d(made.get(), NID_subject_alt_name, alternatives, 0, 0);
  GENERAL_NAMES_free(alternatives);
  unsigned char* der = nullptr;
  const int bytes = i2d_X509(made.get(), &der);
  ERR_clear_error();
  if (bytes <= 0) return;
  const std::string pem =
      PemOf({reinterpret_cast<const char*>(der), static_cast<std::size_t>(bytes)});
  OPENSSL_free(der);
  const std::vector<std::string> names = CertificateNames(pem);
  STEPWELL_CHECK(std::set<std::string>(names.begin(), names.end()) == expected);
  // Only the first of a chain counts.
  STEPWELL_CHECK(CertificateNames(pem + pem) == names);
  ReadHostilePem(pem);
}

// The same address in other words is the same, and so is whatever lies in its network.
inline void ReadHostileAddress(HostileBytes& input) {
  sockaddr_in6 peer{};
  peer.sin6_family = AF_INET6;
  const std::string_view given = input.TakeBytes(16);
  std::memcpy(&peer.sin6_addr, given.data(), given.size());
  const auto* groups = reinterpret_cast<const std::uint16_t*>(&peer.sin6_addr);
  std::string plain;
  for (int i = 0; i < 8; ++i) {
    const unsigned group = ntohs(groups[i]);
    const bool is_brief = input.Take<std::uint8_t>() % 2 == 0;
    absl::StrAppend(&plain, i > 0 ? ":" : "",
                    is_brief ? absl::StrFormat("%x", group) : absl::StrFormat("%04X", group));
  }
  char brief[INET6_ADDRSTRLEN];
  inet_ntop(AF_INET6, &peer.sin6_addr, brief, sizeof(brief));
  const auto key = AddressKey(plain);
  STEPWELL_CHECK(key.has_value());
  STEPWELL_CHECK(AddressKey(brief) == key && AddressKey(plain + "%eth0") == key);
  STEPWELL_CHECK(AddressOfSocket(reinterpret_cast<const sockaddr&>(peer)) == *key);
  STEPWELL_CHECK(AddressOfPeer(absl::StrCat("ipv6:[", brief, "]:51034")) == *key);
  STEPWELL_CHECK(AddressOfPeer(absl::StrCat("ipv6:%5B", plain, "%5D:1")) == *key);
  STEPWELL_CHECK(ParseAddresses(absl::StrCat(" ", plain, ",", brief)).value() ==
                 std::set<std::string>{*key});
  // One bit of it is another: behind the network it is the same one, before it never.
  const int bit = input.Take<std::uint8_t>() % 128;
  in6_addr other = peer.sin6_addr;
  other.s6_addr[bit / 8] = static_cast<std::uint8_t>(other.s6_addr[bit / 8] ^ 1 << (bit % 8));
  char text[INET6_ADDRSTRLEN];
  inet_ntop(AF_INET6, &other, text, sizeof(text));
  const auto beside = AddressKey(text);
  STEPWELL_CHECK(beside.has_value());
  const bool is_v4 = IN6_IS_ADDR_V4MAPPED(&peer.sin6_addr) || IN6_IS_ADDR_V4MAPPED(&other);
  STEPWELL_CHECK((*beside == *key) == (bit >= 64 && !is_v4));
  // What is an IPv4 address within IPv6 is that.
  std::array<unsigned, 4> bytes{};
  for (unsigned& byte : bytes) byte = input.Take<std::uint8_t>();
  const std::string v4 = absl::StrFormat("%d.%d.%d.%d", bytes[0], bytes[1], bytes[2], bytes[3]);
  STEPWELL_CHECK(AddressKey(v4) == v4 && AddressKey("::ffff:" + v4) == v4);
  STEPWELL_CHECK(AddressOfPeer(absl::StrCat("ipv4:", v4, ":80")) == v4);
}

inline void ReadHostileAddressText(std::string_view text) {
  const auto known = [](const std::string& key) {
    const bool is_network = key.size() > 3 && key.substr(key.size() - 3) == "/64";
    const auto again = AddressKey(is_network ? key.substr(0, key.size() - 3) : key);
    return again == key;
  };
  if (const auto key = AddressKey(text)) STEPWELL_CHECK(known(*key));
  if (const std::string key = AddressOfPeer(text); !key.empty()) STEPWELL_CHECK(known(key));
  const auto keys = ParseAddresses(text);
  if (!keys.ok()) {
    STEPWELL_CHECK(absl::IsInvalidArgument(keys.status()) && !keys.status().message().empty());
    return;
  }
  STEPWELL_CHECK(keys->size() <= text.size());
  for (const std::string& key : *keys) STEPWELL_CHECK(known(key));
}

inline void ReadHostileCallers(std::string_view bytes) {
  HostileBytes input(bytes);
  switch (HostileCallersKind{
      static_cast<std::uint8_t>((input.Take<std::uint8_t>() + 2) % kHostileCallersKinds)}) {
    case HostileCallersKind::kPem:
      return ReadHostilePem(std::string(input.rest()));
    case HostileCallersKind::kCertificate:
      return ReadHostilePem(PemOf(input.rest()));
    case HostileCallersKind::kNames:
      return ReadHostileNamesOfOne(input);
    case HostileCallersKind::kAddress:
      return ReadHostileAddress(input);
    case HostileCallersKind::kText:
      return ReadHostileAddressText(input.rest());
  }
}

}  // namespace stepwell::testing
