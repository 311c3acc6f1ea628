// Of which projects a change may tell: traces of a trial of another one, its caps, its archive and its end are those of a
// trial that is not there, by number and by name, and nothing of it changes. As project_filter_test for what is read.
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "storage/pg_caps_read.h"
#include "storage/pg_trace_store.h"
#include "storage/token_store.h"
#include "tests/contract/caps_store_test.h"

namespace stepwell {
namespace {

using testing::CapsStoreTest;
using testing::kEpoch;

const ProjectFilter kOwn = std::vector<std::string>{"default", "vision"};
const ProjectFilter kOther = std::vector<std::string>{"speech"};
const ProjectFilter kNone = std::vector<std::string>{};

class HiddenChangesTest : public CapsStoreTest {
 protected:
  HiddenChangesTest() {
    header_.name = "a.json";
    header_.byte_count = 2;
    header_.sha256 = std::string(32, 's');
    auto trace = traces_.Begin(kEpoch, ById(), kOwn, header_);
    EXPECT_TRUE(trace.ok()) << trace.status();
    EXPECT_TRUE(trace.ok() && traces_.Append(kEpoch, *trace, "{}").ok());
  }
  TrialSelector ById() const { return {.trial_id = Value(writer_.trial_id)}; }
  static TrialSelector ByName() { return {.external_id = "t"}; }
  // By what it is asked; the trial goes with the last one.
  std::vector<std::pair<std::string, absl::Status>> EachOf(const TrialSelector& trial,
                                                           const ProjectFilter& projects) {
    const CapsTarget target{.trial = trial};
    return {
        {"begin", traces_.Begin(kEpoch, trial, projects, header_).status()},
        {"find", traces_.Find(trial, projects, 1).status()},
        {"list", traces_.List(trial, projects, 0, 10).status()},
        {"delete a trace", traces_.Delete(kEpoch, trial, projects, 1).status()},
        {"preview", caps_.Preview({.target = target}, projects).status()},
        {"sweep", caps_.Sweep(kEpoch, {.target = target}, projects).status()},
        {"get caps", caps_.Get(target, projects).status()},
        {"set caps", caps_.Set(kEpoch, target, projects, {.trial_bytes = 1'000'000}, {}).status()},
        {"archive", caps_.Archive(kEpoch, trial, projects, true).status()},
        {"delete", caps_.Delete(kEpoch, trial, projects).status()},
    };
  }

