// HttpExchange: one request that is being answered, as its handler sees it: a whole answer, or a stream of
// parts. Its methods may be called from any thread; what they are given is called on the thread "http" and
// must be quick. Where it goes without an answer, the client is told 500.
//
//   exchange->Begin({200, "application/connect+json", ""});
//   exchange->Write(part, [call] { call->Next(); });   // one at a time: the client's pace is the stream's
//   exchange->End(last);
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>

#include "server/http/http_message.h"
#include "server/http/shared_bytes.h"

namespace stepwell {

class HttpExchange {
 public:
  virtual ~HttpExchange() = default;

  // Whether that many bytes of an answer may wait for clients beside those that do. Without it a whole
  // answer becomes a 503; of a part its handler takes care.
  virtual bool HasRoom(std::size_t bytes) const = 0;

  // Either this, once,
  virtual void Answer(HttpResponse response) = 0;
  // or a head, whose body is ignored, parts and an end.
  virtual void Begin(HttpResponse head) = 0;
  // `taken`: the part is with the client's system, and the next may come. Not called once the client went.
  virtual void Write(SharedBytes part, std::function<void()> taken) = 0;
  // The last part, which may be empty.
  virtual void End(std::string last) = 0;

  // `gone` is called where the client goes before the end, at most once. Before anything else is called.
  virtual void WhenGone(std::function<void()> gone) = 0;
};

using HttpHandler = std::function<void(const HttpRequest&, std::shared_ptr<HttpExchange>)>;

}  // namespace stepwell
