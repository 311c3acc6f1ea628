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

  // For a new connection; null where OpenSSL takes none of them, which the log tells.
  std::shared_ptr<boost::asio::ssl::context> context();

 private:
  const std::shared_ptr<TlsReload> reload_;
  std::shared_ptr<const TlsMaterial> made_of_;
  std::shared_ptr<boost::asio::ssl::context> context_;
};

}  // namespace stepwell
