// PageFiles: the files of the page, out of the executable: packed beforehand, each with a strong ETag, those
// whose names end in a hash (12 hexadecimal digits or more) kept by browsers for ever. They are found in a table by their whole path, so that
// no path of a client's reaches a disk. A core; thread-safe once made.
//
//   AddPage(EmbeddedPage(), routes);
#pragma once

#include <span>
#include <string_view>

#include "server/http/http_routes.h"

namespace stepwell {

struct PageFile {
  std::string_view path;    // "/app-1f2e3d4c5b6a.js"
  std::string_view packed;  // gzip
  std::string_view sha256;  // of what was packed, in hexadecimal digits
};

// Those of client/web/dist when this was built.
std::span<const PageFile> EmbeddedPage();

// By the ending of its name; "application/octet-stream" where it is not known.
std::string_view ContentTypeOf(std::string_view path);
// What browsers are told beside of each file: nothing is fetched from elsewhere, and who may frame it.
HttpHeaders PageHeaders(std::string_view path);

// A route each; "/index.html" is "/", too. `files` outlive the routes. REQUIRES: they are gzip.
void AddPage(std::span<const PageFile> files, HttpRoutes& routes);

}  // namespace stepwell
