// TlsAuthority: a private CA for a lab, and certificates that it signs: what `stepwell tls init` makes.
// ECDSA keys on P-256; a CA that may sign no other CA. Makes texts, writes no files.
//
//   STEPWELL_ASSIGN_OR_RETURN(TlsAuthority ca, TlsAuthority::Make("lab", until));
//   STEPWELL_ASSIGN_OR_RETURN(TlsPair server, ca.Sign({.names = {"master.lab", "10.0.0.7"}, ...}));
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/tls/tls_files.h"

namespace stepwell {

struct TlsPair {
  std::string cert_pem;
  std::string key_pem;
};

struct TlsRequest {
  TlsSide side = TlsSide::kServer;
  // What it is called, at most 64 bytes.
  std::string subject;
  // Of a server: names and addresses in numbers that clients call it by. Of a client: names that grants are given
  // to (certificate_names.h).
  std::vector<std::string> names = {};
  absl::Time from;
  absl::Time until;
};

class TlsAuthority {
 public:
  static absl::StatusOr<TlsAuthority> Make(const std::string& subject, absl::Time from,
                                           absl::Time until);
  // One that was made before. kInvalidArgument: not a CA and its key.
  static absl::StatusOr<TlsAuthority> Of(TlsPair own);

  // Whether it may stand among TlsRequest::names.
  static bool IsName(const std::string& name);
  // With a key of its own. It ends with the CA at the latest.
  absl::StatusOr<TlsPair> Sign(const TlsRequest& request) const;
  const TlsPair& own() const { return own_; }

 private:
  explicit TlsAuthority(TlsPair own) : own_(std::move(own)) {}
  TlsPair own_;
};

}  // namespace stepwell
