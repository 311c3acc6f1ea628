#include "client/agent/writer_identity.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "client/agent/agent_options.h"
#include "client/agent/name_table.h"

namespace stepwell::agent {
namespace {

struct TextRow {
  const char* name;
  std::string text;
  std::size_t bytes_max;
  std::string clean;
};

TEST(WriterIdentityTest, CleansTextsForTheWire) {
  const TextRow rows[] = {
      {"plain", "resnet", 128, "resnet"},
      {"umlaut", "gr\xc3\xb6\xc3\x9f\x65", 128, "gr\xc3\xb6\xc3\x9f\x65"},
      {"lone continuation", "a\x80z", 128, "a?z"},
      {"overlong", "\xc0\xaf", 128, "??"},
      {"surrogate", "\xed\xa0\x80", 128, "???"},
      {"beyond unicode", "\xf5\x80\x80\x80", 128, "????"},
      {"cut off", "a\xe2\x82", 128, "a??"},
      {"nul and control", std::string("a\0b\n", 4), 128, "a?b?"},
      {"at the bound", "12345678", 8, "12345678"},
  };
  for (const TextRow& row : rows) {
    SCOPED_TRACE(row.name);
    EXPECT_EQ(CleanText(row.text, row.bytes_max), row.clean);
  }
}

TEST(WriterIdentityTest, LongTextsAreCutAndStayDifferent) {
  const std::string one = CleanText(std::string(300, 'x') + "1", 256);
  const std::string two = CleanText(std::string(300, 'x') + "2", 256);
  EXPECT_EQ(one.size(), 256u);
  EXPECT_NE(one, two);
  std::string wide;
  for (int i = 0; i < 200; ++i) wide += "\xc3\xb6";
  const std::string cut = CleanText(wide, 256);
  EXPECT_LE(cut.size(), 256u);
  EXPECT_EQ(CleanText(cut, 256), cut);  // no half character
}

TEST(WriterIdentityTest, RoundTrips) {
  WriterIdentity who;
  who.writer = Uuid::Random();
  who.project = "vision";
  who.trial = "id:7";
  who.attempt_key = "job 12";
  who.rank = 3;
  who.world_size = 8;
  who.is_sampler = true;
  who.labels = {{"zone", "b"}};
  who.placement = {{"pod", "p-0"}, {"slurm_job", "4711"}};
  who.boot_id = "boot";
  who.opened_time_us = 5;
  who.opened_monotonic_ns = 6;
  who.server = "master:7817";
  who.sampling = {.on = false, .interval_us = 50000, .groups = {"cpu"}, .with = {"cpu_util_core"}};
  const auto back = ParseWriterJson(ToWriterJson(who));
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(back->writer, who.writer);
  EXPECT_EQ(back->trial, "id:7");
  EXPECT_EQ(back->attempt_key, "job 12");
  EXPECT_EQ(back->rank, 3);
  EXPECT_TRUE(back->is_sampler);
  EXPECT_EQ(back->labels, who.labels);
  EXPECT_EQ(back->placement, who.placement);
  EXPECT_EQ(back->opened_monotonic_ns, 6u);
  EXPECT_EQ(back->server, "master:7817");
  EXPECT_EQ(back->sampling, who.sampling);
}

// It decides nothing about what was recorded: what is not understood is left out.
TEST(WriterIdentityTest, AWishForSamplingIsTakenAsFarAsItIsUnderstood) {
  std::string many = R"("a")";
  for (int i = 0; i < 100; ++i) many += R"(,"a")";
  const struct {
    const char* name;
    std::string json;
    SamplingWish wish;
  } rows[] = {
      {"absent", "", {}},
      {"no object", R"(,"sampling":7)", {}},
      {"off", R"(,"sampling":{"on":false})", {.on = false}},
      {"wrong kinds", R"(,"sampling":{"on":"no","interval_us":"1","groups":"cpu","with":{}})", {}},
      {"kinds within a list", R"(,"sampling":{"groups":["cpu",7,null]})", {.groups = {"cpu"}}},
      {"too short", R"(,"sampling":{"interval_us":-5})", {}},
      {"too long", R"(,"sampling":{"interval_us":99999999999})", {.interval_us = 3'600'000'000}},
      {"too many",
       R"(,"sampling":{"without":[)" + many + "]}",
       {.without = std::vector<std::string>(64, "a")}},
  };
  for (const auto& row : rows) {
    SCOPED_TRACE(row.name);
    const auto who = ParseWriterJson(R"({"format":1,"trial":"t","writer":")" +
                                     Uuid::Random().ToText() + "\"" + row.json + "}");
    ASSERT_TRUE(who.ok()) << who.status();
    EXPECT_EQ(who->sampling, row.wish);
  }
}

TEST(WriterIdentityTest, WhereItRunsIsTakenAsFarAsItIsUnderstood) {
  using Placement = std::map<std::string, std::string>;
  for (const auto& [json, placement] : std::vector<std::pair<std::string, Placement>>{
           {"", {}},
           {R"(,"placement":7)", {}},
           {R"(,"placement":{"pod":7,"slurm_job":"","other":"x"})", {}},
           {R"(,"placement":{"pod":"a\u0001b"})", {{"pod", "a?b"}}}}) {
    SCOPED_TRACE(json);
    const auto who = ParseWriterJson(R"({"format":1,"trial":"t","writer":")" +
                                     Uuid::Random().ToText() + "\"" + json + "}");
    ASSERT_TRUE(who.ok()) << who.status();
    EXPECT_EQ(who->placement, placement);
  }
  const auto lengthy =
      ParseWriterJson(R"({"format":1,"trial":"t","placement":{"pod":")" + std::string(5000, 'p') +
                      R"("},"writer":")" + Uuid::Random().ToText() + "\"}");
  ASSERT_TRUE(lengthy.ok()) << lengthy.status();
  EXPECT_EQ(lengthy->placement.at("pod").size(), 256U);
}

