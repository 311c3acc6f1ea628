// Pages of trials, of PgReader over a real PostgreSQL: whatever they are looked for by, none looks at more trials than
// it may, and together they have all that match.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/steady_time.h"
#include "storage/pg_reader.h"
#include "tests/support/codec_vectors.h"
#include "tests/support/postgres.h"
#include "tests/support/row_writer.h"

namespace stepwell {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using testing::RowWriter;
using testing::TestPostgres;
using testing::TestSeed;

class TrialListsTest : public ::testing::Test {
 protected:
  std::unique_ptr<ReadSnapshot> Snapshot() {
    auto snapshot = reader_.OpenSnapshot(SteadyTime::Now() + absl::Seconds(20));
    EXPECT_TRUE(snapshot.ok()) << snapshot.status();
    return *std::move(snapshot);
  }

  static std::vector<std::int64_t> IdsOf(const TrialList& list) {
    std::vector<std::int64_t> ids;
    for (const TrialRecord& trial : list.trials) ids.push_back(Value(trial.trial_id));
    return ids;
  }

  // Where the next page goes on; none = there is no other.
  static std::optional<TrialPage::After> NextOf(const TrialList& list, const TrialPage& page) {
    if (static_cast<std::int32_t>(list.trials.size()) < page.limit) return list.looked_up_to;
    EXPECT_FALSE(list.looked_up_to) << "a page that is full ends with its last trial";
    return TrialPage::After{list.trials.back().created_time_us, Value(list.trials.back().trial_id)};
  }

  // All pages one behind the other.
  static std::vector<std::int64_t> AllIds(ReadSnapshot& snapshot, TrialPage page) {
    std::vector<std::int64_t> ids;
    for (int calls = 0;; ++calls) {
      EXPECT_LT(calls, 1000);
      const auto list = snapshot.ListTrials(page);
      EXPECT_TRUE(list.ok()) << list.status();
      if (!list.ok() || calls == 1000) return ids;
      const std::vector<std::int64_t> more = IdsOf(*list);
      ids.insert(ids.end(), more.begin(), more.end());
      page.after = NextOf(*list, page);
      if (!page.after) return ids;
    }
  }

