// Of which projects a read may tell: a trial of another one is not there, by number and by name, in the database and
// in the memory before it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <span>
#include <string>
#include <vector>

#include "storage/pg_reader.h"
#include "storage/token_store.h"
#include "tests/support/postgres.h"

namespace stepwell {
namespace {

using testing::Connect;
using testing::TestPostgres;

constexpr char kTrials[] = R"(
insert into stepwell.projects (name) values ('vision'), ('audio');
insert into stepwell.trials (trial_id, project_id, external_id, owner_epoch)
select n, project_id, 'run', 1 from (values (7, 'vision'), (8, 'audio')) as t (n, project)
join stepwell.projects p on p.name = t.project)";

const ProjectFilter kVision = std::vector<std::string>{"vision"};
const ProjectFilter kAudio = std::vector<std::string>{"audio"};
const ProjectFilter kBoth = std::vector<std::string>{"audio", "vision"};
const ProjectFilter kNone = std::vector<std::string>{};

class ProjectFilterTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const absl::Status filled = Connect(url_)->ExecScript(kTrials);
    ASSERT_TRUE(filled.ok()) << filled;
  }
  static TrialSelector ByNumber(std::int64_t number) { return {.trial_id = number}; }
  static TrialSelector ByName(const std::string& project) {
    return {.project = project, .external_id = "run"};
  }
  // Its number; 0 = not there.
  std::int64_t Find(const TrialSelector& selector, const ProjectFilter& projects) {
    const auto found = reader_.FindTrial(selector, projects, SteadyTime::Now() + absl::Seconds(20));
    if (!found.ok()) {
      EXPECT_EQ(found.status().code(), absl::StatusCode::kNotFound);
      EXPECT_EQ(found.status(), NoSuchTrial(selector)) << "as one that does not exist";
    }
    return found.ok() ? Value(*found) : 0;
  }
  // What is known without asking; 0 = nothing.
  std::int64_t Known(const TrialSelector& selector, const ProjectFilter& projects) {
    const int asked = asked_;
    const auto known = reader_.KnownTrial(selector, projects);
    EXPECT_EQ(asked_, asked);
    return known ? Value(*known) : 0;
  }

  const std::string url_ = TestPostgres::Get().FreshMigratedDatabase();
  int asked_ = 0;
  PgReader reader_{{.url = url_, .watch = [this](std::span<const ReadStatement> all) {
                      for (const ReadStatement& each : all)
                        asked_ += each.query == ReadQuery::kTrialId ? 1 : 0;
                    }}};
};

TEST_F(ProjectFilterTest, ATrialOfAnotherProjectIsNotThere) {
  for (const TrialSelector& selector : {ByNumber(7), ByName("vision")}) {
    SCOPED_TRACE(selector.trial_id);
    EXPECT_EQ(Find(selector, kAudio), 0);
    EXPECT_EQ(Find(selector, kNone), 0);
    EXPECT_EQ(Find(selector, kVision), 7);
    EXPECT_EQ(Find(selector, kBoth), 7);
    EXPECT_EQ(Find(selector, kAllProjects), 7);
    EXPECT_EQ(Find(selector, kAudio), 0) << "others have found it meanwhile";
  }
  EXPECT_EQ(asked_, 12) << "the database says so, each time";
  EXPECT_EQ(Find(ByNumber(9), kBoth), 0);
  EXPECT_EQ(Find(ByName("text"), kBoth), 0);
}

TEST_F(ProjectFilterTest, WhatOthersFoundIsKnownToThoseWhoMayBeToldOfIt) {
  for (const TrialSelector& selector : {ByNumber(7), ByName("vision")}) {
    EXPECT_EQ(Known(selector, kVision), 0);
  }
  EXPECT_EQ(Known(ByNumber(7), kAllProjects), 7) << "any number may be a trial's";
  EXPECT_EQ(Known(ByNumber(7), kAudio), 0);
  EXPECT_EQ(Find(ByName("vision"), kAllProjects), 7);
  EXPECT_EQ(Find(ByName("audio"), kAllProjects), 8);
  for (const TrialSelector& selector : {ByNumber(7), ByName("vision")}) {
    SCOPED_TRACE(selector.trial_id);
    EXPECT_EQ(Known(selector, kVision), 7);
    EXPECT_EQ(Known(selector, kBoth), 7);
    EXPECT_EQ(Known(selector, kAllProjects), 7);
    EXPECT_EQ(Known(selector, kAudio), 0);
    EXPECT_EQ(Known(selector, kNone), 0);
  }
  EXPECT_EQ(Find(ByNumber(8), kVision), 0);
  EXPECT_EQ(Known(ByNumber(8), kVision), 0);
  EXPECT_EQ(Known(ByNumber(8), kAudio), 8);
}

}  // namespace
}  // namespace stepwell
