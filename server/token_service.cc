#include "server/token_service.h"

#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "base/log.h"
#include "base/status_macros.h"
#include "base/tls/certificate_names.h"
#include "server/grants.h"
#include "server/grpc_access.h"
#include "server/grpc_error.h"
#include "server/limits.h"
#include "server/page_token.h"
#include "server/query_wire.h"
#include "server/read_admission.h"
#include "server/text_check.h"
#include "server/token_text.h"
#include "stepwell/v1/token.grpc.pb.h"

namespace stepwell {
namespace {

constexpr std::size_t kShownBytesMax = 128;
constexpr TextBounds kNameBounds{1, 128};
constexpr std::int64_t kExpirySecondsMax = INT64_C(10) * 365 * 86'400;
constexpr absl::Duration kLifetimeDefault = absl::Hours(1);
constexpr std::int64_t kLifetimeSecondsMin = 60;
constexpr std::int64_t kLifetimeSecondsMax = 86'400;
// At once, until what was fetched was learned of; one of which the database serves. As many may wait.
constexpr int kFetchesMax = 32;
constexpr absl::Duration kFetchPatience = absl::Seconds(1);
// Masters hold them in memory.
constexpr std::int64_t kFetchedLivingMax = 100'000;
constexpr std::int32_t kPageDefault = 100;
constexpr std::int32_t kPageMax = 1000;

v1::Token ToWire(const TokenRecord& token) {
  v1::Token wire;
  wire.set_token_id(token.id);
  wire.set_name(token.name);
  for (const std::string& grant : token.grants) wire.add_grants(grant);
  wire.set_created_time_us(token.created_time_us);
  wire.set_expires_time_us(token.expires_time_us);
  wire.set_used_time_us(token.used_time_us);
  wire.set_revoked_time_us(token.revoked_time_us);
  wire.set_certificate(token.certificate);
  wire.set_made_by(token.made_by);
  return wire;
}

absl::Status Reasoned(absl::Status status, absl::string_view reason) {
  status.SetPayload("stepwell/reason", absl::Cord(reason));
  return status;
}

std::string QuotedGrants(const TokenRecord& token) { return absl::StrJoin(token.grants, " "); }

std::uint32_t FingerprintOf(const v1::ListTokensRequest& request) {
  return QueryFingerprint({"tokens", request.with_ended() ? "all" : "living",
                           request.with_fetched() ? "and fetched" : ""});
}

std::int64_t NumberOf(const std::string& id) {
  std::int64_t number = 0;
  if (!absl::SimpleHexAtoi(id, &number)) number = 0;
  return number;
}

absl::StatusOr<TokenPage> CheckList(const v1::ListTokensRequest& request_untrusted) {
  TokenPage page;
  page.with_ended = request_untrusted.with_ended();
  page.with_fetched = request_untrusted.with_fetched();
  STEPWELL_ASSIGN_OR_RETURN(
      page.limit, CheckSize("page_size", request_untrusted.page_size(), kPageDefault, kPageMax));
  if (request_untrusted.page_token().empty()) return page;
  STEPWELL_ASSIGN_OR_RETURN(const std::vector<std::int64_t> place,
                            ReadPageToken("page_token", request_untrusted.page_token(),
                                          FingerprintOf(request_untrusted), 2));
  page.after = TokenPage::After{place[0], absl::StrCat(absl::Hex(place[1], absl::kZeroPad12))};
  return page;
}

absl::StatusOr<absl::Duration> CheckLifetime(std::int64_t seconds_untrusted) {
  if (seconds_untrusted == 0) return kLifetimeDefault;
  if (seconds_untrusted >= kLifetimeSecondsMin && seconds_untrusted <= kLifetimeSecondsMax) {
    return absl::Seconds(seconds_untrusted);
  }
  return Reasoned(
      absl::InvalidArgumentError(absl::StrCat("lifetime_seconds is ", seconds_untrusted,
                                              ", allowed are ", kLifetimeSecondsMin, " to ",
                                              kLifetimeSecondsMax, " (a day), and 0 for an hour")),
      "LIFETIME_SECONDS");
}

// It grants single trials to ingest, and nothing else.
bool IsNarrow(const TokenHolder& caller) {
  const std::vector<std::string>& grants = caller.grants.texts();
  return std::all_of(grants.begin(), grants.end(),
                     [](const std::string& grant) { return absl::StartsWith(grant, "ingest:"); });
}

// For people: those that are renewed keep the name of the first.
std::string NameOfFetched(const TokenHolder& caller) {
  if (!caller.made_by.empty()) return caller.name;
  return Shortened(absl::StrCat("fetched by ", caller.name), kNameBounds.bytes_max);
}

}  // namespace

class TokenGrpcService::Impl final : public v1::TokenService::Service {
 public:
  explicit Impl(Parts parts) : parts_(parts) {}

