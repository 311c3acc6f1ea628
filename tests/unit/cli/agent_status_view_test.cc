#include "client/cli/agent_status_view.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "nlohmann/json.hpp"
#include "tests/unit/cli/golden.h"

namespace stepwell::cli {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr std::int64_t kNowUs = 1'763'632'882'000'000;

SpooledWriter Writer(const char* state) {
  SpooledWriter writer;
  writer.writer = "0c8b5a52-7d0a-4b3e-9a53-6d3f0b8f4f10";
  writer.project = "default";
  writer.trial = "my-run";
  writer.state = state;
  writer.spool_bytes = 1 << 20;
  writer.ring_events_max = 8192;
  return writer;
}

SpooledWriter Waiting(const char* state, std::int64_t age_us) {
  SpooledWriter writer = Writer(state);
  writer.unacked_frames = 12;
  writer.unacked_samples = 3456;
  writer.unacked_bytes = 70'000;
  writer.unacked_since_us = kNowUs - age_us;
  writer.ring_events = 100;
  return writer;
}

SpoolStatus Spool(bool is_served, std::vector<SpooledWriter> writers) {
  return {"/tmp/stepwell-1000", is_served, is_served ? 4711 : 0, std::move(writers)};
}

TEST(AgentStatusViewTest, ShowsSpoolsWithTheirWriters) {
  SpooledWriter live = Waiting("live", 400'000);
  live.pid = 1234;
  live.worker_count = 2;
  live.rings_in_memory = true;
  SpooledWriter sampler = Writer("sampling");
  sampler.is_sampler = true;
  sampler.ring_events_max = 0;
  SpooledWriter offline = Waiting("died", 7'200'000'000);
  offline.project = "vision";
  offline.rank = 3;
  offline.server = "offline";
  offline.dropped_events = 1000;
  SpooledWriter broken;
  broken.writer = "7d0a5a52-7d0a-4b3e-9a53-6d3f0b8f4f10";
  broken.trouble = "writer.json: no JSON object";
  SpoolStatus other = Spool(false, {offline, broken});
  other.root = "/data/copied\033[2J";
  const std::vector<SpoolStatus> spools = {Spool(true, {live, sampler, Writer("stored")}), other};
  const std::string text = AgentStatusText(spools, {}, kNowUs, Paint(Colours::kOff));
  ExpectGolden("agent_status.txt", text);
  const auto json = nlohmann::json::parse(AgentStatusJson(spools, kNowUs));
  EXPECT_EQ(json["spools"][0]["agent_pid"], 4711);
  EXPECT_EQ(json["spools"][0]["writers"][0]["unacked_samples"], 3456);
  EXPECT_EQ(json["spools"][1]["writers"][1]["trouble"], "writer.json: no JSON object");
  EXPECT_EQ(json["spools"][1]["is_served"], false);
}

TEST(AgentStatusViewTest, IsOneLineWhereThereIsNothing) {
  EXPECT_EQ(
      AgentStatusText({}, {"/run/stepwell/u7", "/tmp/stepwell-7"}, kNowUs, Paint(Colours::kOff)),
      "Nothing waits here: there is no spool directory of yours at /run/stepwell/u7, "
      "/tmp/stepwell-7. --spool-dir DIR looks elsewhere.\n");
  EXPECT_EQ(nlohmann::json::parse(AgentStatusJson({}, kNowUs))["spools"].size(), 0U);
}

// An upload of it was offered, which is refused, too.
TEST(AgentStatusViewTest, WhatTheMasterRefusedIsNoUploadsAsItIs) {
  const auto refused = [](const char* state, const char* refusal) {
    SpooledWriter writer = Waiting(state, 95'000'000);
    writer.refusal = refusal;
    return writer;
  };
  SpooledWriter archived = refused("ended", "TRIAL_ARCHIVED: trial 7 is archived");
  archived.project = "vision";
  SpooledWriter told = archived;  // all of it is stored but its end
  told.unacked_frames = told.ring_events = 0;
  const SpooledWriter deleted = refused("died", "TRIAL_DELETED: trial 8 was deleted");
  const SpooledWriter old = refused("ended", "CLIENT_TOO_OLD: install stepwell 0.2.0");
  SpooledWriter offline = old;
  offline.server = "offline";
  const SpooledWriter tokenless = refused("ended", "TOKEN_REFUSED: no such token");
  constexpr char kArchived[] =
      "The master refused 1 writer: TRIAL_ARCHIVED: trial 7 is archived. What waits stays on the "
      "disk; after 'stepwell admin unarchive my-run --project vision', 'stepwell upload "
      "/tmp/stepwell-1000' sends it.";
  constexpr char kDeleted[] =
      "The master refused 1 writer: TRIAL_DELETED: trial 8 was deleted. No master takes it any "
      "more: once nothing records there, its directories below /tmp/stepwell-1000/f1 can be "
      "removed.";
  constexpr char kOld[] =
      "The master refused 1 writer: CLIENT_TOO_OLD: install stepwell 0.2.0. What waits stays on "
      "the disk; once that is put right, 'stepwell upload /tmp/stepwell-1000' sends it.";
  EXPECT_THAT(AdviceFor(Spool(false, {archived}), kNowUs), ElementsAre(kArchived));
  EXPECT_THAT(AdviceFor(Spool(false, {told}), kNowUs), ElementsAre(kArchived));
  EXPECT_THAT(AdviceFor(Spool(false, {deleted}), kNowUs), ElementsAre(kDeleted));
  EXPECT_THAT(AdviceFor(Spool(true, {deleted}), kNowUs), ElementsAre(kDeleted));
  EXPECT_THAT(AdviceFor(Spool(false, {old}), kNowUs), ElementsAre(kOld));
  EXPECT_THAT(AdviceFor(Spool(true, {offline}), kNowUs), ElementsAre(kOld))
      << "an agent does not send what records offline";
  EXPECT_THAT(AdviceFor(Spool(false, {tokenless}), kNowUs),
              ElementsAre("The master refused 1 writer: TOKEN_REFUSED: no such token. What waits "
                          "stays on the disk.",
                          HasSubstr("with the STEPWELL_TOKEN of 'stepwell upload")));
  // What it did not refuse an upload sends.
  EXPECT_THAT(AdviceFor(Spool(false, {deleted, Waiting("died", 1)}), kNowUs),
              ElementsAre("'stepwell upload /tmp/stepwell-1000' sends what waits: 3,456 samples in "
                          "12 frames, 100 events in rings.",
                          kDeleted));
}

TEST(AgentStatusViewTest, SaysWhatToDo) {
  SpooledWriter offline = Waiting("ended", 3'600'000'000);
  offline.server = "offline";
  SpooledWriter gone = Writer("died");
  gone.rings_missing = true;
  SpooledWriter acked = Writer("died");
  SpooledWriter refused = Waiting("live", 95'000'000);
  refused.refusal = "CLIENT_TOO_OLD: install\nstepwell 0.2.0";
  SpooledWriter unreached = Waiting("live", 7'000'000);
  unreached.server = "10.0.0.7:7817";
  unreached.unreachable = "Connection refused";
  SpooledWriter reached = Waiting("live", 400'000);
  reached.server = "127.0.0.1:7817";
  SpooledWriter nowhere = Waiting("ended", 7'000'000);
  nowhere.server = "my master";
  nowhere.is_server_unusable = true;
  struct Row {
    const char* name;
    SpoolStatus spool;
    const char* says;
  };
  const Row rows[] = {
      {"nothing", Spool(false, {}), "Nothing is recorded here."},
      {"all stored", Spool(false, {Writer("stored")}), "All of it is stored."},
      {"being sent", Spool(true, {Waiting("live", 400'000)}), "It is being sent."},
      {"being sent, and no ack comes",
       Spool(true, {Waiting("live", 400'000), Waiting("live", 12'000'000)}),
       "It is being sent; the oldest has waited for 12.0 s."},
      {"no master", Spool(true, {Waiting("live", 95'000'000)}),
       "The agent's master acked nothing for 95.0 s: is the master up, and reached from here? What "
       "waits stays on the disk until it does."},
      {"not reached", Spool(true, {unreached}),
       "10.0.0.7:7817 takes nothing (Connection refused): 1 writer waits for it. What waits stays "
       "on the disk until it does."},
      {"no address", Spool(true, {nowhere}),
       "1 writer names the master 'my master', which is no HOST:PORT: once the trial has ended, "
       "'stepwell upload /tmp/stepwell-1000' sends it to another."},
      {"refused", Spool(true, {refused, refused}),
       "The master refused 2 writers: CLIENT_TOO_OLD: install\\x0astepwell 0.2.0. What waits stays "
       "on the disk; once that is put right, the agent sends it within a minute."},
      {"offline", Spool(true, {offline}),
       "1 writer of a trial that records offline: once it has ended, 'stepwell upload "
       "/tmp/stepwell-1000' sends it."},
      {"no agent, live", Spool(false, {Waiting("live", 1)}),
       "1 process records and no agent ships it: 'stepwell agent --spool-dir /tmp/stepwell-1000' "
       "does; full rings drop."},
      {"orphaned", Spool(false, {Waiting("died", 1), offline}),
       "'stepwell upload /tmp/stepwell-1000' sends what waits: 6,912 samples in 24 frames, 200 "
       "events in rings."},
      {"only its end is untold", Spool(false, {acked}),
       "'stepwell upload /tmp/stepwell-1000' tells the master that 1 writer ended."},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.name);
    EXPECT_THAT(AdviceFor(row.spool, kNowUs), ElementsAre(row.says));
  }
  SpooledWriter tokenless = Waiting("live", 1);
  tokenless.server = "10.0.0.7:7817";
  tokenless.unreachable = "this master knows no such token, or it was revoked";
  SpooledWriter forbidden = Waiting("live", 1);
  forbidden.refusal = "GRANT_MISSING: the token has no grant ingest:vision/run-7";
  for (const SpooledWriter& writer : {tokenless, forbidden}) {
    SpoolStatus spool = Spool(true, {writer});
    spool.agent_pid = 4711;
    EXPECT_THAT(AdviceFor(spool, kNowUs),
                Contains("A training brings its own token by 'stepwell run --trial-token'; what "
                         "waits here is sent with the STEPWELL_TOKEN of 'stepwell upload "
                         "/tmp/stepwell-1000', once the agent was stopped ('kill 4711')."));
  }
  EXPECT_THAT(
      AdviceFor(Spool(true, {unreached, reached, unreached}), kNowUs),
      ElementsAre("10.0.0.7:7817 takes nothing (Connection refused): 2 writers wait for it. "
                  "What waits stays on the disk until it does.",
                  "The rest is being sent."));
  SpooledWriter unanswered = Waiting("live", 12'000'000);
  EXPECT_THAT(AdviceFor(Spool(true, {unreached, unanswered}), kNowUs),
              ElementsAre(HasSubstr("10.0.0.7:7817 takes nothing"),
                          "The rest is being sent; the oldest has waited for 12.0 s."));
  EXPECT_THAT(AdviceFor(Spool(false, {gone}), kNowUs),
              ElementsAre(HasSubstr("tells the master that 1 writer ended"),
                          "The rings of 1 writer are not here (they were in shared memory): what "
                          "was in no frame yet is lost."));
}

}  // namespace
}  // namespace stepwell::cli