// A master refuses a writer with one of these, and with it all that it recorded.
TEST(WriterIdentityTest, WhatAMasterWouldRefuseIsMended) {
  std::string labels = R"("rank":"1","agent":"a","":"x")";
  for (int i = 0; i < 40; ++i) labels += ",\"l" + std::to_string(i) + "\":\"v\"";
  const auto parsed =
      ParseWriterJson(R"({"writer":")" + Uuid::Random().ToText() +
                      R"(","format":1,"trial":"t","project":"my team/vision","rank":3,)"
                      R"("world_size":2,"labels":{)" +
                      labels + "}}");
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_EQ(parsed->project, "my_team_vision");
  EXPECT_EQ(parsed->rank, 3);
  EXPECT_EQ(parsed->world_size, 0) << "unknown";
  EXPECT_EQ(parsed->labels.size(), 30u);
  EXPECT_EQ(parsed->labels.count("rank") + parsed->labels.count("agent") + parsed->labels.count(""),
            0u);
}

TEST(WriterIdentityTest, NamesTheFieldThatIsWrong) {
  const std::string id = Uuid::Random().ToText();
  const std::pair<std::string, std::string> rows[] = {
      {"", "no JSON object"},
      {"[1]", "no JSON object"},
      {std::string(100000, '['), "no JSON object"},
      {"{}", "\"writer\""},
      {R"({"writer":"x","format":1})", "\"writer\""},
      {R"({"writer":")" + id + R"(","format":2})", "\"format\""},
      {R"({"writer":")" + id + R"(","format":1})", "\"trial\""},
      {R"({"writer":")" + id + R"(","format":1,"trial":"t","rank":-1})", "\"rank\""},
      {R"({"writer":")" + id + R"(","format":1,"trial":"t","labels":{"a":1}})", "\"labels\""},
  };
  for (const auto& [json, expected] : rows) {
    const auto parsed = ParseWriterJson(json);
    ASSERT_FALSE(parsed.ok()) << json.substr(0, 80);
    EXPECT_NE(parsed.status().message().find(expected), std::string::npos) << parsed.status();
  }
}

// --- names

std::string NameRecord(std::uint32_t id, spool::NameKind kind, std::uint32_t parent,
                       const std::vector<std::string>& texts, std::size_t counted_max = 100) {
  std::string body;
  for (const std::string& text : texts) {
    const auto length = static_cast<std::uint16_t>(text.size());
    body.append(reinterpret_cast<const char*>(&length), sizeof(length));
    body += text;
  }
  body.resize((body.size() + 7) / 8 * 8);
  spool::NameRecord head{};
  head.record_bytes = static_cast<std::uint32_t>(sizeof(head) + body.size());
  head.id = id;
  head.parent = parent;
  head.kind = kind;
  head.series_kind = spool::SeriesKind::kGauge;
  head.text_count = static_cast<std::uint16_t>(std::min(texts.size(), counted_max));
  return std::string(reinterpret_cast<const char*>(&head), sizeof(head)) + body;
}

