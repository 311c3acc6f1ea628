#include "server/group_committer.h"

#include <cstdint>
#include <limits>

#include "absl/time/clock.h"
#include "tests/unit/server/ingest_stream_fixture.h"

namespace stepwell {
namespace {

using GroupCommitterTest = IngestStreamTest;

// The clock may stand before all of it: set back, it kept the journal from being recycled for as long.
TEST_F(GroupCommitterTest, WhereNothingIsUnderWayAllIsSettledWhateverTheClockSays) {
  const auto stream = NewStream();
  Begin(*stream, writer_);
  stream->Handle(Send(writer_, 1));
  ASSERT_EQ(Answers(*stream).size(), 1U);
  const SteadyTime deadline = SteadyTime::Now() + absl::Seconds(10);
  const auto settled = [&] {
    return committer_.settled_before_us() == std::numeric_limits<std::int64_t>::max();
  };
  while (!settled() && !deadline.HasPassed()) absl::SleepFor(absl::Milliseconds(1));
  EXPECT_TRUE(settled());
  stream->Finish();
}

}  // namespace
}  // namespace stepwell