  const OpenedWriter writer_ = OpenWriter("t");
  StoredTraceHeader header_;
  PgTraceStore traces_{{.url = url_}};
};

TEST_F(HiddenChangesTest, ATrialOfAnotherProjectIsNotThereAndStaysAsItIs) {
  for (const TrialSelector& trial : {ById(), ByName()}) {
    for (const ProjectFilter& projects : {kOther, kNone}) {
      for (const auto& [what, status] : EachOf(trial, projects)) {
        EXPECT_EQ(status, NoSuchTrial(trial)) << what << ": as one that does not exist";
      }
    }
  }
  EXPECT_EQ(traces_.List(ById(), kOwn, 0, 10)->byte_count, 2);
  EXPECT_EQ(Number("select count(*) from stepwell.caps"), 0);
  EXPECT_EQ(
      Number("select count(*) from stepwell.trials where archived or deleted_time is not null"), 0);
  for (const auto& [what, status] : EachOf(ByName(), kOwn)) {
    EXPECT_TRUE(status.ok()) << what << ": " << status;
  }
  // What is left of it is told to those who could have deleted it.
  EXPECT_EQ(caps_.Delete(kEpoch, ById(), kOther).status(), NoSuchTrial(ById()));
  EXPECT_TRUE(caps_.Delete(kEpoch, ById(), kOwn).ok());
}

TEST_F(HiddenChangesTest, ATraceIsTakenOfWhoMayAddToItsTrialWhereverItLies) {
  const std::int64_t number = Value(writer_.trial_id);
  const struct {
    const char* name;
    TrialFilter trials;
    bool takes;
  } rows[] = {
      {"its number", TrialFilter(kNone, {}, {number}), true},
      {"its name", TrialFilter(kOther, {{"speech", "a"}, {"default", "t"}}, {}), true},
      {"its project", kOwn, true},
      {"another number", TrialFilter(kNone, {}, {number + 1}), false},
      {"its name elsewhere", TrialFilter(kOther, {{"speech", "t"}}, {}), false},
      {"another name beside it", TrialFilter(kNone, {{"default", "a"}, {"speech", "t"}}, {}),
       false},
  };
  for (const auto& row : rows) {
    for (const TrialSelector& trial : {ById(), ByName()}) {
      SCOPED_TRACE(row.name);
      const auto begun = traces_.Begin(kEpoch, trial, row.trials, header_);
      EXPECT_EQ(begun.status(), row.takes ? absl::OkStatus() : NoSuchTrial(trial));
    }
  }
}

TEST_F(HiddenChangesTest, PreviewsTellOfTheirProjectsAloneAndNobodySweepsAllWithoutAll) {
  ASSERT_TRUE(caps_.Set(kEpoch, {}, kAllProjects, {.trial_trace_bytes = 1}, {}).ok());
  const auto traces = [&](const PreviewRequest& request, const ProjectFilter& projects) {
    return caps_.Preview(request, projects)->removals.size();
  };
  for (const PreviewRequest& all : {PreviewRequest{}, PreviewRequest{.target = CapsTarget{}}}) {
    EXPECT_EQ(traces(all, kOwn), 1u);
    EXPECT_EQ(traces(all, kAllProjects), 1u);
    EXPECT_EQ(traces(all, kOther), 0u);
  }
  const CapsTarget project{.project = "default"};
  EXPECT_EQ(traces({.target = project}, kOwn), 1u);
  EXPECT_EQ(traces({.target = project}, kOther), 0u);
  for (const auto& target : {std::optional<CapsTarget>(), std::optional(CapsTarget{})}) {
    EXPECT_TRUE(absl::IsPermissionDenied(caps_.Sweep(kEpoch, {.target = target}, kOwn).status()));
  }
  EXPECT_TRUE(caps_.Sweep(kEpoch, {.target = project}, kOther)->removed.removals.empty());
  EXPECT_EQ(traces_.List(ById(), kOwn, 0, 10)->byte_count, 2) << "nothing was swept";
  EXPECT_EQ(caps_.Sweep(kEpoch, {.target = project}, kOwn)->removed.removals.size(), 1u);
}

TEST_F(HiddenChangesTest, APreviewCountsSamplesAndGivenUpTracesOfItsProjectsAlone) {
  StoredTraceHeader left = header_;
  left.name = "b.json";
  ASSERT_TRUE(traces_.Begin(kEpoch, ById(), kOwn, left).ok());
  Run("update stepwell.traces set changed_time = now() - interval '2 days' where state = 1");
  EXPECT_EQ(caps_.Preview({}, kOwn)->removals.size(), 1u) << "nobody goes on with it";
  EXPECT_EQ(caps_.Preview({}, kOther)->removals.size(), 0u);
  AddSeries(writer_.trial_id, 2);
  FillAndMerge(writer_, 2, 600);
  SetCaps({}, {.trial_bytes = 1});
  EXPECT_GT(caps_.Preview({}, kOwn)->sample_count, 0);
  EXPECT_EQ(caps_.Preview({}, kOther)->sample_count, 0);
}

TEST_F(HiddenChangesTest, PlacesOfOtherProjectsAreNotEvenRead) {
  const CapsTarget trial{.trial = ByName()};
  for (const CapsTarget& target :
       {CapsTarget{}, CapsTarget{.project = "default"}, trial, CapsTarget{.project = "speech"}}) {
    ASSERT_TRUE(caps_.Set(kEpoch, target, kAllProjects, {.trial_bytes = 1'000'000}, {}).ok());
  }
  const auto connection = testing::Connect(url_);
  const auto read = [&](const ProjectFilter& projects) {
    std::vector<std::string> named;
    const auto places = ReadPlaces(*connection, projects);
    EXPECT_TRUE(places.ok()) << places.status();
    for (const PlacedCaps& each : places->placed) {
      named.push_back(absl::StrCat(each.place.project, "/", each.place.external_id));
    }
    return named;
  };
  using Names = std::vector<std::string>;
  EXPECT_EQ(read(kOwn), (Names{"/", "default/", "default/t"}));
  EXPECT_EQ(read(kOther), (Names{"/", "speech/"}));
  EXPECT_EQ(read(kNone), (Names{"/"}));
  EXPECT_EQ(read(kAllProjects), (Names{"/", "default/", "speech/", "default/t"}));
  EXPECT_EQ(caps_.Get({}, kOther)->places.size(), 2u);
}

TEST_F(HiddenChangesTest, CapsOfAnotherProjectAreNotToldAndNoneIsMade) {
  const Caps month = {.raw_age_seconds = 30 * 86'400};
  ASSERT_TRUE(caps_.Set(kEpoch, {.project = "default"}, kOwn, month, {}).ok());
  EXPECT_EQ(caps_.Get({.project = "default"}, kOwn)->set, month);
  EXPECT_EQ(caps_.Get({.project = "default"}, kOther)->set, Caps{});
  for (const char* project : {"default", "vision"}) {
    EXPECT_TRUE(absl::IsNotFound(
        caps_.Set(kEpoch, {.project = project}, kOther, {.raw_age_seconds = 86'400}, {}).status()));
  }
  EXPECT_EQ(caps_.Get({.project = "default"}, kOwn)->set, month);
  EXPECT_EQ(Number("select count(*) from stepwell.projects where name = 'vision'"), 0);
}

}  // namespace
}  // namespace stepwell
