#include "server/http/accept_encoding.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace stepwell {
namespace {

bool Accepts(const std::vector<std::string>& fields) {
  HttpRequest request;
  request.headers.emplace_back("Accept", "gzip");
  for (const std::string& field : fields) request.headers.emplace_back("accept-encoding", field);
  return AcceptsGzip(request);
}

TEST(AcceptEncodingTest, EachFormOfItIsRead) {
  struct Row {
    std::vector<std::string> fields;
    bool accepts;
  };
  const std::vector<Row> rows = {
      {{}, false},
      {{""}, false},
      {{"gzip"}, true},
      {{"GZip"}, true},
      {{"x-gzip"}, true},
      {{"gzippy"}, false},
      {{"gzip;q=1"}, true},
      {{"gzip;q=1."}, true},
      {{"gzip;q=1.000"}, true},
      {{"gzip;q=0.001"}, true},
      {{"gzip ; Q=0.5"}, true},
      {{"gzip;\tq=0.8 , br"}, true},
      {{"gzip;q=0"}, false},
      {{"gzip;q=0."}, false},
      {{"gzip;q=0.0"}, false},
      {{"gzip;q=0.00"}, false},
      {{"gzip;q=0.000"}, false},
      {{"gzip; q=0.0"}, false},
      {{"gzip;Q=0"}, false},
      // No weights.
      {{"gzip;q=0.0001"}, false},
      {{"gzip;q=1.1"}, false},
      {{"gzip;q=2"}, false},
      {{"gzip;q=-1"}, false},
      {{"gzip;q=01"}, false},
      {{"gzip;q="}, false},
      {{"gzip;q=0,5"}, false},
      {{"gzip;q=x"}, false},
      {{"gzip;level=9"}, false},
      {{"gzip;q=1;q=0"}, false},
      {{"gzip;"}, false},
      // Several, in one field or in several.
      {{"deflate, gzip"}, true},
      {{"br", "gzip"}, true},
      {{"br", "gzip;q=0.0"}, false},
      {{"gzip", "gzip;q=0"}, false},
      {{"gzip;q=0", "gzip"}, false},
      {{"br", "deflate"}, false},
      // What was not named.
      {{"*"}, true},
      {{"*;q=0.000"}, false},
      {{"identity, *;q=0"}, false},
      {{"gzip, *;q=0"}, true},
      {{"gzip;q=0, *"}, false},
      {{"*", "gzip;q=0"}, false},
      {{"*;q=0", "gzip"}, true},
  };
  for (const Row& row : rows) {
    std::string shown;
    for (const std::string& field : row.fields) shown += "[" + field + "]";
    EXPECT_EQ(Accepts(row.fields), row.accepts) << shown;
  }
}

}  // namespace
}  // namespace stepwell
