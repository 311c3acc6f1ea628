#include "server/http/http_connection.h"

#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <boost/asio/post.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <cerrno>
#include <chrono>
#include <deque>
#include <memory>
#include <optional>
#include <sstream>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "base/check.h"
#include "server/http/http_exchange.h"
#include "server/http/http_head.h"
#include "server/http/http_reading.h"
#include "server/http/http_stream.h"
#include "server/http/http_token.h"
#include "server/http/http_token_watch.h"

namespace stepwell {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;
using tcp = boost::asio::ip::tcp;
using Clock = std::chrono::steady_clock;

// How long what a client still sends is read and dropped, so that it sees the answer before the end.
constexpr absl::Duration kLinger = absl::Seconds(2);
constexpr int kStallsOfAnAnswer = 10;
constexpr std::size_t kReadAheadBytes = 4096;  // of further requests while one is worked on
// Of a part of a stream; what a message of 64 MiB comes in, and its frames.
constexpr std::size_t kPiecesAtOnce = 64;

class HttpConnection : public std::enable_shared_from_this<HttpConnection> {
 public:
  HttpConnection(HttpPort& port, tcp::socket socket, std::string address, bool is_loopback)
      : port_(port),
        stream_(std::move(socket)),
        address_(std::move(address)),
        is_loopback_(is_loopback),
        buffer_(port.options.header_bytes_max + kHttpReadBytesMax) {}
  ~HttpConnection() {
    // The places have no lock, and a socket's timers no second thread.
    STEPWELL_CHECK(port_.IsConfined());
    port_.places.Leave(address_);
  }

  void Start();

 private:
  class Exchange;

  // Waits for the first byte of a further request, which may be there already.
  void ReadNext();
  void ReadHeader();
  void OnHeader(beast::error_code error);
  void ReadBody();
  void ReadSomeOfBody();
  // False: no room for so many bytes of this body beside those of others, which was answered.
  bool HoldBody(std::size_t bytes);
  void OnBody(beast::error_code error);
  // True where there was an error, which was answered where it can be.
  bool Refused(beast::error_code error);
  // What to answer to who shows no token; else its end is watched from here on.
  std::optional<HttpResponse> RefuseWithoutToken(HttpRequest& head);
  // Its header as it came; the body stays where it is.
  HttpRequest Head();

  bool IsOpen(int exchange_no) const { return open_ && exchange_no_ == exchange_no; }

  // Notices that the client goes while its request is worked on, also behind requests that it has sent already.
  void WatchGone();
  // What of a next request is there; false: the client's end. Nothing else reads while an exchange is open.
  bool ReadAhead();
  void WatchEnd();
  std::size_t RoomAhead() const;
  void OnGone();

  void Answer(HttpResponse response, HttpHeldBytes::Hold hold = {});
  void WriteSome();
  void DropAnswer();
  void Begin(const HttpResponse& head);
  void WritePart(SharedBytes part, std::function<void()> taken, HttpHeldBytes::Hold hold);
  void End(std::string last);
  void Push(SharedBytes bytes, std::function<void()> taken, HttpHeldBytes::Hold hold = {});
  void WriteFirstPart();
  void WriteSomeOfPart();
  void Finish();
  void Linger();

  void ExpireAfter(absl::Duration after) {
    stream_.tcp().expires_after(absl::ToChronoMilliseconds(after));
  }

  // Of an answer, or of a part of a stream.
  Clock::time_point AnswerDeadline() const {
    return Clock::now() +
           absl::ToChronoMilliseconds(port_.options.stall_timeout * kStallsOfAnAnswer);
  }
  void ExpireAtStall() {
    stream_.tcp().expires_at(std::min(
        answer_deadline_, Clock::now() + absl::ToChronoMilliseconds(port_.options.stall_timeout)));
  }

