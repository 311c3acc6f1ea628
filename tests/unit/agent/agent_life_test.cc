#include "client/agent/agent_life.h"

#include <gtest/gtest.h>

#include <vector>

namespace stepwell::agent {
namespace {

using Facts = AgentLife::Facts;
using Verdict = AgentLife::Verdict;

constexpr Facts kNothingYet = {.any_seen = false, .all_done = true, .all_settled = true};
constexpr Facts kRecords = {.any_seen = true, .any_live = true, .all_done = false};
constexpr Facts kUnacked = {.any_seen = true, .all_done = false, .progress = 7};
constexpr Facts kMoreAcked = {.any_seen = true, .all_done = false, .progress = 8};
constexpr Facts kRefused = {.any_seen = true, .all_done = false, .all_settled = true};
constexpr Facts kGone = {.any_seen = true, .all_done = false, .all_gone = true, .progress = 7};
constexpr Facts kDone = {.any_seen = true, .all_done = true, .all_settled = true, .progress = 9};

struct Step {
  int at_s;
  Facts facts;
  Verdict verdict;
};
struct Row {
  const char* name;
  AgentLife::Options options;
  std::vector<Step> steps;
};

TEST(AgentLifeTest, AgentRule09_EndsWhenThereIsNothingToDoForLongEnough) {
  const AgentLife::Options on_demand = {.idle_exit = absl::Seconds(60),
                                        .leave_after = absl::Seconds(600)};
  const AgentLife::Options by_hand = {.idle_exit = absl::Seconds(10),
                                      .first_writer_wait = absl::Seconds(60)};
  const AgentLife::Options offline = {.idle_exit = absl::Seconds(60),
                                      .offline_exit = absl::Seconds(1)};
  Facts records_beside = kRecords;
  records_beside.any_spooled = true;
  Facts spooled = kDone;
  spooled.any_spooled = true;
  Facts records_in_none = kRecords;
  records_in_none.all_gone = true;
  Facts done_in_none = kDone;
  done_in_none.all_gone = true;
  const Row rows[] = {
      {"nobody will find it where its directory was removed",
       on_demand,
       {{1, kUnacked, Verdict::kStay},
        {2, kGone, Verdict::kStay},
        {60, kGone, Verdict::kStay},
        {61, kGone, Verdict::kLeave}}},
      {"nor where all is delivered", on_demand, {{1, done_in_none, Verdict::kIdle}}},
      {"who records into files without a name is served",
       on_demand,
       {{1, records_in_none, Verdict::kStay},
        {900, records_in_none, Verdict::kStay},
        {905, kGone, Verdict::kStay},
        {964, kGone, Verdict::kStay},
        {965, kGone, Verdict::kLeave}}},
      {"one that never ends stays without", {}, {{900, done_in_none, Verdict::kStay}}},
      {"gives up at once a spool that waits for an upload",
       offline,
       {{1, kRecords, Verdict::kStay}, {2, spooled, Verdict::kIdle}}},
      {"but not while another records there",
       offline,
       {{90, records_beside, Verdict::kStay}, {91, spooled, Verdict::kIdle}}},
      {"at once, but not while it records or is unacked",
       {.idle_exit = absl::ZeroDuration()},
       {{1, kRecords, Verdict::kStay}, {2, kUnacked, Verdict::kStay}, {3, kDone, Verdict::kIdle}}},
      {"stays by default", {}, {{0, kNothingYet, Verdict::kStay}, {90000, kDone, Verdict::kStay}}},
      {"idle from its start",
       on_demand,
       {{59, kNothingYet, Verdict::kStay}, {60, kNothingYet, Verdict::kIdle}}},
      {"waits for the first",
       by_hand,
       {{59, kNothingYet, Verdict::kStay}, {60, kNothingYet, Verdict::kIdle}}},
      {"not for a second",
       by_hand,
       {{5, kRecords, Verdict::kStay}, {14, kDone, Verdict::kStay}, {15, kDone, Verdict::kIdle}}},
      {"a recorder that comes makes it stay",
       on_demand,
       {{59, kDone, Verdict::kStay},
        {60, kRecords, Verdict::kStay},
        {119, kDone, Verdict::kStay},
        {120, kDone, Verdict::kIdle}}},
      {"nobody takes it",
       on_demand,
       {{100, kUnacked, Verdict::kStay},
        {699, kUnacked, Verdict::kStay},
        {700, kUnacked, Verdict::kLeave}}},
      {"an ack is hope",
       on_demand,
       {{100, kUnacked, Verdict::kStay},
        {650, kMoreAcked, Verdict::kStay},
        {1249, kMoreAcked, Verdict::kStay},
        {1250, kMoreAcked, Verdict::kLeave}}},
      {"a live recorder is never left",
       on_demand,
       {{1, kRecords, Verdict::kStay}, {9000, kRecords, Verdict::kStay}}},
      {"refused: left as well",
       on_demand,
       {{1, kRefused, Verdict::kStay}, {601, kRefused, Verdict::kLeave}}},
      {"an upload ends at once when all is settled",
       {.ends_when_settled = true},
       {{0, kUnacked, Verdict::kStay}, {1, kRefused, Verdict::kIdle}}},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.name);
    AgentLife life(row.options, absl::ZeroDuration());
    for (const Step& step : row.steps) {
      EXPECT_EQ(life.Judge(step.facts, absl::Seconds(step.at_s)), step.verdict)
          << "at " << step.at_s << " s";
    }
  }
}

}  // namespace
}  // namespace stepwell::agent
