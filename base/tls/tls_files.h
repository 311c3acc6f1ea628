// TlsFiles: the certificates and keys that one side of a connection has, as PEM files, and what was read
// of them. What is read is checked, so that nothing half-written or mixed up is ever used. Pure but for
// reading.
//
//   STEPWELL_ASSIGN_OR_RETURN(const TlsMaterial tls, ReadTls({.ca = "ca.pem"}));
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace stepwell {

struct TlsFiles {
  // Who signs the other side's certificates.
  std::string ca = {};
  // This side's own, with those between it and its CA behind it, and its key. Both or none.
  std::string cert = {};
  std::string key = {};

  bool empty() const { return ca.empty() && cert.empty() && key.empty(); }
  friend bool operator==(const TlsFiles&, const TlsFiles&) = default;
};

struct TlsMaterial {
  std::string ca_pem;
  std::string cert_pem;
  std::string key_pem;
  // When `cert_pem` ends.
  absl::Time expires = absl::InfiniteFuture();
};

enum class TlsSide { kServer, kClient };

// Those that are named. kNotFound, kPermissionDenied and kInvalidArgument (no PEM, a key that is not the
// certificate's, one that is encrypted, a certificate for the other side) name the option and its file.
absl::StatusOr<TlsMaterial> ReadTls(const TlsFiles& files, TlsSide side);

// Whether the first certificate of the file `cert` is signed by that of the file `ca`. False also where one is not there.
bool IsSignedBy(const std::string& cert, const std::string& ca);

// STEPWELL_TLS_CA, STEPWELL_TLS_CERT and STEPWELL_TLS_KEY where `given` has none; of a pair, both.
TlsFiles ClientTls(TlsFiles given);
// kInvalidArgument: half a pair, or a pair without a CA.
absl::Status CheckClientTls(const TlsFiles& files);

}  // namespace stepwell