  HttpPort& port_;
  HttpStream stream_;
  const std::string address_;
  const bool is_loopback_;
  beast::flat_buffer buffer_;
  std::optional<http::request_parser<http::string_body>> parser_;
  HttpHeldBytes::Hold body_hold_;
  std::optional<http::response<http::string_body>> answer_;
  std::optional<http::response_serializer<http::string_body>> serializer_;
  HttpHeldBytes::Hold answer_hold_;
  std::optional<http::response<http::empty_body>> head_;
  Clock::time_point answer_deadline_;
  // Of a stream, the first being written: its head, one part and the end at most, as handlers wait for
  // `taken`.
  struct Part {
    SharedBytes bytes;
    std::function<void()> taken;
    HttpHeldBytes::Hold hold;
    std::size_t written = 0;
  };
  std::deque<Part> parts_;
  // Of the exchange that is open.
  int exchange_no_ = 0;
  bool open_ = false;
  bool ended_ = false;  // though it may still be written
  std::function<void()> gone_;
  HttpTokenWatch token_watch_{stream_.get_executor()};
  bool keep_alive_ = true;
  bool is_head_ = false;
  std::array<char, 4096> dropped_{};
};

// What a handler holds. Everything goes to the connection's thread, where it counts only while the request
// it was made for is open.
class HttpConnection::Exchange : public HttpExchange {
 public:
  Exchange(std::shared_ptr<HttpConnection> connection, int no)
      : connection_(std::move(connection)), no_(no) {}
  ~Exchange() override {
    // The reference goes along: this may be the last, on a thread that is not the connection's.
    const auto executor = connection_->stream_.get_executor();
    asio::post(executor, [connection = std::move(connection_), no = no_] {
      if (!connection->IsOpen(no)) return;
      if (!connection->answer_ && !connection->head_) {
        connection->Answer(HttpErrorAnswer(500, "nobody answered"));
      } else if (connection->head_ && !connection->ended_) {
        connection->OnGone();
      }
    });
  }

  bool HasRoom(std::size_t bytes) const override { return connection_->port_.held.HasRoom(bytes); }
  void Answer(HttpResponse response) override {
    if (!HasRoom(response.body.size())) {
      response = HttpErrorAnswer(503, "too many answers wait for their clients");
    }
    auto hold = connection_->port_.held.Add(response.body.size());
    Post([response = std::move(response),
          hold = std::move(hold)](HttpConnection& connection) mutable {
      if (connection.answer_ || connection.head_) return;
      connection.Answer(std::move(response), std::move(hold));
    });
  }
  void Begin(HttpResponse head) override {
    Post([head = std::move(head)](HttpConnection& connection) {
      if (!connection.answer_ && !connection.head_) connection.Begin(head);
    });
  }
  void Write(SharedBytes part, std::function<void()> taken) override {
    auto hold = connection_->port_.held.Add(part.size());
    Post([part = std::move(part), taken = std::move(taken),
          hold = std::move(hold)](HttpConnection& connection) mutable {
      connection.WritePart(std::move(part), std::move(taken), std::move(hold));
    });
  }
  void End(std::string last) override {
    Post([last = std::move(last)](HttpConnection& connection) mutable {
      connection.End(std::move(last));
    });
  }
  // On the thread of the connection, where handlers begin.
  void WhenGone(std::function<void()> gone) override { connection_->gone_ = std::move(gone); }

 private:
  template <typename Do>
  void Post(Do what) {
    asio::post(connection_->stream_.get_executor(),
               [connection = connection_, no = no_, what = std::move(what)]() mutable {
                 if (connection->IsOpen(no)) what(*connection);
               });
  }

