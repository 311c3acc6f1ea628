// How rates hold a stream, by a clock that stands still: what is used up stays so.
#include "server/rate_limits.h"
#include "tests/unit/server/ingest_stream_fixture.h"

namespace stepwell {
namespace {

constexpr char kAddress[] = "10.0.0.1";

class IngestStreamPaceTest : public IngestStreamTest {
 protected:
  IngestStreamPaceTest() : paced_(context_) { paced_.rates = &limits_; }

  std::shared_ptr<IngestStream> NewPacedStream() {
    auto stream = IngestStream::Create(paced_, [] {}, nullptr, {.address = kAddress});
    EXPECT_TRUE(stream.ok()) << stream.status();
    return *stream;
  }
  void UseUp(RateKind kind) { limits_.Spend(kind, {kAddress, nullptr}, 1e12); }
  std::size_t WriterCount() { return store_.ReadWriters()->size(); }

  FakeClock still_;
  RateLimits limits_{{}, still_};
  IngestContext paced_;
};

TEST_F(IngestStreamPaceTest, AStreamThatEndsWhileItWaitsOpensNoWriter) {
  auto stream = NewPacedStream();
  UseUp(RateKind::kOpens);
  stream->End(absl::CancelledError("the client has gone"));
  stream->Handle(Open(writer_));
  EXPECT_EQ(WriterCount(), 0U);
  stream->Finish();
}

TEST_F(IngestStreamPaceTest, AStreamThatEndsWhileItWaitsMakesNoSeries) {
  for (const RateKind kind : {RateKind::kSeries, RateKind::kIngestBytes}) {
    auto stream = NewPacedStream();
    stream->Handle(Open(writer_));
    ASSERT_EQ(WriterCount(), 1U);
    UseUp(kind);
    stream->End(absl::CancelledError("the client has gone"));
    stream->Handle(Define(writer_));
    EXPECT_EQ(store_.series_calls(), 0);
    stream->Finish();
  }
}

}  // namespace
}  // namespace stepwell
