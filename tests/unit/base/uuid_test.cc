#include "base/uuid.h"

#include <gtest/gtest.h>

namespace stepwell {
namespace {

TEST(UuidTest, TextAndBytesRoundTrip) {
  const Uuid uuid = Uuid::Random();
  EXPECT_EQ(Uuid::FromText(uuid.ToText()), uuid);
  EXPECT_EQ(Uuid::FromBytes(uuid.ToBytes()), uuid);
  EXPECT_NE(Uuid::Random(), uuid);
}

TEST(UuidTest, RefusesWhatIsNoUuid) {
  for (const char* text :
       {"", "00000000-0000-0000-0000-00000000000", "00000000-0000-0000-0000-0000000000000",
        "00000000x0000-0000-0000-000000000000", "g0000000-0000-0000-0000-000000000000"}) {
    SCOPED_TRACE(text);
    EXPECT_FALSE(Uuid::FromText(text).has_value());
  }
  EXPECT_FALSE(Uuid::FromBytes("short").has_value());
}

}  // namespace
}  // namespace stepwell