  const std::string url_ = TestPostgres::Get().FreshMigratedDatabase();
  RowWriter writer_{url_};
  PgReader reader_{{.url = url_, .connection_count_max = 2}};
};

TEST_F(TrialListsTest, ListsTrialsNewestFirstPageByPage) {
  for (int trial = 1; trial <= 5; ++trial) writer_.AddTrial(trial, 1);
  // Two of one moment: the number decides.
  writer_.Run(
      "update stepwell.trials set created_time = '2026-01-01'::timestamptz + "
      "least(trial_id, 4) * interval '1 s'; update stepwell.trials set state = 2 where trial_id = "
      "2");
  const auto snapshot = Snapshot();
  EXPECT_THAT(AllIds(*snapshot, {.readable_projects = kAllProjects, .limit = 2}),
              ElementsAre(5, 4, 3, 2, 1));
  const auto ids = [&](const TrialPage& only) { return IdsOf(*snapshot->ListTrials(only)); };
  EXPECT_THAT(ids({.readable_projects = kAllProjects, .state = TrialState::kCompleted}),
              ElementsAre(2));
  EXPECT_THAT(ids({.readable_projects = kAllProjects, .name_contains = "n-3"}), ElementsAre(3));
  EXPECT_THAT(ids({.project = "other", .readable_projects = kAllProjects}), IsEmpty());
}

TEST_F(TrialListsTest, APageEndsAtTheLastTrialThatItMayLookAt) {
  for (int trial = 1; trial <= 10; ++trial) writer_.AddTrial(trial, 1);
  writer_.Run("update stepwell.trials set created_time = to_timestamp(trial_id)");
  const auto snapshot = Snapshot();
  TrialPage page{.readable_projects = kAllProjects, .name_contains = "n-1", .looks_max = 3};
  struct Row {
    std::vector<std::int64_t> ids;
    std::int64_t looked_up_to;  // 0 = the end
  };
  for (const Row& row : {Row{{10}, 8}, Row{{}, 5}, Row{{}, 2}, Row{{1}, 0}}) {
    const auto list = snapshot->ListTrials(page);
    ASSERT_TRUE(list.ok()) << list.status();
    EXPECT_EQ(IdsOf(*list), row.ids);
    ASSERT_EQ(list->looked_up_to ? list->looked_up_to->trial_id : 0, row.looked_up_to);
    page.after = list->looked_up_to;
  }
}

TEST_F(TrialListsTest, OfSeveralProjectsNoneIsPassedOver) {
  for (int trial = 1; trial <= 10; ++trial) writer_.AddTrial(trial, 1);
  // The other project's trials end within the looks; those of the first do not, and one that matches lies behind.
  writer_.Run(
      "insert into stepwell.projects (name) values ('other'); "
      "update stepwell.trials set created_time = to_timestamp(trial_id), project_id = "
      "(select project_id from stepwell.projects where name = case when trial_id in (1, 2) then "
      "'other' else 'default' end); "
      "update stepwell.trials set state = 2 where trial_id in (1, 2, 4)");
  const ProjectFilter both = std::vector<std::string>{"default", "other"};
  const TrialPage page{
      .readable_projects = both, .state = TrialState::kCompleted, .limit = 2, .looks_max = 6};
  const auto snapshot = Snapshot();
  const auto first = snapshot->ListTrials(page);
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_THAT(IdsOf(*first), IsEmpty()) << "4 comes before both of the other project";
  EXPECT_THAT(AllIds(*snapshot, page), ElementsAre(4, 2, 1));
}

// Of those that run all projects' are looked at: the last one of a page, which its token names, was of anybody's.
TEST_F(TrialListsTest, APageEndsAtNoTrialOfAProjectThatIsHidden) {
  for (int trial = 1; trial <= 30; ++trial) writer_.AddTrial(trial, 1);
  writer_.Run(
      "insert into stepwell.projects (name) values ('hidden'), ('empty'); "
      "update stepwell.trials set created_time = to_timestamp(trial_id), project_id = "
      "(select project_id from stepwell.projects where name = case when trial_id % 5 = 0 then "
      "'default' else 'hidden' end)");
  const auto snapshot = Snapshot();
  for (const char* project : {"default", "empty"}) {
    for (const char* name : {"zzz", ""}) {
      for (const int looks_max : {1, 4, 7, 20}) {
        SCOPED_TRACE(absl::StrCat(project, " ", name, " ", looks_max));
        TrialPage page{.readable_projects = std::vector<std::string>{project},
                       .name_contains = name,
                       .state = TrialState::kRunning,
                       .looks_max = looks_max};
        std::vector<std::int64_t> ids;
        int pages = 0;
        while (true) {
          ASSERT_LT(++pages, 30);
          const auto list = snapshot->ListTrials(page);
          ASSERT_TRUE(list.ok()) << list.status();
          const std::vector<std::int64_t> more = IdsOf(*list);
          ids.insert(ids.end(), more.begin(), more.end());
          page.after = NextOf(*list, page);
          if (!page.after) break;
          EXPECT_TRUE(*project == 'd' && page.after->trial_id % 5 == 0) << page.after->trial_id;
        }
        const bool has_some = *project == 'd' && *name == '\0';
        EXPECT_THAT(ids, ::testing::ElementsAreArray(
                             has_some ? std::vector<std::int64_t>{30, 25, 20, 15, 10, 5}
                                      : std::vector<std::int64_t>()));
      }
    }
  }
}

TEST_F(TrialListsTest, PagesOfAnySizeAndAnyLooksHaveAllThatMatchInOrder) {
  struct Made {
    std::int64_t id, second;
    int project, state;
    bool deleted;
  };
  std::mt19937_64 random(TestSeed());
  writer_.Run("insert into stepwell.projects (name) values ('p-0'), ('p-1'), ('p-2')");
  std::vector<Made> made;
  for (std::int64_t id = 1; id <= 60; ++id) {
    made.push_back({id, static_cast<std::int64_t>(random() % 40), static_cast<int>(random() % 3),
                    static_cast<int>(random() % 4) + 1, random() % 5 == 0});
    const Made& one = made.back();
    writer_.AddTrial(id, 1);
    writer_.Run(
        absl::StrCat("update stepwell.trials set created_time = to_timestamp(", one.second,
                     "), state = ", one.state, ", deleted_time = ", one.deleted ? "now()" : "null",
                     ", project_id = (select project_id from stepwell.projects where name = 'p-",
                     one.project, "') where trial_id = ", id));
  }
  std::sort(made.begin(), made.end(), [](const Made& a, const Made& b) {
    return std::tuple(a.second, a.id) > std::tuple(b.second, b.id);
  });
  const auto snapshot = Snapshot();
  const ProjectFilter two = std::vector<std::string>{"p-0", "p-2"};
  for (const ProjectFilter& readable : {ProjectFilter(kAllProjects), two}) {
    for (const char* project : {"", "p-0", "p-1"}) {
      for (const int state : {0, 1, 2, 4}) {
        for (const char* name : {"", "n-1", "7", "none"}) {
          std::vector<std::int64_t> expected;
          for (const Made& one : made) {
            const std::string of = absl::StrCat("p-", one.project);
            const bool matches = !one.deleted && readable.LetsThrough(of) &&
                                 (*project == '\0' || of == project) &&
                                 (state == 0 || state == one.state) &&
                                 absl::StrContains(absl::StrCat("run-", one.id), name);
            if (matches) expected.push_back(one.id);
          }
          for (const int looks_max : {1, 7, 1000}) {
            for (const int limit : {1, 5, 100}) {
              SCOPED_TRACE(absl::StrCat(project, " ", state, " ", name, " ", looks_max, " ", limit,
                                        readable.is_all() ? "" : " of two"));
              TrialPage page{.project = project,
                             .readable_projects = readable,
                             .name_contains = name,
                             .limit = limit,
                             .looks_max = looks_max};
              if (state != 0) page.state = static_cast<TrialState>(state);
              ASSERT_EQ(AllIds(*snapshot, page), expected);
            }
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace stepwell
