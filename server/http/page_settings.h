// PageSettings: what the page is told of this master's settings, at /page.json. Pure.
//
//   if (!IsViewerAddress(options.trace_viewer)) ...
//   routes.Add("GET", "/page.json", HttpDoor::kSameOrigin, ...PageSettingsJson(options.trace_viewer)...);
#pragma once

#include <string>
#include <string_view>

namespace stepwell {

// Of a page that shows traces: http:// or https://, a host, perhaps a port and a path. No user, no query:
// it is opened in a browser, and who opens it sees it.
bool IsViewerAddress(std::string_view address_untrusted);

// {"trace_viewer": "https://ui.perfetto.dev"}; empty = traces are downloaded only.
std::string PageSettingsJson(const std::string& trace_viewer);

}  // namespace stepwell
