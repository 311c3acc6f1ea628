// HttpStream: the bytes of one connection of the HTTP port, plain or within TLS, with beast's time limits
// below either. Whoever waits for it keeps it alive. Confined to the thread "http".
#pragma once

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/tls/certificate_names.h"
#include "server/http/http_tls.h"

namespace stepwell {

class HttpStream {
 public:
  using executor_type = boost::beast::tcp_stream::executor_type;
  using Buffer = boost::beast::flat_buffer;

  explicit HttpStream(boost::asio::ip::tcp::socket socket)
      : tcp_(std::move(socket)), look_timer_(tcp_.get_executor()) {}

  executor_type get_executor() { return tcp_.get_executor(); }
  // Below TLS, where there is any.
  boost::beast::tcp_stream& tcp() { return tcp_; }
  bool is_tls() const { return tls_.has_value(); }
  // Of the certificate that the client showed; empty where it showed none.
  std::vector<std::string> PeerNames() {
    return tls_ ? PeerCertificateNames(tls_->native_handle()) : std::vector<std::string>();
  }

  // When that one ends, in microseconds since 1970; 0 where it showed none.
  std::int64_t PeerCertificateEnd() {
    return tls_ ? stepwell::PeerCertificateEnd(tls_->native_handle()) : 0;
  }

  // `begun` is told whether the client speaks TLS, once that stands; never where it comes to nothing. What
  // was read beyond is in `buffer`.
  void Begin(HttpTls& tls, Buffer& buffer, std::function<void(bool is_tls)> begun);
  // Says that nothing more comes; within TLS it waits for the client to say so, too, and calls `done` then.
  void ShutDown(std::function<void()> done);
  // REQUIRES: is_tls(). `ended` is called when the client has closed its side, also behind bytes that nobody
  // has read; not before `is_wanted` is false.
  void WatchEnd(std::function<bool()> is_wanted, std::function<void()> ended);

  // As Asio and Beast want a stream to be.
  template <typename Buffers, typename Handler>
  void async_read_some(const Buffers& buffers, Handler&& handler) {
    if (tls_) {
      tls_->async_read_some(buffers, std::forward<Handler>(handler));
    } else {
      tcp_.async_read_some(buffers, std::forward<Handler>(handler));
    }
  }
  template <typename Buffers, typename Handler>
  void async_write_some(const Buffers& buffers, Handler&& handler) {
    if (tls_) {
      tls_->async_write_some(buffers, std::forward<Handler>(handler));
    } else {
      tcp_.async_write_some(buffers, std::forward<Handler>(handler));
    }
  }

 private:
  void Handshake(HttpTls& tls, Buffer& buffer, std::function<void(bool is_tls)> begun);

  boost::beast::tcp_stream tcp_;
  boost::asio::steady_timer look_timer_;
  std::shared_ptr<boost::asio::ssl::context> context_;
  std::optional<boost::asio::ssl::stream<boost::beast::tcp_stream&>> tls_;
};

}  // namespace stepwell
