// The master dies in and after migrations of an empty database, again and again, until all are applied.
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "tests/faults/database_text.h"
#include "tests/faults/scene.h"
#include "tests/support/postgres.h"

namespace stepwell::faults {
namespace {

TEST(MigrationKillTest, TheNextStartAppliesWhatIsLeft) {
  Scene scene("migration kill");
  const std::string url = testing::TestPostgres::Get().Durable().FreshDatabase();
  MasterProcess master({scene.path(""), "master", url});
  int kills = 0;
  for (bool died = true; died; ++kills) {
    ASSERT_LT(kills, 200) << "it gets no further";
    const char* point = kills % 2 == 0 ? "migration_before_commit" : "migration_after_commit";
    const std::string armed = absl::StrCat(point, "=exit@", scene.Random(0, 2));
    died = !master.StartAndWait({armed});
    if (!died) break;
    ASSERT_EQ(master.Ending(), "killed by signal 9") << master.LogTail();
  }
  scene.Say(absl::StrCat(kills, " kills, ",
                         DatabaseText(url, "select count(*) from stepwell.migrations"),
                         " migrations"));
  EXPECT_GE(kills, 3);
  scene.StartAgent(master.grpc_address());
  scene.StartTrainer(0, {{"--steps", "50"}});
  EXPECT_TRUE(scene.Await("500 samples", absl::Seconds(60), [&] {
    return scene.ReadLedgers().acked_count() >= 500;
  })) << scene.Logs();
  scene.ExpectExact(master, Demand::kRecorded);
  EXPECT_EQ(master.Stop(), "exit 0") << master.LogTail();
}

}  // namespace
}  // namespace stepwell::faults
