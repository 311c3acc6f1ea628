// TraceCalls: the agent's way to TraceService.UploadTrace of whichever master: a connection of its own for each call, since
// traces are rare and a stream of samples should not wait for one. The second of the agent's skins over gRPC.
// UploadTo is one thread's, Cancel may be called from any.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "base/tls/tls_reload.h"
#include "stepwell/v1/trace.pb.h"

namespace stepwell::agent {

class TraceCalls {
 public:
  virtual ~TraceCalls() = default;

  // The header, then parts as long as `next` fills one; `token`: shown in place of UploadTokens', unless empty. kUnavailable: come
  // again, also where the master is only busy.
  virtual absl::StatusOr<v1::UploadTraceResponse> UploadTo(
      const std::string& server, const std::string& token, const v1::TraceUpload& upload,
      const std::function<bool(v1::TracePart&)>& next) = 0;
  // The call under way ends, and all that come.
  virtual void Cancel() = 0;
  // The call under way ends, if there is one.
  virtual void CancelCall() = 0;
};

// What is shown for an upload to a master; empty = no token.
struct UploadTokens {
  std::function<std::string(const std::string& server, const v1::TrialRef& trial)> shown =
      [](const auto&, const auto&) { return std::string(); };
  // The master does not know it, or not any more.
  std::function<void(const std::string& server, const std::string& text)> on_refused =
      [](const auto&, const auto&) {};
};
// `tls` null: plain. All are called on the caller's thread, at each connection.
std::unique_ptr<TraceCalls> MakeTraceCalls(std::shared_ptr<TlsReload> tls, UploadTokens tokens);

}  // namespace stepwell::agent
