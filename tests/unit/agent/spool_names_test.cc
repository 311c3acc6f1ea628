// What the names in a writer's folder mean. Its user may make any others beside ours.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>

#include "client/agent/ended_ticks.h"
#include "client/agent/spool_numbers.h"
#include "client/agent/worker_name.h"

namespace stepwell::agent {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(SpoolNumbersTest, ASpoolHasOneNameAndOneThatFollowsIt) {
  EXPECT_THAT(SpoolNumbers({"12", "0", "3"}), ElementsAre(0, 3, 12));
  EXPECT_THAT(SpoolNumbers({"00", "+1", " 2", "3 ", "-0", "", "1.draft", "0x1", "4294967296"}),
              IsEmpty());
  EXPECT_THAT(SpoolNumbers({"4294967294", "4294967295"}), ElementsAre(4294967294U));
}

TEST(WorkerNameTest, IsTheOneThatARecorderWrites) {
  EXPECT_EQ(ParseWorkerName("w7-4294967295"), (WorkerName{7, 4294967295U}));
  for (const std::string name :
       {"w07-1", "w7-01", "w7-+1", "w7- 1", "w7", "w-1", "7-1", "w1024-0", "w7-1-2", ""}) {
    EXPECT_EQ(ParseWorkerName(name), std::nullopt) << name;
  }
}

TEST(EndedTicksTest, AreWhatAnAgentCanHaveHad) {
  const EndedTicks ended = {1'700'000'000'000'000, 250'000, 42};
  EXPECT_EQ(ParseEndedTicks(TextOf(ended)), ended);
  for (const std::string text : {"", "5 6", "5 6 7 8", "0 6 7", "5 0 7", "5 -6 7", "5 6 -7",
                                 "5 6 32769", "5 6 x", "9223372036854775808 6 7"}) {
    EXPECT_EQ(ParseEndedTicks(text), std::nullopt) << text;
  }
}

}  // namespace
}  // namespace stepwell::agent