  grpc::Status CreateToken(grpc::ServerContext* call, const v1::CreateTokenRequest* request,
                           v1::CreateTokenResponse* response) override {
    const GrpcEntry entry = Enter(*call, *request);
    if (!entry.ok()) return entry.status;
    if (auto complaint = CheckText("name", request->name(), kNameBounds, "NAME")) {
      return GrpcError(*complaint);
    }
    const auto grants = Grants::Parse({request->grants().begin(), request->grants().end()});
    if (!grants.ok()) return GrpcError(Invalid("GRANTS", std::string(grants.status().message())));
    if (const absl::Status there = CheckNumbers(*grants); !there.ok()) return GrpcError(there);
    const std::int64_t seconds = request->expires_after_seconds();
    if (seconds < 0 || seconds > kExpirySecondsMax) {
      return GrpcError(Invalid(
          "EXPIRES_AFTER_SECONDS",
          absl::StrCat("expires_after_seconds is ", seconds, ", allowed are 0 (for ever) to ",
                       kExpirySecondsMax, " (ten years)")));
    }
    absl::StatusOr<std::string> certificate = CheckCertificate(request->certificate());
    if (!certificate.ok()) return GrpcError(certificate.status());
    NewToken made;
    if (certificate->empty()) {
      made = MakeToken();
    } else {
      made.id = MakeTokenId();  // no secret opens it
    }
    TokenRecord token{.id = made.id, .digest = made.digest, .name = request->name()};
    token.grants = grants->texts();
    token.certificate = *std::move(certificate);
    if (seconds > 0) {
      token.expires_time_us = absl::ToUnixMicros(parts_.clock.Now() + absl::Seconds(seconds));
    }
    // What it was checked by may have taken long.
    if (HasEnded(entry.caller)) return GrpcError(TokenEnded());
    const auto created = parts_.store.Create(token);
    if (!created.ok()) return GrpcError(created.status());
    if (HasEnded(entry.caller)) {
      // Nobody hears its secret; it is not to stand among those that live.
      parts_.store.Revoke(created->id).status().IgnoreError();
      return GrpcError(TokenEnded());
    }
    LearnNow();
    log::Info("token_created", {{"token", created->id},
                                {"name", created->name},
                                {"certificate", created->certificate},
                                {"grants", QuotedGrants(*created)},
                                {"by", entry.caller->id}});
    response->set_text(made.text);
    *response->mutable_token() = ToWire(*created);
    return grpc::Status::OK;
  }

  grpc::Status ListTokens(grpc::ServerContext* call, const v1::ListTokensRequest* request,
                          v1::ListTokensResponse* response) override {
    const GrpcEntry entry = Enter(*call, *request);
    if (!entry.ok()) return entry.status;
    absl::StatusOr<TokenPage> page = CheckList(*request);
    if (!page.ok()) return GrpcError(page.status());
    const std::int32_t limit = page->limit++;  // one more tells whether there is a next page
    auto tokens = parts_.store.List(*page);
    if (!tokens.ok()) return GrpcError(tokens.status());
    const bool more = static_cast<std::int32_t>(tokens->size()) > limit;
    if (more) tokens->pop_back();
    for (const TokenRecord& token : *tokens) *response->add_tokens() = ToWire(token);
    if (more) {
      const TokenRecord& last = tokens->back();
      response->set_next_page_token(
          MakePageToken(FingerprintOf(*request), {last.created_time_us, NumberOf(last.id)}));
    }
    return grpc::Status::OK;
  }

