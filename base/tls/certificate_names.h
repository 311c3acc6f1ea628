// CertificateNames: what a client's certificate calls its holder, in the words in which grants are given to it:
// "dns:agent-7.lab" and "uri:spiffe://lab/agent/7", each a subject alternative name, and "cn:agent 7", the
// one common name of its subject. Names are compared whole; there are no wildcards on either side. Pure.
//
//   STEPWELL_ASSIGN_OR_RETURN(const std::string name, CheckCertificateName("dns:Agent-7.lab"));
//   for (const std::string& shown : CertificateNames(pem)) if (shown == name) ...
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

struct ssl_st;  // OpenSSL's connection

namespace stepwell {

// In the form in which names are compared: the letters of a DNS name are small ones. kInvalidArgument says what
// is allowed.
absl::StatusOr<std::string> CheckCertificateName(const std::string& text_untrusted);

// Those of the first certificate of `pem`, each once, sorted. What CheckCertificateName would not take (a
// wildcard, a NUL, letters that are no ASCII in a DNS name) is no name, nor is a common name beside another;
// a certificate with more than 64 alternative names has none.
std::vector<std::string> CertificateNames(std::string_view pem);
// What clients call a server by: the DNS names, as they are written, and addresses in numbers among the alternative names of
// the first certificate of `pem`, each once, in their order. No wildcards; of more than 64 none.
std::vector<std::string> ServerNames(std::string_view pem);
// When the first certificate of `pem` ends, in microseconds since 1970; 1 where that cannot be read: it has ended.
std::int64_t CertificateEnd(std::string_view pem);
// Of the other side of a connection; 0 where it showed no certificate.
std::int64_t PeerCertificateEnd(const ssl_st* connection);
// Of the other side of a connection; empty where it showed no certificate.
std::vector<std::string> PeerCertificateNames(const ssl_st* connection);

}  // namespace stepwell
