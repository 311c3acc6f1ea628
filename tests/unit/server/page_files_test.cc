#include "server/http/page_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "server/http/gzip.h"

namespace stepwell {
namespace {

using ::testing::HasSubstr;

class Answered : public HttpExchange {
 public:
  explicit Answered(HttpResponse& response) : response_(response) {}
  bool HasRoom(std::size_t) const override { return true; }
  void Answer(HttpResponse response) override { response_ = std::move(response); }
  void Begin(HttpResponse) override {}
  void Write(SharedBytes, std::function<void()>) override {}
  void End(std::string) override {}
  void WhenGone(std::function<void()>) override {}

 private:
  HttpResponse& response_;
};

class PageFilesTest : public ::testing::Test {
 protected:
  PageFilesTest() { AddPage(files_, routes_); }
  HttpResponse Get(const std::string& path, HttpHeaders headers = {}) {
    HttpRequest request;
    request.method = "GET";
    request.path = path;
    request.headers = std::move(headers);
    request.headers.emplace_back("Host", "localhost");
    HttpResponse response;
    routes_.Dispatch(request, HttpGuard({}), std::make_shared<Answered>(response));
    return response;
  }
  static std::string HeaderOf(const HttpResponse& response, const std::string& name) {
    for (const auto& [each, value] : response.headers) {
      if (each == name) return value;
    }
    return "";
  }

  const std::string page_ = Gzip("<p>page");
  const std::string script_ = Gzip("script");
  const std::vector<PageFile> files_ = {
      {"/index.html", page_, "0123456789012345678901234567890123456789012345678901234567890123"},
      {"/app-0123456789ab.js", script_,
       "abcdefabcdefabcdefabcdefabcdefabcdefabcdefabcdefabcdefabcdefabcd"}};
  HttpRoutes routes_;
};

TEST_F(PageFilesTest, EachFormHasItsTagAndThePageIsAskedAnewEachTime) {
  const HttpResponse plain = Get("/");
  EXPECT_EQ(plain.status, 200);
  EXPECT_EQ(plain.body, "<p>page");
  EXPECT_EQ(plain.content_type, "text/html; charset=utf-8");
  EXPECT_EQ(HeaderOf(plain, "ETag"), "\"01234567890123456789012345678901\"");
  EXPECT_EQ(HeaderOf(plain, "Cache-Control"), "no-cache");
  EXPECT_EQ(HeaderOf(plain, "Vary"), "Accept-Encoding");
  EXPECT_EQ(HeaderOf(plain, "Content-Encoding"), "");
  EXPECT_EQ(HeaderOf(plain, "Content-Security-Policy"),
            "default-src 'self'; img-src 'self' data:; object-src 'none'; base-uri 'none'; "
            "form-action 'self'; frame-ancestors 'self'");

  const HttpResponse packed = Get("/index.html", {{"Accept-Encoding", "deflate, gzip"}});
  EXPECT_EQ(packed.body, page_);
  EXPECT_EQ(HeaderOf(packed, "Content-Encoding"), "gzip");
  EXPECT_EQ(HeaderOf(packed, "ETag"), "\"01234567890123456789012345678901-gzip\"");
  EXPECT_EQ(Get("/", {{"Accept-Encoding", "gzip;q=0.0"}}).body, "<p>page");
  EXPECT_EQ(Get("/", {{"Accept-Encoding", "br"}, {"Accept-Encoding", "gzip"}}).body, page_);
}

TEST_F(PageFilesTest, WhoHasAFileIsToldSoAndGetsNothing) {
  const std::string tag = "\"01234567890123456789012345678901\"";
  for (const std::string& list : {tag, "\"x\", W/" + tag, std::string("*")}) {
    const HttpResponse response = Get("/", {{"If-None-Match", list}});
    EXPECT_EQ(response.status, 304) << list;
    EXPECT_EQ(response.body, "") << list;
    EXPECT_EQ(HeaderOf(response, "ETag"), tag) << list;
  }
  EXPECT_EQ(Get("/", {{"If-None-Match", tag}, {"Accept-Encoding", "gzip"}}).status, 200)
      << "another form";
}

TEST_F(PageFilesTest, NamesWithAHashAreKeptForEver) {
  EXPECT_THAT(HeaderOf(Get("/app-0123456789ab.js"), "Cache-Control"), HasSubstr("immutable"));
  for (const char* path : {"/app.js", "/app-0123456789a.js", "/app-0123456789aX.js", "/0-1/a.js"}) {
    EXPECT_EQ(PageHeaders(path)[0].second, "no-cache") << path;
  }
}

TEST_F(PageFilesTest, NoOtherPathIsThere) {
  for (const char* path : {"/nothing", "/index.html/", "//index.html", "/./index.html",
                           "/%69ndex.html", "/../index.html", "index.html", "/INDEX.html", ""}) {
    EXPECT_EQ(Get(path).status, 404) << path;
  }
}

TEST_F(PageFilesTest, TheBuiltInPageNamesItsOwnFilesAlone) {
  bool has_page = false;
  for (const PageFile& file : EmbeddedPage()) {
    SCOPED_TRACE(file.path);
    EXPECT_TRUE(Gunzip(file.packed, 64 << 20).ok());
    EXPECT_EQ(file.sha256.size(), 64U);
    EXPECT_NE(ContentTypeOf(file.path), "application/octet-stream");
    has_page = has_page || file.path == "/index.html";
  }
  EXPECT_TRUE(has_page);
}

// client/web/build.mjs refuses to build a larger one; this holds without npm.
TEST_F(PageFilesTest, TheBuiltInPageIsAtMost250KbPacked) {
  constexpr std::size_t kPageBytesMax = 250'000;
  std::size_t bytes = 0;
  for (const PageFile& file : EmbeddedPage()) bytes += file.packed.size();
  EXPECT_GT(bytes, 50'000U) << "it is the page";
  EXPECT_LE(bytes, kPageBytesMax);
}

}  // namespace
}  // namespace stepwell