  grpc::Status RevokeToken(grpc::ServerContext* call, const v1::RevokeTokenRequest* request,
                           v1::RevokeTokenResponse* response) override {
    const GrpcEntry entry = Enter(*call, *request);
    if (!entry.ok()) return entry.status;
    if (auto complaint = CheckText("token_id", request->token_id(),
                                   {kTokenIdDigits, kTokenIdDigits}, "TOKEN_ID")) {
      return GrpcError(*complaint);
    }
    const auto revoked = parts_.store.Revoke(request->token_id());
    if (!revoked.ok()) return GrpcError(revoked.status());
    parts_.loop->EndNow(revoked->id);
    LearnNow();
    log::Info("token_revoked", {{"token", revoked->id}, {"by", entry.caller->id}});
    *response->mutable_token() = ToWire(*revoked);
    return grpc::Status::OK;
  }

  grpc::Status FetchIngestToken(grpc::ServerContext* call,
                                const v1::FetchIngestTokenRequest* request,
                                v1::FetchIngestTokenResponse* response) override {
    const GrpcEntry entry = Enter(*call, *request);
    if (!entry.ok()) return entry.status;
    const TokenHolder& caller = *entry.caller;
    const auto lifetime = CheckLifetime(request->lifetime_seconds());
    if (!lifetime.ok()) return GrpcError(lifetime.status());
    const auto grant = GrantOf(caller, request->trial());
    if (!grant.ok()) return GrpcError(grant.status());
    if (request->unless_narrow() && IsNarrow(caller)) {
      return GrpcError(Reasoned(
          absl::FailedPreconditionError("the token that was shown grants nothing but to ingest"),
          "TOKEN_IS_NARROW"));
    }
    if (parts_.loop->fetched_count() >= kFetchedLivingMax) {
      return GrpcError(Reasoned(
          absl::ResourceExhaustedError(absl::StrCat("there are ", parts_.loop->fetched_count(),
                                                    " tokens that were fetched and live, limit ",
                                                    kFetchedLivingMax, "; let them expire")),
          "TOKEN_LIMIT"));
    }
    const NewToken made = MakeToken();
    TokenFetch fetch{.id = made.id, .digest = made.digest, .name = NameOfFetched(caller)};
    fetch.grant = *grant;
    fetch.made_by = TokenGuard::MakerOf(caller);
    if (!caller.made_by.empty()) {
      fetch.shown_id = caller.id;
      fetch.family = caller.family;
    }
    fetch.lifetime = std::min(*lifetime, parts_.fetched_max);
    absl::StatusOr<TokenRecord> fetched;
    absl::Status learned;
    {
      // Over both: each that waits for the database, or for another's answer, holds a thread of gRPC's.
      const auto turn = fetching_.Enter(kFetchPatience, PayerOf(caller));
      if (!turn.ok()) {
        return GrpcError(
            absl::UnavailableError("too many fetch tokens just now; come again"),
            {.reason = "FETCHES_UNDER_WAY", .retry_delay = absl::Seconds(1), .violations = {}});
      }
      fetched = parts_.store.Fetch(fetch);
      if (fetched.ok()) learned = parts_.loop->LearnFetchedNow(fetched->id);
    }
    if (!fetched.ok()) return GrpcError(fetched.status());
    if (!learned.ok()) log::Warning("tokens_not_read", {{"status", learned.ToString()}});
    log::Info("token_fetched", {{"token", fetched->id},
                                {"grants", QuotedGrants(*fetched)},
                                {"made_by", fetched->made_by},
                                {"by", caller.id}});
    response->set_text(made.text);
    *response->mutable_token() = ToWire(*fetched);
    response->set_renews(!caller.made_by.empty());
    return grpc::Status::OK;
  }

