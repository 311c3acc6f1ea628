#include "server/http/http_tls.h"

#include <openssl/ssl.h>

#include <boost/asio/buffer.hpp>
#include <exception>

#include "base/log.h"

namespace stepwell {
namespace {

namespace ssl = boost::asio::ssl;

std::shared_ptr<ssl::context> Make(const TlsMaterial& material) {
  auto context = std::make_shared<ssl::context>(ssl::context::tls_server);
  SSL_CTX* native = context->native_handle();
  SSL_CTX_set_min_proto_version(native, TLS1_2_VERSION);
  // No session is taken up again: a client's certificate is looked at each time.
  SSL_CTX_set_options(native, SSL_OP_NO_TICKET | SSL_OP_NO_RENEGOTIATION);
  SSL_CTX_set_session_cache_mode(native, SSL_SESS_CACHE_OFF);
  // Connections that wait for their next request hold no buffers of 34 KiB.
  SSL_CTX_set_mode(native, SSL_MODE_RELEASE_BUFFERS);
  context->use_certificate_chain(boost::asio::buffer(material.cert_pem));
  context->use_private_key(boost::asio::buffer(material.key_pem), ssl::context::pem);
  if (!material.ca_pem.empty()) {
    context->add_certificate_authority(boost::asio::buffer(material.ca_pem));
    context->set_verify_mode(ssl::verify_peer | ssl::verify_fail_if_no_peer_cert);
  }
  return context;
}

}  // namespace

std::shared_ptr<ssl::context> HttpTls::context() {
  std::shared_ptr<const TlsMaterial> current = reload_->Current();
  if (current == made_of_) return context_;
  try {
    context_ = Make(*current);
    made_of_ = std::move(current);
  } catch (const std::exception& error) {
    if (current != told_of_) {
      log::Error("certificates_not_taken", {{"port", "http"}, {"why", error.what()}});
    }
    told_of_ = std::move(current);
  }
  return context_;
}

}  // namespace stepwell
