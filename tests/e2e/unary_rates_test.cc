// What a unary write is told that asks for more than its address may: it has nobody to slow, so it is refused, by the limit that
// it met, with the time at which to come again.
#include <gmock/gmock.h>

#include <functional>

#include "tests/e2e/error_details.h"
#include "tests/e2e/spine.h"

namespace stepwell::testing {
namespace {

using google::rpc::ErrorInfo;
using google::rpc::RetryInfo;

class UnaryRatesTest : public SpineTest {
 protected:
  // Until it is refused, 40 times at most.
  grpc::Status WriteUntilRefused(const std::function<v1::WriteChunksRequest(int)>& make) {
    grpc::Status refused;
    for (written_ = 0; refused.ok() && written_ < 40; ++written_) {
      grpc::ClientContext context;
      v1::WriteChunksResponse response;
      refused = client_->ingest().WriteChunks(&context, make(written_), &response);
    }
    return refused;
  }
  static void ExpectRefusedBy(const grpc::Status& refused, const std::string& limit) {
    EXPECT_EQ(refused.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
    const auto info = DetailOf<ErrorInfo>(refused);
    ASSERT_TRUE(info.has_value());
    EXPECT_EQ(info->reason(), "RATE_LIMIT");
    EXPECT_EQ(info->metadata().at("limit"), limit);
    const auto retry = DetailOf<RetryInfo>(refused);
    ASSERT_TRUE(retry.has_value());
    EXPECT_GT(retry->retry_delay().seconds() + retry->retry_delay().nanos(), 0);
  }

  int written_ = 0;
};

TEST_F(UnaryRatesTest, OpensBeyondTheLimitAreRefused) {
  StartMaster({"--opens-per-second", "2"});
  ExpectRefusedBy(WriteUntilRefused([](int) {
                    v1::WriteChunksRequest request;
                    *request.add_messages() =
                        OpenMessage({.writer = Uuid::Random(), .external_id = "unary"});
                    return request;
                  }),
                  "opens-per-second");
  EXPECT_GT(written_, 20) << "ten seconds' worth comes at once";
}

TEST_F(UnaryRatesTest, BytesBeyondTheLimitAreRefusedAndStoreNothing) {
  StartMaster({"--ingest-bytes-per-second", "65536"});
  const Uuid writer = Uuid::Random();
  ExpectRefusedBy(WriteUntilRefused([&](int written) {
                    v1::WriteChunksRequest request;
                    *request.add_messages() =
                        OpenMessage({.writer = writer, .external_id = "unary"});
                    *request.add_messages() = DefinitionMessage(writer, {{}});
                    *request.add_messages() =
                        ChunkMessage(writer, static_cast<std::uint64_t>(written) + 1,
                                     OneColumn(1, NowUs(), 1, std::vector<double>(20'000, 1.5)));
                    return request;
                  }),
                  "ingest-bytes-per-second");
  EXPECT_GT(written_, 3) << "ten seconds' worth comes at once";
  ASSERT_TRUE(client_->Flush().ok());
  EXPECT_EQ(QueryNumber("select count(*) from stepwell.writers where trial_id > $1", 0), 1);
}

// How many a call has is known behind it: what it owes is waited for by the next, which is refused.
TEST_F(UnaryRatesTest, SamplesBeyondTheLimitAreRefusedAndThoseBeforeAreStored) {
  StartMaster({"--ingest-samples-per-second", "1000"});
  const Uuid writer = Uuid::Random();
  ExpectRefusedBy(
      WriteUntilRefused([&](int written) {
        v1::WriteChunksRequest request;
        *request.add_messages() = OpenMessage({.writer = writer, .external_id = "unary"});
        *request.add_messages() = DefinitionMessage(writer, {{}});
        *request.add_messages() = ChunkMessage(
            writer, static_cast<std::uint64_t>(written) + 1,
            OneColumn(1, NowUs() + 10'000 * written, 1, std::vector<double>(3000, 1.5)));
        return request;
      }),
      "ingest-samples-per-second");
  // 10,000 come at once; the last call that was taken went beyond.
  EXPECT_GE(written_, 5);
  ASSERT_TRUE(client_->Flush().ok());
  const std::int64_t trial_id =
      QueryNumber("select max(trial_id) from stepwell.writers where trial_id > $1", 0);
  EXPECT_EQ(Samples(trial_id, "value").size(), 3000U * static_cast<std::size_t>(written_ - 1));
}

TEST_F(UnaryRatesTest, SeriesBeyondTheLimitAreRefusedAndKnownOnesCostNothing) {
  StartMaster({"--series-per-second", "10"});
  const Uuid writer = Uuid::Random();
  const auto define = [&](int first) {
    std::vector<DefinitionFields> definitions;
    for (int i = 0; i < 40; ++i) {
      const auto ref = static_cast<std::uint32_t>(first + i);
      definitions.push_back({.ref = ref, .name = absl::StrCat("m", ref)});
    }
    v1::WriteChunksRequest request;
    *request.add_messages() = OpenMessage({.writer = writer, .external_id = "series"});
    *request.add_messages() = DefinitionMessage(writer, definitions);
    return request;
  };
  EXPECT_TRUE(WriteUntilRefused([&](int) { return define(1); }).ok()) << "the same, each time";
  ExpectRefusedBy(WriteUntilRefused([&](int written) { return define(100 * (1 + written)); }),
                  "series-per-second");
  // Forty were there; each call that was taken made forty more, and the one that was refused none.
  EXPECT_EQ(QueryNumber("select count(*) from stepwell.series where trial_id > $1", 0),
            40 * written_);
}

}  // namespace
}  // namespace stepwell::testing
