#include "server/grpc_tls.h"

#include <grpc/grpc.h>
#include <grpc/grpc_security.h>
#include <grpc/grpc_security_constants.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "base/tls/certificate_names.h"
#include "server/wrong_tokens.h"

namespace stepwell {
namespace {

// `slice` outlives it.
std::string_view TextOf(const grpc_slice& slice) {
  return {reinterpret_cast<const char*>(GRPC_SLICE_START_PTR(slice)), GRPC_SLICE_LENGTH(slice)};
}

constexpr std::string_view kReflection = "/grpc.reflection.";

// That the client of a connection showed; empty: none. The connection's.
std::string_view CertificateOf(const grpc_auth_context* peer) {
  if (peer == nullptr) return {};
  grpc_auth_property_iterator shown =
      grpc_auth_context_find_properties_by_name(peer, GRPC_X509_PEM_CERT_PROPERTY_NAME);
  const grpc_auth_property* pem = grpc_auth_property_iterator_next(&shown);
  if (pem == nullptr || grpc_auth_property_iterator_next(&shown) != nullptr) return {};
  return {pem->value, pem->value_length};
}

// What nobody of ours is asked about once more: gRPC's own services are behind this check alone.
absl::Status MayBegin(std::string_view path, std::string_view certificate) {
  // Each of its streams holds a thread for as long as its client likes, also behind its token's end.
  if (path.substr(0, kReflection.size()) == kReflection) {
    return absl::UnimplementedError("there is no reflection where tokens are asked for");
  }
  if (certificate.empty() || CertificateEnd(certificate) > absl::ToUnixMicros(absl::Now())) {
    return absl::OkStatus();
  }
  return absl::UnauthenticatedError(kPeerCertificateEnded);
}

class ReloadedCredentials final : public grpc::ServerCredentials {
 public:
  ReloadedCredentials(std::shared_ptr<TlsReload> reload, std::shared_ptr<TokenGuard> tokens,
                      std::shared_ptr<RateLimits> rates, GrpcGuesses guesses)
      : reload_(std::move(reload)), tokens_{std::move(tokens), std::move(rates), guesses} {
    // Required and verified before anything of HTTP/2 is read: what a stranger sends there never
    // reaches the parts of gRPC that cost much.
    const auto asks = reload_->files().ca.empty()
                          ? GRPC_SSL_DONT_REQUEST_CLIENT_CERTIFICATE
                          : GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY;
    // Takes the options over.
    credentials_ = grpc_ssl_server_credentials_create_with_options(
        grpc_ssl_server_credentials_create_options_using_config_fetcher(asks, &Fetch, this));
    if (tokens_.guard == nullptr) return;
    // gRPC lets it go when the last of its own ends, which may be after this.
    grpc_server_credentials_set_auth_metadata_processor(
        credentials_,
        {&CheckCall, [](void* state) { delete static_cast<Tokens*>(state); }, new Tokens(tokens_)});
  }
  ~ReloadedCredentials() override { grpc_server_credentials_release(credentials_); }

  // Who calls is asked elsewhere.
  void SetAuthMetadataProcessor(const std::shared_ptr<grpc::AuthMetadataProcessor>&) override {}

 private:
  int AddPortToServer(const std::string& address, grpc_server* server) override {
    return grpc_server_add_http2_port(server, address.c_str(), credentials_);
  }

  static grpc_ssl_certificate_config_reload_status Fetch(
      void* self, grpc_ssl_server_certificate_config** config) {
    return static_cast<ReloadedCredentials*>(self)->Give(config);
  }

  struct Tokens {
    std::shared_ptr<TokenGuard> guard;
    std::shared_ptr<RateLimits> rates;
    GrpcGuesses guesses;
  };
  // On the threads of calls.
  static void CheckCall(void* state, grpc_auth_context* peer, const grpc_metadata* metadata,
                        std::size_t count, grpc_process_auth_metadata_done_cb done, void* call) {
    int shown = 0;
    std::string_view authorization, path;
    for (std::size_t at = 0; at < count; ++at) {
      const std::string_view key = TextOf(metadata[at].key);
      if (key == ":path") path = TextOf(metadata[at].value);
      if (key != "authorization") continue;
      authorization = TextOf(metadata[at].value);
      ++shown;
    }
    const std::string_view certificate = CertificateOf(peer);
    const Tokens& tokens = *static_cast<Tokens*>(state);
    absl::Status why = absl::UnauthenticatedError(kNoToken);
    if (shown == 0) {
      why = tokens.guard
                ->IdentifyCertificate(certificate.empty() ? std::vector<std::string>()
                                                          : CertificateNames(certificate))
                .status();
    }
    if (shown == 1) {
      auto caller = tokens.guard->Identify(authorization);
      if (tokens.rates) {
        const bool is_shared = tokens.guesses == GrpcGuesses::kNotCounted;
        // One for each connection.
        caller =
            tokens.rates->JudgeToken(is_shared ? "" : ConnectionPlace(peer), std::move(caller));
      }
      why = caller.status();
    }
    if (why.ok()) why = MayBegin(path, certificate);
    done(call, nullptr, 0, nullptr, 0, static_cast<grpc_status_code>(why.code()),
         why.ok() ? nullptr : std::string(why.message()).c_str());
  }

  // On the threads of new connections.
  grpc_ssl_certificate_config_reload_status Give(grpc_ssl_server_certificate_config** config) {
    const absl::MutexLock lock(&mu_);
    const std::shared_ptr<const TlsMaterial> current = reload_->Current();
    if (current == given_) return GRPC_SSL_CERTIFICATE_CONFIG_RELOAD_UNCHANGED;
    const grpc_ssl_pem_key_cert_pair pair{current->key_pem.c_str(), current->cert_pem.c_str()};
    // gRPC ends the process where there is no CA; where no client is asked for a certificate it serves for
    // nothing, and any will do.
    const std::string& roots = current->ca_pem.empty() ? current->cert_pem : current->ca_pem;
    *config = grpc_ssl_server_certificate_config_create(roots.c_str(), &pair, 1);
    given_ = current;
    return GRPC_SSL_CERTIFICATE_CONFIG_RELOAD_NEW;
  }

  const std::shared_ptr<TlsReload> reload_;
  const Tokens tokens_;
  grpc_server_credentials* credentials_ = nullptr;
  absl::Mutex mu_;
  std::shared_ptr<const TlsMaterial> given_ ABSL_GUARDED_BY(mu_);
};

}  // namespace

std::shared_ptr<grpc::ServerCredentials> GrpcTlsCredentials(std::shared_ptr<TlsReload> reload,
                                                            std::shared_ptr<TokenGuard> tokens,
                                                            std::shared_ptr<RateLimits> rates,
                                                            GrpcGuesses guesses) {
  return std::make_shared<ReloadedCredentials>(std::move(reload), std::move(tokens),
                                               std::move(rates), guesses);
}

}  // namespace stepwell
