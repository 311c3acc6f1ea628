// What a call makes a master build, before anybody asks who calls: nothing, where its bytes unpack to hundreds of
// megabytes. Must survive: a method that is new, whose request nobody thought of.
#include <gmock/gmock.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "tests/e2e/raw_call.h"
#include "tests/e2e/spine.h"
#include "tests/support/every_method.h"

namespace stepwell::testing {
namespace {

class BoundedRequestsTest : public SpineTest {};

std::string Repeated(const std::string& text, int count) {
  std::string all;
  for (int i = 0; i < count; ++i) all += text;
  return all;
}

TEST_F(BoundedRequestsTest, EachMethodsIsLookedAtBeforeItIsBuilt) {
  StartMaster({});
  // Field 1000, which no message has, empty: 64 bytes each where they are built.
  const std::string many = Repeated("\xc2\x3e" + std::string(1, '\0'), 1'200'000);
  for (const auto* method : EveryMethod()) {
    if (method->client_streaming()) continue;
    const std::string path = absl::StrCat("/", method->service()->full_name(), "/", method->name());
    SCOPED_TRACE(path);
    const RawAnswer answer = CallRaw(client_->channel(), path, many);
    EXPECT_EQ(answer.status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
    EXPECT_THAT(answer.status.error_message(), ::testing::HasSubstr("too many parts"));
    const RawAnswer broken = CallRaw(client_->channel(), path, "\x12\xff");
    EXPECT_EQ(broken.status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  }
  // A text that is none, which is found by parsing alone: a list's project.
  const RawAnswer garbled =
      CallRaw(client_->channel(), "/stepwell.v1.QueryService/ListTrials", "\x0a\x02\xff\xfe");
  EXPECT_EQ(garbled.status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(garbled.status.error_message(),
              ::testing::HasSubstr("ListTrialsRequest.project is not valid UTF-8"));
  // Of messages that the contract has, too.
  const RawAnswer selectors = CallRaw(client_->channel(), "/stepwell.v1.QueryService/QueryBuckets",
                                      Repeated(std::string("\x12\0", 2), 2'000'000));
  EXPECT_EQ(selectors.status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
}

}  // namespace
}  // namespace stepwell::testing