TEST(NameTableTest, JoinsPathsAndReadsSeriesPieceByPiece) {
  const std::string bytes = NameRecord(1, spool::NameKind::kScope, 0, {"train_batch"}) +
                            NameRecord(2, spool::NameKind::kScope, 1, {"forward"}) +
                            NameRecord(3, spool::NameKind::kSeries, 0,
                                       {"training", "loss", "1", "phase", "eval", "rank", "9"});
  NameTable names;
  // As the file grows: what is not whole yet is left for the next time.
  for (std::size_t size = 0; size <= bytes.size(); ++size) {
    names.Extend(std::string_view(bytes).substr(0, size).substr(names.consumed_bytes()));
  }
  ASSERT_FALSE(names.damaged());
  EXPECT_EQ(names.Find(1)->name, "train_batch");
  EXPECT_EQ(names.Find(2)->name, "train_batch/forward");
  EXPECT_EQ(names.Find(3)->metric_group, "training");
  EXPECT_EQ(names.Find(3)->labels, (std::map<std::string, std::string>{{"phase", "eval"}}));
  EXPECT_EQ(names.Find(0), nullptr);
  EXPECT_EQ(names.Find(4), nullptr);
}

TEST(NameTableTest, ScopesHaveTheirLabelsAndThoseOfWhatTheyLieIn) {
  using Labels = std::map<std::string, std::string>;
  std::vector<std::string> many = {"deep"};
  for (std::size_t i = 0; i < spool::kLabelCountMax; ++i) {
    many.push_back("l" + std::to_string(i));
    many.push_back("x");
  }
  const std::string bytes =
      NameRecord(1, spool::NameKind::kScope, 0, {"fetch", "loader", "train", "rank", "9"}, 1) +
      NameRecord(2, spool::NameKind::kScope, 1, {"decode"}) +
      NameRecord(3, spool::NameKind::kScope, 2, {"read", "loader", "eval", "disk", "sda"}, 1) +
      NameRecord(4, spool::NameKind::kScope, 1, many, 1);
  NameTable names;
  names.Extend(bytes);
  ASSERT_FALSE(names.damaged());
  EXPECT_EQ(names.Find(1)->name, "fetch");
  EXPECT_EQ(names.Find(1)->labels, (Labels{{"loader", "train"}}));
  EXPECT_EQ(names.Find(2)->labels, (Labels{{"loader", "train"}}));
  EXPECT_EQ(names.Find(3)->name, "fetch/decode/read");
  EXPECT_EQ(names.Find(3)->labels, (Labels{{"disk", "sda"}, {"loader", "eval"}}));
  EXPECT_EQ(names.Find(4)->labels.size(), spool::kLabelCountMax)
      << "none more than a series may have";
  EXPECT_EQ(names.Find(4)->labels.count("loader"), 0u);
}

TEST(NameTableTest, StopsAtTheFirstBadRecord) {
  const std::string good = NameRecord(1, spool::NameKind::kScope, 0, {"a"});
  const std::string rows[] = {
      NameRecord(3, spool::NameKind::kScope, 0, {"b"}),
      NameRecord(2, spool::NameKind::kScope, 9, {"b"}),
      NameRecord(2, spool::NameKind::kScope, 0, {"b", "c"}),
      NameRecord(2, spool::NameKind::kScope, 0, {"b", std::string(2000, 'x')}, 1),
      NameRecord(2, spool::NameKind::kScope, 0, std::vector<std::string>(67, "b"), 1),
      NameRecord(2, spool::NameKind::kSeries, 0, {"g", "n"}),
      NameRecord(2, static_cast<spool::NameKind>(7), 0, {"b"}),
      NameRecord(2, spool::NameKind::kScope, 0, {std::string(2000, 'x')}),
      std::string(16, '\xff'),
  };
  for (const std::string& bad : rows) {
    NameTable names;
    names.Extend(good + bad + NameRecord(3, spool::NameKind::kScope, 0, {"c"}));
    EXPECT_TRUE(names.damaged());
    EXPECT_NE(names.Find(1), nullptr);
    EXPECT_EQ(names.Find(2), nullptr);
  }
}

