// HttpTls: the certificates of the HTTP port as Boost.Asio has them, made anew when the files were
// changed; connections keep those that they began with. Confined to the thread "http".
#pragma once

#include <boost/asio/ssl/context.hpp>
#include <memory>

#include "base/tls/tls_reload.h"

namespace stepwell {

class HttpTls {
 public:
  explicit HttpTls(std::shared_ptr<TlsReload> reload) : reload_(std::move(reload)) {}

  // For a new connection. What OpenSSL does not take is told once and tried again by each connection, on which those of
  // before serve meanwhile; null where there were none.
  std::shared_ptr<boost::asio::ssl::context> context();

 private:
  const std::shared_ptr<TlsReload> reload_;
  std::shared_ptr<const TlsMaterial> made_of_;  // context_ is
  std::shared_ptr<const TlsMaterial> told_of_;  // that it was not taken
  std::shared_ptr<boost::asio::ssl::context> context_;
};

}  // namespace stepwell
