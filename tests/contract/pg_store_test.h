// PgStoreTest: StoreTest, and faults made in the database: commits that hang, backends that are killed.
// For the tests of faults and of rings.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "tests/contract/store_test.h"
#include "tests/support/sql_of.h"

namespace stepwell::testing {

class PgStoreTest : public StoreTest {
 protected:
  // From now on a COMMIT is durable and then waits for a standby that there is not: whoever kills its
  // backend makes it a COMMIT in doubt that happened.
  void HangCommits() {
    Run("alter system set synchronous_standby_names = 'nobody'");
    Run("select pg_reload_conf()");
    // The reload is in force when the checkpointer has seen it: a commit that hangs shows that.
    std::thread killer(KillWhen, url_, "wait_event = 'SyncRep'");
    while (Connect(url_)->ExecScript("update stepwell.projects set name = name").ok()) {
    }
    killer.join();
  }
  void ReleaseCommits() {
    Run("alter system reset synchronous_standby_names");
    Run("select pg_reload_conf()");
  }
  // Waits until somebody of this database waits for a lock.
  void AwaitLockWait() {
    for (const absl::Time deadline = absl::Now() + absl::Seconds(20); absl::Now() < deadline;) {
      if (Number("select count(*) from pg_stat_activity where wait_event_type = 'Lock' "
                 "and datname = current_database()") > 0) {
        return;
      }
    }
    ADD_FAILURE() << "nobody waits for a lock";
  }
  // Waits until some backend of this database shows `condition` in pg_stat_activity, and kills it.
  static void KillWhen(const std::string& url, const std::string& condition) {
    const auto sql = Connect(url);
    const std::string kill = absl::StrCat(
        "select pg_terminate_backend(pid) from pg_stat_activity "
        "where datname = current_database() and pid <> pg_backend_pid() and ",
        condition);
    for (const absl::Time deadline = absl::Now() + absl::Seconds(20); absl::Now() < deadline;) {
      const auto killed = sql->Exec(SqlOf(kill));
      ASSERT_TRUE(killed.ok()) << killed.status();
      if (killed->row_count() > 0) return;
    }
    ADD_FAILURE() << "no backend with " << condition;
  }
};

}  // namespace stepwell::testing