// --- options

struct OptionsRow {
  std::vector<std::string> arguments;
  absl::StatusCode code;
  std::string message;
};

TEST(AgentOptionsTest, SaysWhatIsWrongAndWhatIsAllowed) {
  unsetenv("STEPWELL_SERVER");
  unsetenv("STEPWELL_SPOOL_DIR");
  const auto with = [](std::vector<std::string> more) {
    std::vector<std::string> all = {"--server", "h:1", "--spool-dir", "d"};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  };
  constexpr auto kUsage = absl::StatusCode::kInvalidArgument;
  constexpr auto kConfig = absl::StatusCode::kFailedPrecondition;
  const OptionsRow rows[] = {
      {with({"--nonsense"}), kUsage, "Option ‘nonsense’ does not exist"},
      {with({"stray"}), kUsage, "unexpected argument 'stray'"},
      {{"--server", "h", "--spool-dir", "d"}, kConfig, "--server h: must be HOST:PORT, or offline"},
      {{"--server", "h:0", "--spool-dir", "d"}, kConfig, "--server h:0: must be HOST:PORT"},
      {with({"--interval", "1ms"}), kConfig,
       "--interval 1ms: must be a duration like 250ms, from 10ms to 1h"},
      {with({"--groups", "cpu,cup"}), kConfig,
       "--groups cup: must be of cpu, disk, gpu, memory, network"},
      {with({"--without", "gpu_utl"}), kConfig,
       "--without gpu_utl: must be a system metric; docs/metrics.md lists them"},
      {with({"--frame-interval", "2s"}), kConfig,
       "--frame-interval 2s: must be a duration like 250ms, from 10ms to 1s"},
      {with({"--once-idle-exit", "soon"}), kConfig,
       "--once-idle-exit soon: must be a number of seconds from 0 to 86400"},
      {with({"--trial", "id:0"}), kConfig, "--trial id:0: must be a name, or id: and a number"},
      {with({"--spool-bytes-max", "5"}), kConfig, "--spool-bytes-max 5: must be"},
      {with({"--spool-age-max", "1m"}), kConfig,
       "--spool-age-max 1m: must be a duration like 250ms, from 1h to 87600h"},
      {with({"--system"}), kUsage, "--spool-dir with --system"},
      {{"--system", "--trial", "t"}, kUsage, "--trial with --system"},
      {with({"--on-demand"}), kConfig, "--spool-dir d: must be an absolute path, with --on-demand"},
  };
  for (const OptionsRow& row : rows) {
    const auto parsed = ParseAgentOptions(row.arguments);
    SCOPED_TRACE(row.message);
    ASSERT_FALSE(parsed.ok());
    EXPECT_EQ(parsed.status().code(), row.code);
    EXPECT_NE(parsed.status().message().find(row.message), std::string::npos) << parsed.status();
  }
  const auto good = ParseAgentOptions(with({"--trial", "id:7", "--once-idle-exit", "2.5"}));
  ASSERT_TRUE(good.ok()) << good.status();
  EXPECT_EQ(good->options.trial, "id:7");
  EXPECT_EQ(good->options.idle_exit, absl::Milliseconds(2500));
  EXPECT_EQ(good->options.frame_interval, absl::Milliseconds(100));
  EXPECT_TRUE(good->options.auto_sampling);
  // As recorders of this user choose theirs.
  setenv("TMPDIR", "/scratch/", 1);
  const auto untold = ParseAgentOptions({"--trial", "t"});
  unsetenv("TMPDIR");
  ASSERT_TRUE(untold.ok()) << untold.status();
  EXPECT_EQ(untold->options.spool_dir, absl::StrCat("/scratch/stepwell-", geteuid()));
  const auto system = ParseAgentOptions({"--system"});
  ASSERT_TRUE(system.ok()) << system.status();
  EXPECT_TRUE(system->options.system);
  EXPECT_EQ(system->options.spool_dir, "/run/stepwell");
  EXPECT_FALSE(good->options.on_demand);
  EXPECT_FALSE(ParseAgentOptions(with({"--no-auto-sampling"}))->options.auto_sampling);
}

}  // namespace
}  // namespace stepwell::agent