  std::shared_ptr<HttpConnection> connection_;
  const int no_;
};

void HttpConnection::Start() {
  if (port_.options.tls == nullptr) return ReadHeader();
  ExpireAfter(port_.options.request_timeout);
  stream_.Begin(port_.tls, buffer_, [self = shared_from_this()](bool is_tls) {
    if (is_tls) return self->ReadHeader();
    self->keep_alive_ = false;
    self->Answer(HttpErrorAnswer(400, "this port speaks TLS: call it by https://"));
  });
}

void HttpConnection::ReadNext() {
  if (buffer_.size() > 0) return ReadHeader();
  ExpireAfter(port_.options.idle_timeout);
  stream_.async_read_some(buffer_.prepare(4096),
                          [self = shared_from_this()](beast::error_code error, std::size_t count) {
                            if (error) return;
                            self->buffer_.commit(count);
                            self->ReadHeader();
                          });
}

void HttpConnection::ReadHeader() {
  is_head_ = false;  // until this request is known: what refuses it has a body
  answer_.reset();
  head_.reset();
  parser_.emplace();
  parser_->header_limit(port_.options.header_bytes_max);
  parser_->body_limit(port_.options.body_bytes_max);
  ExpireAfter(port_.options.request_timeout);
  AsyncReadHttpHeader(
      stream_, buffer_, *parser_, port_.options.header_bytes_max,
      [self = shared_from_this()](beast::error_code error) { self->OnHeader(error); });
}

void HttpConnection::OnHeader(beast::error_code error) {
  // Who may not call is told so, however large a body is.
  const bool is_large = error == http::error::body_limit;
  if (!is_large && Refused(error)) return;
  if (!is_large && parser_->is_done()) return OnBody({});
  HttpRequest head = Head();
  auto refusal = RefuseWithoutToken(head);
  if (!refusal && is_large) refusal = AnswerHttpError(error, *parser_, port_.routes, port_.guard);
  if (!refusal) refusal = port_.routes.Refuse(head, port_.guard);
  if (!refusal) refusal = RefuseBody(*parser_);
  if (refusal) {
    keep_alive_ = false;  // what follows is a body, and nobody reads it
    is_head_ = head.method == "HEAD";
    return Answer(*std::move(refusal));
  }
  // What says how long it is takes its room at once, the rest as it comes.
  if (!HoldBody(parser_->content_length().value_or(0))) return;
  if (!beast::iequals(parser_->get()[http::field::expect], "100-continue")) return ReadBody();
  asio::async_write(stream_, asio::buffer(std::string_view("HTTP/1.1 100 Continue\r\n\r\n")),
                    [self = shared_from_this()](beast::error_code failed, std::size_t) {
                      if (!failed) self->ReadBody();
                    });
}

void HttpConnection::ReadBody() {
  ExpireAfter(port_.options.body_timeout);
  parser_->eager(true);
  ReadSomeOfBody();
}

void HttpConnection::ReadSomeOfBody() {
  http::async_read_some(stream_, buffer_, *parser_,
                        [self = shared_from_this()](beast::error_code error, std::size_t) {
                          if (error) return self->OnBody(error);
                          if (!self->HoldBody(self->parser_->get().body().size())) return;
                          self->parser_->is_done() ? self->OnBody(error) : self->ReadSomeOfBody();
                        });
}

bool HttpConnection::HoldBody(std::size_t bytes) {
  if (bytes <= body_hold_.bytes()) return true;
  body_hold_ = {};
  if (port_.held_bodies.HasRoom(bytes)) {
    body_hold_ = port_.held_bodies.Add(bytes);
    return true;
  }
  keep_alive_ = false;
  is_head_ = parser_->get().method() == http::verb::head;
  parser_.reset();  // what has come of it, too
  Answer(RefuseOneMoreBody());
  return false;
}

bool HttpConnection::Refused(beast::error_code error) {
  auto answer = error ? AnswerHttpError(error, *parser_, port_.routes, port_.guard)
                      : RefuseStrangeCoding(parser_->get());
  if (!error && !answer) return false;
  keep_alive_ = false;
  if (answer) Answer(*std::move(answer));
  return true;
}

std::optional<HttpResponse> HttpConnection::RefuseWithoutToken(HttpRequest& head) {
  Caller caller;
  const bool is_open = port_.routes.IsOpen(head);
  auto refusal = stepwell::RefuseWithoutToken(port_.options, head, is_open, caller);
  keep_alive_ = keep_alive_ && (!refusal || head.certificate_end_us == 0);  // one certificate each
  token_watch_.Begin(std::move(caller), weak_from_this(), [this] { OnGone(); });
  return refusal;
}

HttpRequest HttpConnection::Head() {
  HttpRequest request = ReadHttpHead(parser_->get());
  request.is_from_loopback = is_loopback_;
  request.certificate_names = stream_.PeerNames();
  request.certificate_end_us = stream_.PeerCertificateEnd();
  request.peer = address_;
  return request;
}

void HttpConnection::OnBody(beast::error_code error) {
  if (Refused(error)) return;
  keep_alive_ = parser_->get().keep_alive();
  HttpRequest request = Head();
  request.body = std::move(parser_->get().body());
  is_head_ = request.method == "HEAD";
  open_ = true;
  ended_ = false;
  ++exchange_no_;
  stream_.tcp().expires_never();
  WatchGone();
  const auto exchange = std::make_shared<Exchange>(shared_from_this(), exchange_no_);
  // Of what has no body nothing was asked yet.
  if (auto refusal = RefuseWithoutToken(request)) return exchange->Answer(*std::move(refusal));
  port_.routes.Dispatch(request, port_.guard, exchange);
}

void HttpConnection::WatchGone() {
  stream_.tcp().socket().async_wait(
      tcp::socket::wait_read,
      [self = shared_from_this(), no = exchange_no_](beast::error_code error) {
        if (error || !self->IsOpen(no)) return;
        if (self->stream_.is_tls()) return self->WatchEnd();
        if (!self->ReadAhead()) return self->OnGone();
        // Where there is no room its end is hidden behind what it sent.
        if (self->RoomAhead() > 0) self->WatchGone();
      });
}

// Within TLS nothing is read ahead, and what comes before the end hides it from who waits.
void HttpConnection::WatchEnd() {
  stream_.WatchEnd([self = shared_from_this(), no = exchange_no_] { return self->IsOpen(no); },
                   [self = shared_from_this()] { self->OnGone(); });
}

std::size_t HttpConnection::RoomAhead() const {
  return std::min(kReadAheadBytes, buffer_.max_size() - buffer_.size());
}

bool HttpConnection::ReadAhead() {
  const auto room = buffer_.prepare(RoomAhead());
  const auto count =
      recv(stream_.tcp().socket().native_handle(), room.data(), room.size(), MSG_DONTWAIT);
  if (count > 0) buffer_.commit(static_cast<std::size_t>(count));
  return count > 0 || (count < 0 && (errno == EAGAIN || errno == EINTR));
}

void HttpConnection::OnGone() {
  open_ = false;
  token_watch_.End();
  const auto gone = std::exchange(gone_, nullptr);
  stream_.tcp().close();
  if (gone) gone();
}

void HttpConnection::Answer(HttpResponse response, HttpHeldBytes::Hold hold) {
  answer_.emplace();
  answer_hold_ = std::move(hold);
  body_hold_ = {};
  FillHttpHead(response, keep_alive_, *answer_);
  answer_->body() = std::move(response.body);
  // 304 says what a 200 would hold, and holds nothing.
  if (response.status != 304) answer_->prepare_payload();
  // HEAD has the header of GET, its Content-Length included.
  if (is_head_ || response.status == 304) answer_->body().clear();
  serializer_.emplace(*answer_);
  answer_deadline_ = AnswerDeadline();
  WriteSome();
}

void HttpConnection::WriteSome() {
  ExpireAtStall();
  http::async_write_some(stream_, *serializer_,
                         [self = shared_from_this()](beast::error_code error, std::size_t) {
                           if (!error && !self->serializer_->is_done()) return self->WriteSome();
                           // At once: others wait for its room, and the client may keep its connection.
                           self->DropAnswer();
                           if (error) return self->OnGone();
                           self->Finish();
                         });
}

void HttpConnection::DropAnswer() {
  serializer_.reset();
  answer_.reset();
  answer_hold_ = {};
}

void HttpConnection::Begin(const HttpResponse& head) {
  head_.emplace();
  body_hold_ = {};  // its call has said something: it was read
  FillHttpHead(head, keep_alive_, *head_);
  head_->chunked(true);
  std::ostringstream text;
  text << head_->base();
  Push(SharedBytes(text.str()), nullptr);
}

void HttpConnection::WritePart(SharedBytes part, std::function<void()> taken,
                               HttpHeldBytes::Hold hold) {
  if (part.empty()) return taken();  // an empty chunk would be the end
  part.Prepend(absl::StrCat(absl::Hex(part.size()), "\r\n"));
  part.Append("\r\n");
  Push(std::move(part), std::move(taken), std::move(hold));
}

void HttpConnection::End(std::string last) {
  ended_ = true;
  if (!last.empty()) WritePart(SharedBytes(std::move(last)), nullptr, {});
  Push(SharedBytes("0\r\n\r\n"), [this] { Finish(); });
}

void HttpConnection::Push(SharedBytes bytes, std::function<void()> taken,
                          HttpHeldBytes::Hold hold) {
  parts_.push_back({std::move(bytes), std::move(taken), std::move(hold)});
  if (parts_.size() == 1) WriteFirstPart();
}

void HttpConnection::WriteFirstPart() {
  answer_deadline_ = AnswerDeadline();
  WriteSomeOfPart();
}

void HttpConnection::WriteSomeOfPart() {
  ExpireAtStall();
  const Part& part = parts_.front();
  std::vector<asio::const_buffer> buffers;
  for (const std::string_view piece : part.bytes.From(part.written, kPiecesAtOnce)) {
    buffers.emplace_back(piece.data(), piece.size());
  }
  stream_.async_write_some(buffers,
                           [self = shared_from_this()](beast::error_code error, std::size_t count) {
                             if (error) {
                               self->parts_.clear();
                               return self->OnGone();
                             }
                             Part& first = self->parts_.front();
                             first.written += count;
                             if (first.written < first.bytes.size()) return self->WriteSomeOfPart();
                             self->stream_.tcp().expires_never();
                             const auto taken = std::move(first.taken);
                             self->parts_.pop_front();
                             if (!self->parts_.empty()) self->WriteFirstPart();
                             if (taken) taken();
                           });
}

void HttpConnection::Finish() {
  open_ = false;
  keep_alive_ = keep_alive_ && !token_watch_.has_ended();  // who has may ask for nothing more
  token_watch_.End();
  gone_ = nullptr;
  parts_.clear();
  if (keep_alive_) return ReadNext();
  ExpireAfter(kLinger);
  stream_.ShutDown([self = shared_from_this()] { self->Linger(); });
}

void HttpConnection::Linger() {
  stream_.tcp().async_read_some(asio::buffer(dropped_),
                                [self = shared_from_this()](beast::error_code error, std::size_t) {
                                  if (error) return self->stream_.tcp().close();
                                  self->Linger();
                                });
}

}  // namespace

void StartHttpConnection(HttpPort& port, tcp::socket socket, const std::string& address,
                         bool is_loopback) {
  std::make_shared<HttpConnection>(port, std::move(socket), address, is_loopback)->Start();
}

}  // namespace stepwell
