#include "server/http/connect_request.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "server/http/connect_envelope.h"

namespace stepwell {
namespace {

using ::testing::HasSubstr;

HttpRequest Post(const std::string& type, const std::string& body, HttpHeaders headers = {}) {
  HttpRequest request;
  request.method = "POST";
  request.body = body;
  request.headers = std::move(headers);
  request.headers.emplace_back("Content-Type", type);
  return request;
}

HttpRequest Get(const std::string& query) {
  HttpRequest request;
  request.method = "GET";
  request.query = query;
  return request;
}

TEST(ConnectRequestTest, FormsAreFoundByTheirType) {
  struct Row {
    const char* type;
    bool streams;
    const char* answered;  // nullptr = 415
  };
  for (const Row& row : std::vector<Row>{
           {"application/json", false, "application/json"},
           {"Application/JSON; charset=utf-8", false, "application/json"},
           {"application/proto", false, "application/proto"},
           {"application/connect+json", true, "application/connect+json"},
           {"application/connect+proto", true, "application/connect+proto"},
           {"application/connect+json", false, nullptr},
           {"application/json", true, nullptr},
           {"text/plain", false, nullptr},
           {"application/x-www-form-urlencoded", false, nullptr},
           {"application/grpc-web", false, nullptr},
           {"", false, nullptr},
       }) {
    SCOPED_TRACE(row.type);
    const auto form = FindConnectForm(Post(row.type, ""), row.streams);
    ASSERT_EQ(form.has_value(), row.answered != nullptr);
    if (form) {
      EXPECT_STREQ(form->content_type(), row.answered);
    }
  }
  EXPECT_TRUE(FindConnectForm(Get("encoding=json&message="), false).has_value());
  EXPECT_FALSE(FindConnectForm(Get("encoding=xml&message="), false).has_value());
  EXPECT_FALSE(FindConnectForm(Get("message="), false).has_value());
  EXPECT_FALSE(FindConnectForm(Get("encoding=json&message="), true).has_value());
}

TEST(ConnectRequestTest, APostIsRead) {
  const auto call = ReadConnectRequest(
      Post("application/json", "{}",
           {{"Connect-Timeout-Ms", "1500"}, {"Accept-Encoding", "br, gzip;q=0.8"}}),
      {.is_json = true});
  ASSERT_TRUE(call.ok()) << call.status();
  EXPECT_EQ(call->message, "{}");
  EXPECT_EQ(call->timeout, absl::Milliseconds(1500));
  EXPECT_TRUE(call->accepts_gzip);
  EXPECT_FALSE(call->is_gzipped);
}

TEST(ConnectRequestTest, AnAnswerIsPackedForThoseThatTakeIt) {
  const auto accepts = [](HttpHeaders headers) {
    return ReadConnectRequest(Post("application/proto", "", std::move(headers)), {})->accepts_gzip;
  };
  EXPECT_FALSE(accepts({}));
  EXPECT_FALSE(accepts({{"Accept-Encoding", "gzip;q=0.000"}}));
  EXPECT_TRUE(accepts({{"Accept-Encoding", "br"}, {"Accept-Encoding", "GZIP"}}));
}

TEST(ConnectRequestTest, AStreamsRequestIsOneEnvelope) {
  const ConnectForm form{.is_json = true, .is_stream = true};
  const auto read = [&](const std::string& body, HttpHeaders headers = {}) {
    return ReadConnectRequest(Post("application/connect+json", body, std::move(headers)), form);
  };
  const std::string whole = EnvelopeText(0, "{}");
  EXPECT_EQ(whole, std::string("\0\0\0\0\2{}", 7));
  ASSERT_TRUE(read(whole).ok());
  EXPECT_EQ(read(whole)->message, "{}");
  EXPECT_EQ(read(whole.substr(0, 4)).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(read(whole.substr(0, 6)).status().code(), absl::StatusCode::kInvalidArgument);
  for (const std::string& count : {std::string(), whole + whole, whole + "x"}) {
    SCOPED_TRACE(count.size());
    EXPECT_EQ(read(count).status().code(), absl::StatusCode::kUnimplemented);
    EXPECT_THAT(std::string(read(count).status().message()), HasSubstr("allowed is one"));
  }
  EXPECT_EQ(read(EnvelopeText(2, "{}")).status().code(), absl::StatusCode::kUnimplemented);
  EXPECT_EQ(read(EnvelopeText(1, "{}")).status().code(), absl::StatusCode::kInternal);
  const auto packed = read(EnvelopeText(1, "{}"), {{"Connect-Content-Encoding", "gzip"}});
  ASSERT_TRUE(packed.ok());
  EXPECT_TRUE(packed->is_gzipped);
  const auto nothing = read(EnvelopeText(1, ""), {{"Connect-Content-Encoding", "gzip"}});
  ASSERT_TRUE(nothing.ok());
  EXPECT_FALSE(nothing->is_gzipped) << "nothing is never unpacked";
}

TEST(ConnectRequestTest, AGetIsReadFromItsQuery) {
  struct Row {
    const char* query;
    const char* message;
    bool is_gzipped;
  };
  for (const Row& row : std::vector<Row>{
           {"connect=v1&encoding=json&message=%7B%22a%22%3A1%7D", "{\"a\":1}", false},
           {"message={}&encoding=json&unknown=x", "{}", false},
           {"encoding=proto&base64=1&message=CAE", "\x08\x01", false},
           {"encoding=proto&base64=1&message=CAE%3D", "\x08\x01", false},
           {"encoding=json&message=x&compression=gzip", "x", true},
           {"encoding=json&message=&compression=gzip", "", false},
       }) {
    SCOPED_TRACE(row.query);
    const auto call = ReadConnectRequest(Get(row.query), {});
    ASSERT_TRUE(call.ok()) << call.status();
    EXPECT_EQ(call->message, row.message);
    EXPECT_EQ(call->is_gzipped, row.is_gzipped);
  }
  for (const char* query : {"connect=v2&encoding=json&message=", "encoding=json",
                            "encoding=proto&base64=1&message=%25", "encoding=json&message=%zz"}) {
    SCOPED_TRACE(query);
    EXPECT_EQ(ReadConnectRequest(Get(query), {}).status().code(),
              absl::StatusCode::kInvalidArgument);
  }
}

TEST(ConnectRequestTest, WhatIsWrongIsNamed) {
  struct Row {
    std::pair<std::string, std::string> header;
    absl::StatusCode code;
    const char* text;
  };
  for (const Row& row : std::vector<Row>{
           {{"Connect-Protocol-Version", "2"}, absl::StatusCode::kInvalidArgument, "'2'"},
           {{"Connect-Timeout-Ms", "12345678901"}, absl::StatusCode::kInvalidArgument, "10 digits"},
           {{"Connect-Timeout-Ms", "-1"}, absl::StatusCode::kInvalidArgument, "'-1'"},
           {{"Connect-Timeout-Ms", "1s"}, absl::StatusCode::kInvalidArgument, "'1s'"},
           {{"Content-Encoding", "br"}, absl::StatusCode::kUnimplemented, "gzip, identity"},
       }) {
    SCOPED_TRACE(row.header.second);
    const auto call = ReadConnectRequest(Post("application/proto", "", {row.header}), {});
    EXPECT_EQ(call.status().code(), row.code);
    EXPECT_THAT(std::string(call.status().message()), HasSubstr(row.text));
  }
}

}  // namespace
}  // namespace stepwell
