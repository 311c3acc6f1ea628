#include "server/http/http_guard.h"

#include <gtest/gtest.h>

namespace stepwell {
namespace {

struct Row {
  const char* name;
  HttpHeaders headers;
  // Of the doors kOpen, kNamed, kSameOrigin; 0 = may pass.
  int open, named, same_origin;
};

int StatusOf(const HttpGuard& guard, const HttpHeaders& headers, HttpDoor door) {
  HttpRequest request;
  request.headers = headers;
  const auto refusal = guard.Refuse(request, door);
  return refusal ? refusal->status : 0;
}

void Check(const HttpGuard& guard, const std::vector<Row>& rows) {
  for (const Row& row : rows) {
    SCOPED_TRACE(row.name);
    EXPECT_EQ(StatusOf(guard, row.headers, HttpDoor::kOpen), row.open);
    EXPECT_EQ(StatusOf(guard, row.headers, HttpDoor::kNamed), row.named);
    EXPECT_EQ(StatusOf(guard, row.headers, HttpDoor::kSameOrigin), row.same_origin);
  }
}

TEST(HttpGuardTest, AMasterGoesByItsNames) {
  Check(HttpGuard({.host = "10.1.2.3", .names = {"master.example", " Also.Example"}}),
        {{"localhost", {{"Host", "localhost:7818"}}, 0, 0, 0},
         {"in capitals", {{"host", "LOCALHOST"}}, 0, 0, 0},
         {"loopback", {{"Host", "127.0.0.1:7818"}}, 0, 0, 0},
         {"loopback of IPv6", {{"Host", "[::1]:7818"}}, 0, 0, 0},
         {"where it is bound", {{"Host", "10.1.2.3"}}, 0, 0, 0},
         {"a given name", {{"Host", "master.example:80"}}, 0, 0, 0},
         {"another, written otherwise", {{"Host", "also.EXAMPLE"}}, 0, 0, 0},
         {"another address", {{"Host", "10.1.2.4"}}, 0, 403, 403},
         {"another's name", {{"Host", "evil.example:7818"}}, 0, 403, 403},
         {"ours within another's", {{"Host", "localhost.evil.example"}}, 0, 403, 403},
         {"ours as a user", {{"Host", "localhost@evil.example"}}, 0, 403, 403},
         {"ours as a port", {{"Host", "evil.example:localhost"}}, 0, 403, 403},
         {"no name", {{"Host", ""}}, 0, 403, 403},
         {"none at all", {}, 0, 403, 403},
         {"half an address", {{"Host", "[::1"}}, 0, 403, 403},
         {"two", {{"Host", "localhost"}, {"Host", "evil.example"}}, 400, 400, 400}});
}

TEST(HttpGuardTest, BoundToAllAddressesItGoesByEachButByNoName) {
  for (const char* all : {"0.0.0.0", "::"}) {
    Check(HttpGuard({.host = all}), {{"an address", {{"Host", "10.1.2.4:7818"}}, 0, 0, 0},
                                     {"of IPv6", {{"Host", "[fd00::7]:7818"}}, 0, 0, 0},
                                     {"a name", {{"Host", "evil.example"}}, 0, 403, 403},
                                     {"digits first", {{"Host", "10.evil.example"}}, 0, 403, 403}});
  }
}

TEST(HttpGuardTest, CallsComeFromItsOwnPagesOrFromNone) {
  const std::pair<std::string, std::string> host = {"Host", "localhost:7818"};
  Check(HttpGuard({}),
        {{"its own", {host, {"Origin", "http://localhost:7818"}}, 0, 0, 0},
         {"behind a proxy with TLS", {host, {"Origin", "https://localhost:7818"}}, 0, 0, 0},
         {"another port", {host, {"Origin", "http://localhost:8080"}}, 0, 0, 403},
         {"another name of ours", {host, {"Origin", "http://127.0.0.1:7818"}}, 0, 0, 403},
         {"another site", {host, {"Origin", "https://evil.example"}}, 0, 0, 403},
         {"a sandbox", {host, {"Origin", "null"}}, 0, 0, 403},
         {"empty", {host, {"Origin", ""}}, 0, 0, 403},
         {"a file", {host, {"Origin", "file://localhost:7818"}}, 0, 0, 403},
         {"two of them",
          {host, {"Origin", "http://localhost:7818"}, {"origin", "http://evil.example"}},
          0,
          0,
          400},
         {"two sites",
          {host, {"Sec-Fetch-Site", "same-origin"}, {"Sec-Fetch-Site", "cross-site"}},
          0,
          0,
          400},
         {"a rebound name", {{"Host", "evil:1"}, {"Origin", "http://evil:1"}}, 0, 403, 403},
         {"fetched by its own page", {host, {"Sec-Fetch-Site", "same-origin"}}, 0, 0, 0},
         {"typed", {host, {"Sec-Fetch-Site", "none"}}, 0, 0, 0},
         {"fetched by another site", {host, {"Sec-Fetch-Site", "cross-site"}}, 0, 0, 403},
         {"fetched from another port", {host, {"Sec-Fetch-Site", "same-site"}}, 0, 0, 403}});
}

}  // namespace
}  // namespace stepwell