 private:
  // What is fetched grants no more than what was shown: where that is by the trial's number, which its name may
  // one day not lead to any more, so is this.
  absl::StatusOr<std::string> GrantOf(const TokenHolder& caller, const v1::TrialRef& ref) const {
    STEPWELL_ASSIGN_OR_RETURN(const TrialSelector trial, CheckTrialRef(ref));
    std::string text = IngestGrant(trial);
    const bool is_by_number = trial.trial_id != 0;
    if (!is_by_number && !caller.grants.Ingests({0, trial.project, trial.external_id})) {
      STEPWELL_ASSIGN_OR_RETURN(const TrialPlace place, parts_.store.FindPlace(trial));
      text = IngestGrant({.trial_id = place.trial_id});
    }
    const auto grants = Grants::Parse({text});
    if (!grants.ok()) {
      return Reasoned(absl::InvalidArgumentError(
                          absl::StrCat("trial: ", std::string(grants.status().message()))),
                      "TRIAL");
    }
    if (is_by_number) STEPWELL_RETURN_IF_ERROR(CheckNumbers(*grants));
    return text;
  }
  GrpcEntry Enter(const grpc::ServerContext& call, const google::protobuf::Message& request) const {
    GrpcEntry entry = EnterCall(&parts_.access, call, request);
    if (!entry.ok() || parts_.loop != nullptr) return entry;
    return {GrpcError(Complaint{absl::StatusCode::kFailedPrecondition, "NO_TOKENS_ASKED",
                                "this master asks nobody for a token: start it with --token-file"
                                " (and --tls-cert, --tls-key)"}),
            nullptr};
  }
  // A number of the master's own is some trial's one day, of whoever makes the next one: it may not be waited
  // for.
  absl::Status CheckNumbers(const Grants& grants) const {
    for (const std::string& text : grants.texts()) {
      absl::string_view rest = text;
      std::int64_t id = 0;
      if (!absl::ConsumePrefix(&rest, "ingest:id:") || !absl::SimpleAtoi(rest, &id)) continue;
      if (id < kMasterTrialIdMin) continue;
      const auto place = parts_.store.FindPlace({.trial_id = id});
      if (place.ok()) continue;
      if (!absl::IsNotFound(place.status())) return place.status();
      return Reasoned(
          absl::InvalidArgumentError(absl::StrCat(
              "grants: '", text, "': there is no such trial; numbers from ", kMasterTrialIdMin,
              " on are given by the master, so a trial that is not there yet is named ",
              "ingest:PROJECT/TRIAL, or by a smaller number")),
          "GRANTS");
    }
    return absl::OkStatus();
  }
  // As it is compared; empty where none was given.
  absl::StatusOr<std::string> CheckCertificate(const std::string& text_untrusted) const {
    if (text_untrusted.empty()) return text_untrusted;
    if (!parts_.asks_certificates) {
      return Reasoned(absl::FailedPreconditionError(
                          "this master asks no client for a certificate: start it with "
                          "--tls-client-ca"),
                      "NO_CERTIFICATES_ASKED");
    }
    auto name = CheckCertificateName(text_untrusted);
    if (name.ok()) return name;
    return Reasoned(absl::InvalidArgumentError(
                        absl::StrCat("certificate: '", Shortened(text_untrusted, kShownBytesMax),
                                     "' is no name of one; ", name.status().message())),
                    "CERTIFICATE");
  }
  // It is committed; where the database does not answer now, the loop reads it when it does.
  void LearnNow() const {
    const absl::Status learned = parts_.loop->LearnNow();
    if (!learned.ok()) log::Warning("tokens_not_read", {{"status", learned.ToString()}});
  }

  const Parts parts_;
  ReadAdmission fetching_{kFetchesMax};
};

TokenGrpcService::TokenGrpcService(Parts parts) : impl_(std::make_unique<Impl>(parts)) {}
TokenGrpcService::~TokenGrpcService() = default;
grpc::Service* TokenGrpcService::service() { return impl_.get(); }

}  // namespace stepwell
