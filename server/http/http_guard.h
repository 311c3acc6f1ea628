// HttpGuard: who may ask on the HTTP port. A page of another site that a browser shows can make that
// browser ask us: by a name of its own that it points at this machine (DNS rebinding), or across origins.
// The first is stopped by the names that we go by, the second by where the request comes from. A core.
//
//   const HttpGuard guard({.host = "127.0.0.1", .names = {"stepwell.example"}});
//   if (auto refusal = guard.Refuse(request, HttpDoor::kSameOrigin)) return *refusal;
#pragma once

#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "server/http/http_message.h"

namespace stepwell {

enum class HttpDoor {
  kOpen,        // health: probes come by any name, and learn little
  kNamed,       // pages: by one of our names
  kSameOrigin,  // calls, scrapes: by one of our names, and from our pages or from no page at all
};

class HttpGuard {
 public:
  struct Options {
    // What the port is bound to. Bound to all addresses, each address of numbers is ours.
    std::string host = "127.0.0.1";
    // Names that it goes by beside, without a port.
    std::vector<std::string> names = {};
  };
  explicit HttpGuard(const Options& options);

  // 400 or 403 and why, nothing where it may pass.
  std::optional<HttpResponse> Refuse(const HttpRequest& request, HttpDoor door) const;

 private:
  bool IsOurs(std::string_view host) const;

  std::set<std::string> names_;
  bool any_address_ = false;
};

}  // namespace stepwell
