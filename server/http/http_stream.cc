#include "server/http/http_stream.h"

#include <poll.h>

#include <boost/beast/core/detect_ssl.hpp>
#include <chrono>

#include "base/log.h"

namespace stepwell {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;

// Between two looks at a client within TLS that has sent more while its request is worked on: what it sent
// stays unread, so that the kernel tells of its end only who asks.
constexpr std::chrono::milliseconds kLookAgain(250);

bool HasEnded(int fd) {
  pollfd look{fd, POLLRDHUP, 0};
  return poll(&look, 1, 0) > 0;
}

}  // namespace

void HttpStream::Begin(HttpTls& tls, Buffer& buffer, std::function<void(bool)> begun) {
  beast::async_detect_ssl(
      tcp_, buffer,
      [this, &tls, &buffer, begun = std::move(begun)](beast::error_code error, bool is_tls) {
        if (error) return;
        if (!is_tls) return begun(false);
        Handshake(tls, buffer, begun);
      });
}

void HttpStream::Handshake(HttpTls& tls, Buffer& buffer, std::function<void(bool)> begun) {
  context_ = tls.context();
  if (context_ == nullptr) return;
  tls_.emplace(tcp_, *context_);
  tls_->async_handshake(
      asio::ssl::stream_base::server, buffer.data(),
      [this, &buffer, begun = std::move(begun)](beast::error_code error, std::size_t used) {
        buffer.consume(used);
        if (!error) return begun(true);
        log::Debug("tls_handshake_failed", {{"why", error.message()}});
      });
}

void HttpStream::ShutDown(std::function<void()> done) {
  const auto end = [this, done = std::move(done)](beast::error_code) {
    beast::error_code ignored;
    tcp_.socket().shutdown(asio::ip::tcp::socket::shutdown_send, ignored);
    done();
  };
  if (!tls_) return end({});
  tls_->async_shutdown(end);
}

void HttpStream::WatchEnd(std::function<bool()> is_wanted, std::function<void()> ended) {
  if (HasEnded(tcp_.socket().native_handle())) return ended();
  look_timer_.expires_after(kLookAgain);
  look_timer_.async_wait([this, is_wanted = std::move(is_wanted),
                          ended = std::move(ended)](beast::error_code error) mutable {
    if (!error && is_wanted()) WatchEnd(std::move(is_wanted), std::move(ended));
  });
}

}  // namespace stepwell
