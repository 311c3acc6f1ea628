#include "server/http/page_files.h"

#include <memory>
#include <string>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/check.h"
#include "server/http/accept_encoding.h"
#include "server/http/gzip.h"

namespace stepwell {
namespace {

constexpr std::size_t kFileBytesMax = 64 << 20;
// Half of SHA-256 tells files of one page apart.
constexpr std::size_t kTagDigits = 32;

// Of a name that carries a hash.
constexpr std::size_t kHashDigitsMin = 12;

absl::string_view View(std::string_view text) { return {text.data(), text.size()}; }

// One of the page's files in both forms: clients that take no gzip are few, but there.
struct Forms {
  std::string_view packed;
  std::string plain;
  std::string tag;
};

// "/app-1f2e3d4c5b6a.js": other bytes would have another name.
bool HasHash(std::string_view path) {
  const std::string_view name = path.substr(path.rfind('/') + 1);
  const std::string_view stem = name.substr(0, name.find('.'));
  const auto dash = stem.rfind('-');
  if (dash == std::string_view::npos || stem.size() - dash - 1 < kHashDigitsMin) return false;
  return stem.find_first_not_of("0123456789abcdef", dash + 1) == std::string_view::npos;
}

// Whether the list of If-None-Match has the tag. Weak ones count as well (RFC 9110, 13.1.2).
bool Knows(std::string_view list, const std::string& tag) {
  for (absl::string_view each : absl::StrSplit(View(list), ',')) {
    each = absl::StripAsciiWhitespace(each);
    if (absl::StartsWith(each, "W/")) each.remove_prefix(2);
    if (each == "*" || each == tag) return true;
  }
  return false;
}

HttpResponse AnswerFile(const PageFile& file, const Forms& forms, const HttpRequest& request) {
  const bool packed = AcceptsGzip(request);
  HttpResponse response{200, std::string(ContentTypeOf(file.path)), "", PageHeaders(file.path)};
  // Strong: the two forms differ in their bytes.
  const std::string tag = absl::StrCat("\"", forms.tag, packed ? "-gzip\"" : "\"");
  response.headers.emplace_back("ETag", tag);
  response.headers.emplace_back("Vary", "Accept-Encoding");
  if (Knows(request.Header("If-None-Match"), tag)) {
    response.status = 304;
    return response;
  }
  if (packed) response.headers.emplace_back("Content-Encoding", "gzip");
  response.body = packed ? std::string(forms.packed) : forms.plain;
  return response;
}

}  // namespace

std::string_view ContentTypeOf(std::string_view path) {
  static constexpr std::pair<std::string_view, std::string_view> kTypes[] = {
      {"html", "text/html; charset=utf-8"},
      {"js", "text/javascript; charset=utf-8"},
      {"css", "text/css; charset=utf-8"},
      {"json", "application/json"},
      {"map", "application/json"},
      {"svg", "image/svg+xml"},
      {"png", "image/png"},
      {"ico", "image/x-icon"},
      {"woff2", "font/woff2"},
      {"txt", "text/plain; charset=utf-8"},
      {"webmanifest", "application/manifest+json"}};
  const std::string_view ending = path.substr(path.rfind('.') + 1);
  for (const auto& [each, type] : kTypes) {
    if (each == ending) return type;
  }
  return "application/octet-stream";
}

HttpHeaders PageHeaders(std::string_view path) {
  return {{"Cache-Control", HasHash(path) ? "public, max-age=31536000, immutable" : "no-cache"},
          {"Content-Security-Policy",
           "default-src 'self'; img-src 'self' data:; object-src 'none'; base-uri 'none'; "
           "form-action 'self'; frame-ancestors 'self'"},
          {"Referrer-Policy", "no-referrer"}};
}

void AddPage(std::span<const PageFile> files, HttpRoutes& routes) {
  for (const PageFile& file : files) {
    absl::StatusOr<std::string> plain = Gunzip(file.packed, kFileBytesMax);
    STEPWELL_CHECK(plain.ok());
    const auto forms = std::make_shared<const Forms>(
        Forms{file.packed, *std::move(plain), std::string(file.sha256.substr(0, kTagDigits))});
    const HttpRoutes::Quick answer = [&file, forms](const HttpRequest& request) {
      return AnswerFile(file, *forms, request);
    };
    routes.Add("GET", std::string(file.path), HttpDoor::kNamed, answer);
    if (file.path == "/index.html") routes.Add("GET", "/", HttpDoor::kNamed, answer);
  }
}

}  // namespace stepwell
