// AccessControl: the one place that decides whether a call may go on: what its request is about (AccessRules),
// where that lies, what its caller's token grants. What a caller may not know of is not there: its answer is
// that of a trial which does not exist. Thread-safe; may ask the database where a trial lies.
//
//   STEPWELL_ASSIGN_OR_RETURN(const Caller caller, access.Identify(authorization));
//   STEPWELL_RETURN_IF_ERROR(access.Check(caller, request));
//
// Errors: kUnauthenticated; kNotFound = not there for this caller; kPermissionDenied names the grant that is
// missing, with the reason GRANT_MISSING; kInvalidArgument = the request names no trial, or more than
// 64; kUnavailable = the database does not say, or too many ask it where trials lie, of all or of this token (kLookupsReason).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "server/access_rules.h"
#include "server/caller.h"
#include "server/read_admission.h"
#include "server/token_guard.h"
#include "storage/token_store.h"

namespace stepwell {

class RateLimits;
class StrangerWatch;

class AccessControl {
 public:
  // Null: this master asks for no token, and whoever calls may do everything. Both outlive this.
  // `rates` null: nothing is limited. `strangers`, of the gRPC port, hears on which connections somebody is known.
  AccessControl(TokenGuard* guard, TokenStore& store, RateLimits* rates = nullptr,
                StrangerWatch* strangers = nullptr)
      : guard_(guard), store_(store), rates_(rates), strangers_(strangers) {}

  bool asks() const { return guard_ != nullptr; }
  RateLimits* rates() const { return rates_; }
  StrangerWatch* strangers() const { return strangers_; }
  // Null where nobody is asked.
  absl::StatusOr<Caller> Identify(std::string_view authorization) const;
  absl::StatusOr<Caller> IdentifyToken(const std::string& token) const;
  // Of who shows no token, and a certificate with these names, or none.
  absl::StatusOr<Caller> IdentifyCertificate(const std::vector<std::string>& names) const;

  // As TokenGuard::Until.
  absl::StatusOr<Caller> Until(const Caller& caller, std::int64_t certificate_end_us) const;

  // Of the call with this request, by the rule for its type.
  absl::Status Check(const Caller& caller, const google::protobuf::Message& request) const;
  // Of a request whose trials stand in a message of another type.
  absl::Status CheckAs(const AccessRule* rule, const Caller& caller,
                       const google::protobuf::Message& request) const;
  // Whether it may ingest anything at all: before a call whose trial is told later takes a place.
  absl::Status CheckIngests(const Caller& caller) const;
  // Of a writer that opens: never kNotFound, for it would make the trial.
  absl::Status CheckOpen(const Caller& caller, const TrialSelector& trial) const;

 private:
  absl::Status CheckTrial(const AccessRule& rule, const TokenHolder& holder,
                          const TrialSelector& trial) const;
  absl::Status CheckCapsPlace(const AccessRule& rule, const TokenHolder& holder,
                              const google::protobuf::Message& request) const;
  // Known ones are told from memory to those who may see them: to others an answer takes as long whether
  // there is such a trial or not.
  absl::StatusOr<TrialPlace> PlaceOf(const TokenHolder& holder, const TrialSelector& trial) const;

  TokenGuard* const guard_;
  TokenStore& store_;
  RateLimits* const rates_;
  StrangerWatch* const strangers_;
  // Questions where trials lie: whoever asks for many waits with them, and not the tokens of others, for which half of the
  // turns are left.
  static constexpr int kLookupsMax = 8;
  mutable ReadAdmission lookups_{kLookupsMax};
  mutable absl::Mutex mu_;
  // A trial's project never changes. Bounded.
  mutable absl::flat_hash_map<std::int64_t, TrialPlace> places_ ABSL_GUARDED_BY(mu_);
};

inline constexpr char kLookupsReason[] = "LOOK_UPS_UNDER_WAY";

// What a call is told whose token has ended while it was under way.
absl::Status TokenEnded();

}  // namespace stepwell
