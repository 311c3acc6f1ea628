#include "server/http_server.h"

#include <boost/asio/dispatch.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <chrono>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/log.h"
#include "base/status_macros.h"
#include "nlohmann/json.hpp"
#include "server/listen_socket.h"

namespace stepwell {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;
using tcp = boost::asio::ip::tcp;

using Routes = std::map<std::string, std::map<std::string, HttpServer::Handler>>;

HttpResponse ErrorAnswer(int status, const std::string& text) {
  return {status, "application/json", nlohmann::json{{"error", text}}.dump() + "\n"};
}

HttpResponse Dispatch(const Routes& routes, const HttpRequest& request, std::string& allow) {
  const auto path = routes.find(request.path);
  if (path == routes.end()) return ErrorAnswer(404, "no such path");
  const std::string method = request.method == "HEAD" ? "GET" : request.method;
  const auto handler = path->second.find(method);
  if (handler == path->second.end()) {
    for (const auto& [name, ignored] : path->second) {
      absl::StrAppend(&allow, allow.empty() ? "" : ", ", name, name == "GET" ? ", HEAD" : "");
    }
    return ErrorAnswer(405, absl::StrCat("allowed here: ", allow));
  }
  try {
    return handler->second(request);
  } catch (const std::exception& error) {
    log::Error("http_handler_failed", {{"path", request.path}, {"error", error.what()}});
    return ErrorAnswer(500, "internal error");
  }
}

}  // namespace

class HttpServer::Impl {
 public:
  Impl(const Options& options, const Routes& routes)
      : options_(options), routes_(routes), acceptor_(context_), accept_timer_(context_) {}

  // Takes the descriptor over.
  void Listen(int fd, bool is_v6) {
    acceptor_.assign(is_v6 ? tcp::v6() : tcp::v4(), fd);
    Accept();
  }
  void Run() { context_.run(); }
  void Stop() { context_.stop(); }

 private:
  class Connection;

  void Accept();

  const Options& options_;
  const Routes& routes_;
  asio::io_context context_{1};
  tcp::acceptor acceptor_;
  asio::steady_timer accept_timer_;
  int connection_count_ = 0;  // confined to the thread
};

// One client's connection; keeps itself alive by its pending operation.
class HttpServer::Impl::Connection : public std::enable_shared_from_this<Connection> {
 public:
  Connection(Impl& server, tcp::socket socket) : server_(server), stream_(std::move(socket)) {
    ++server_.connection_count_;
  }
  ~Connection() { --server_.connection_count_; }

  void Read() {
    is_head_ = false;  // until this request is known: what refuses it has a body
    parser_.emplace();
    parser_->header_limit(server_.options_.header_bytes_max);
    parser_->body_limit(server_.options_.body_bytes_max);
    stream_.expires_after(absl::ToChronoMilliseconds(
        served_any_ ? server_.options_.idle_timeout : server_.options_.request_timeout));
    http::async_read(
        stream_, buffer_, *parser_,
        [self = shared_from_this()](beast::error_code error, std::size_t) { self->OnRead(error); });
  }

 private:
  void OnRead(beast::error_code error) {
    if (error == http::error::header_limit) {
      return Write(ErrorAnswer(431, "the header is too large"), {}, false);
    }
    if (error == http::error::body_limit) {
      return Write(ErrorAnswer(413, "the body is too large"), {}, false);
    }
    if (error == http::error::end_of_stream || error == beast::error::timeout ||
        error == asio::error::connection_reset) {
      return;
    }
    if (error) return Write(ErrorAnswer(400, "the request is not HTTP/1.1"), {}, false);
    const auto& message = parser_->get();
    HttpRequest request;
    request.method = std::string(message.method_string());
    const std::string target(message.target());
    const auto query = target.find('?');
    request.path = target.substr(0, query);
    if (query != std::string::npos) request.query = target.substr(query + 1);
    request.body = message.body();
    std::string allow;
    is_head_ = request.method == "HEAD";
    HttpResponse response = Dispatch(server_.routes_, request, allow);
    Write(std::move(response), allow, message.keep_alive());
  }

  void Write(HttpResponse response, const std::string& allow, bool keep_alive) {
    answer_ = {};
    answer_.version(11);
    answer_.result(static_cast<unsigned>(response.status));
    answer_.set(http::field::content_type, response.content_type);
    answer_.set(http::field::cache_control, "no-store");
    if (!allow.empty()) answer_.set(http::field::allow, allow);
    answer_.keep_alive(keep_alive);
    answer_.body() = std::move(response.body);
    answer_.prepare_payload();
    // HEAD has the header of GET, its Content-Length included.
    if (is_head_) answer_.body().clear();
    stream_.expires_after(absl::ToChronoMilliseconds(server_.options_.request_timeout));
    http::async_write(
        stream_, answer_,
        [self = shared_from_this(), keep_alive](beast::error_code error, std::size_t) {
          if (error) return;
          self->served_any_ = true;
          if (keep_alive) return self->Read();
          beast::error_code ignored;
          self->stream_.socket().shutdown(tcp::socket::shutdown_send, ignored);
        });
  }

  Impl& server_;
  beast::tcp_stream stream_;
  beast::flat_buffer buffer_;
  std::optional<http::request_parser<http::string_body>> parser_;
  http::response<http::string_body> answer_;
  bool served_any_ = false;
  bool is_head_ = false;
};

void HttpServer::Impl::Accept() {
  acceptor_.async_accept([this](beast::error_code error, tcp::socket socket) {
    if (error == asio::error::operation_aborted) return;
    if (error) {
      // Out of descriptors, mostly: the listener stays, and looks again soon.
      accept_timer_.expires_after(std::chrono::milliseconds(50));
      accept_timer_.async_wait([this](beast::error_code aborted) {
        if (!aborted) Accept();
      });
      return;
    }
    if (connection_count_ < options_.connections_max) {
      std::make_shared<Connection>(*this, std::move(socket))->Read();
    }
    Accept();
  });
}

HttpServer::HttpServer(Options options) : options_(std::move(options)) {}

HttpServer::~HttpServer() { Stop(); }

void HttpServer::Route(const std::string& method, const std::string& path, Handler handler) {
  routes_[path][method] = std::move(handler);
}

absl::Status HttpServer::Start() {
  STEPWELL_ASSIGN_OR_RETURN(ListenSocket socket, ListenSocket::Open(options_.host, options_.port));
  port_ = socket.port();
  impl_ = std::make_unique<Impl>(options_, routes_);
  try {
    const bool is_v6 = socket.is_v6();
    impl_->Listen(socket.Release(), is_v6);
  } catch (const std::exception& error) {
    return absl::InternalError(absl::StrCat("http: ", error.what()));
  }
  worker_ = Worker("http", [this] { impl_->Run(); });
  return absl::OkStatus();
}

void HttpServer::Stop() {
  if (impl_ != nullptr) impl_->Stop();
  worker_.Join();
}

}  // namespace stepwell
