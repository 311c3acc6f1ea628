#include "server/grpc_tls.h"

#include <grpc/grpc.h>
#include <grpc/grpc_security.h>
#include <grpc/grpc_security_constants.h>

#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace stepwell {
namespace {

class ReloadedCredentials final : public grpc::ServerCredentials {
 public:
  explicit ReloadedCredentials(std::shared_ptr<TlsReload> reload) : reload_(std::move(reload)) {
    // Required and verified before anything of HTTP/2 is read: what a stranger sends there never
    // reaches the parts of gRPC that cost much.
    const auto asks = reload_->files().ca.empty()
                          ? GRPC_SSL_DONT_REQUEST_CLIENT_CERTIFICATE
                          : GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY;
    // Takes the options over.
    credentials_ = grpc_ssl_server_credentials_create_with_options(
        grpc_ssl_server_credentials_create_options_using_config_fetcher(asks, &Fetch, this));
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
  grpc_server_credentials* credentials_ = nullptr;
  absl::Mutex mu_;
  std::shared_ptr<const TlsMaterial> given_ ABSL_GUARDED_BY(mu_);
};

}  // namespace

std::shared_ptr<grpc::ServerCredentials> GrpcTlsCredentials(std::shared_ptr<TlsReload> reload) {
  return std::make_shared<ReloadedCredentials>(std::move(reload));
}

}  // namespace stepwell
