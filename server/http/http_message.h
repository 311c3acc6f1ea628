// HttpMessage: what comes in and what goes out on the HTTP port, without Boost. Values.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/match.h"

namespace stepwell {

using HttpHeaders = std::vector<std::pair<std::string, std::string>>;

struct HttpRequest {
  std::string method;
  // Without the query; as it was sent, not decoded.
  std::string path;
  std::string query;
  std::string body;
  HttpHeaders headers;
  bool is_http_1_1 = true;
  // Whether the client is on this machine.
  bool is_from_loopback = true;
  // Of the certificate that the client showed, as CertificateNames gives them.
  std::vector<std::string> certificate_names = {};
  // When that certificate ends, in microseconds since 1970; 0 = none was shown.
  std::int64_t certificate_end_us = 0;
  // Where it comes from, as AddressKey; empty = not known.
  std::string peer = {};
  // What stands for its client's certificate within this process (TokenGuard::InsideAuthorization), where that opened it: made
  // here, and nothing that was sent. Else empty.
  std::string inside_authorization = {};

  // Whom it is from, as TokenGuard::Identify asks.
  std::string_view Authorization() const {
    return inside_authorization.empty() ? Header("Authorization") : inside_authorization;
  }

  // The first of that name, in any case; empty where there is none.
  std::string_view Header(std::string_view name) const {
    for (const auto& [each, value] : headers) {
      if (absl::EqualsIgnoreCase({each.data(), each.size()}, {name.data(), name.size()})) {
        return value;
      }
    }
    return {};
  }
  int HeaderCount(std::string_view name) const {
    int count = 0;
    for (const auto& [each, ignored] : headers) {
      if (absl::EqualsIgnoreCase({each.data(), each.size()}, {name.data(), name.size()})) ++count;
    }
    return count;
  }
};

struct HttpResponse {
  int status = 200;
  std::string content_type = "application/json";
  std::string body;
  // Beside Content-Type and Content-Length; without a Cache-Control nothing is stored.
  HttpHeaders headers = {};
};

}  // namespace stepwell
