#include "server/http/connect_request.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "server/http/accept_encoding.h"
#include "server/http/connect_envelope.h"
#include "server/http/url_text.h"
#include "server/text_check.h"

namespace stepwell {
namespace {

constexpr std::size_t kTimeoutDigitsMax = 10;
constexpr std::size_t kShownBytesMax = 64;

absl::string_view View(std::string_view text) { return {text.data(), text.size()}; }

std::string Shown(std::string_view text) { return Shortened(View(text), kShownBytesMax); }

std::optional<ConnectForm> FormOfEncoding(const HttpRequest& request) {
  const auto query = ParseUrlQuery(request.query);
  if (!query.ok()) return std::nullopt;
  const auto encoding = query->find("encoding");
  if (encoding == query->end()) return std::nullopt;
  if (encoding->second == "json") return ConnectForm{.is_json = true};
  if (encoding->second == "proto") return ConnectForm{};
  return std::nullopt;
}

absl::StatusOr<bool> IsGzip(std::string_view encoding) {
  if (encoding.empty() || encoding == "identity") return false;
  if (encoding == "gzip") return true;
  return absl::UnimplementedError(
      absl::StrCat("compression '", Shown(encoding), "', allowed are gzip, identity"));
}

absl::StatusOr<absl::Duration> TimeoutOf(std::string_view text) {
  if (text.empty()) return absl::InfiniteDuration();
  std::int64_t milliseconds = 0;
  const auto is_digit = [](unsigned char c) { return std::isdigit(c) != 0; };
  if (text.size() > kTimeoutDigitsMax || !std::all_of(text.begin(), text.end(), is_digit) ||
      !absl::SimpleAtoi(View(text), &milliseconds)) {
    return absl::InvalidArgumentError(
        absl::StrCat("Connect-Timeout-Ms is '", Shown(text), "', allowed are up to 10 digits"));
  }
  return absl::Milliseconds(milliseconds);
}

absl::Status CheckVersion(std::string_view version, absl::string_view allowed) {
  if (version.empty() || View(version) == allowed) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("Connect's protocol version is '", Shown(version), "', allowed is ", allowed));
}

absl::Status ReadQuery(const HttpRequest& request, ConnectRequest& call) {
  STEPWELL_ASSIGN_OR_RETURN(auto query, ParseUrlQuery(request.query));
  STEPWELL_RETURN_IF_ERROR(CheckVersion(query["connect"], "v1"));
  STEPWELL_ASSIGN_OR_RETURN(call.is_gzipped, IsGzip(query["compression"]));
  const auto message = query.find("message");
  if (message == query.end()) return absl::InvalidArgumentError("the query has no message");
  call.message = message->second;
  // Without its padding, and in URLs' own alphabet; the other is taken as well, which connect-go does too.
  std::string bytes;
  if (query["base64"] != "1") return absl::OkStatus();
  if (!absl::WebSafeBase64Unescape(call.message, &bytes) &&
      !absl::Base64Unescape(call.message, &bytes)) {
    return absl::InvalidArgumentError("the message is no base64");
  }
  call.message = std::move(bytes);
  return absl::OkStatus();
}

absl::Status ReadBody(const HttpRequest& request, ConnectRequest& call) {
  if (!call.form.is_stream) {
    STEPWELL_ASSIGN_OR_RETURN(call.is_gzipped, IsGzip(request.Header("Content-Encoding")));
    call.message = request.body;
    return absl::OkStatus();
  }
  STEPWELL_ASSIGN_OR_RETURN(const bool is_gzip, IsGzip(request.Header("Connect-Content-Encoding")));
  STEPWELL_ASSIGN_OR_RETURN(const ConnectEnvelope envelope, ParseOneEnvelope(request.body));
  call.is_gzipped = (envelope.flags & kEnvelopeCompressed) != 0;
  if (call.is_gzipped && !is_gzip) {
    return absl::InternalError("a compressed envelope without Connect-Content-Encoding");
  }
  call.message = std::string(envelope.payload);
  return absl::OkStatus();
}

}  // namespace

std::optional<ConnectForm> FindConnectForm(const HttpRequest& request, bool streams) {
  if (request.method != "POST") return streams ? std::nullopt : FormOfEncoding(request);
  const std::string_view whole = request.Header("Content-Type");
  const std::string type =
      absl::AsciiStrToLower(absl::StripAsciiWhitespace(View(whole.substr(0, whole.find(';')))));
  for (const bool is_json : {true, false}) {
    const ConnectForm form{.is_json = is_json, .is_stream = streams};
    if (type == form.content_type()) return form;
  }
  return std::nullopt;
}

absl::StatusOr<ConnectRequest> ReadConnectRequest(const HttpRequest& request, ConnectForm form) {
  ConnectRequest call{.form = form};
  STEPWELL_RETURN_IF_ERROR(CheckVersion(request.Header("Connect-Protocol-Version"), "1"));
  STEPWELL_ASSIGN_OR_RETURN(call.timeout, TimeoutOf(request.Header("Connect-Timeout-Ms")));
  call.accepts_gzip = !form.is_stream && AcceptsGzip(request);
  STEPWELL_RETURN_IF_ERROR(request.method == "POST" ? ReadBody(request, call)
                                                    : ReadQuery(request, call));
  // Nothing is nothing, however it was packed.
  if (call.message.empty()) call.is_gzipped = false;
  return call;
}

}  // namespace stepwell
