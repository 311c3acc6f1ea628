// `stepwell compare` and QueryService.CompareTrials on a real master.
#include <gmock/gmock.h>

#include "nlohmann/json.hpp"
#include "tests/e2e/commands.h"

namespace stepwell::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class CompareTest : public CommandsTest {
 protected:
  // All steps of one rank, acked; its trial is over.
  void Train(const std::string& trial, int steps, double step_seconds, double load_seconds,
             int rank = 0) {
    RawStream stream(*client_);
    const Uuid writer = Uuid::Random();
    auto open = OpenMessage({.writer = writer, .external_id = trial, .rank = rank});
    open.mutable_open()->set_attempt_key("job");
    ASSERT_TRUE(stream.Send(open));
    ASSERT_TRUE(stream.Next().has_value());
    auto definitions =
        DefinitionMessage(writer, {{.ref = 1, .metric_group = "timing", .name = "step"},
                                   {.ref = 2, .metric_group = "timing", .name = "dataloader_next"},
                                   {.ref = 3, .metric_group = "training", .name = "loss"}});
    for (int ref = 0; ref < 2; ++ref) {
      auto& definition = *definitions.mutable_definitions()->mutable_definitions(ref);
      definition.set_kind(v1::SERIES_KIND_DURATION);
      definition.set_unit("seconds");
    }
    ASSERT_TRUE(stream.Send(definitions));
    v1::ChunkBody body = OneColumn(1, start_us_, static_cast<std::int64_t>(step_seconds * 1e6),
                                   std::vector<double>(steps, step_seconds));
    v1::Table& table = *body.mutable_tables(0);
    table.set_first_batch(0);
    for (int i = 1; i < steps; ++i) table.add_batch_deltas(1);
    for (const auto& [ref, value] : {std::pair{2, load_seconds}, {3, 2.5 * step_seconds}}) {
      v1::Column& column = *table.add_columns();
      column.set_ref(ref);
      for (int i = 0; i < steps; ++i) column.add_doubles(value);
    }
    ASSERT_TRUE(stream.Send(ChunkMessage(writer, 1, body)));
    ASSERT_TRUE(stream.Send(CloseMessage(writer, 1)));
    ASSERT_TRUE(stream.WaitAck(writer, 1).has_value()) << master_->LogTail();
    EXPECT_TRUE(Eventually(
        [&] {
          const Ran trials = Command({"trials", "--contains", trial});
          return trials.output.find("completed") != std::string::npos;
        },
        absl::Seconds(20)));
  }
};

TEST_F(CompareTest, AResearcherSeesWhatChanged) {
  StartMaster();
  Train("baseline", 100, 0.1, 0.04);
  Train("baseline", 100, 0.1, 0.04, /*rank=*/1);
  Train("faster", 50, 0.075, 0.01);

  const Ran text = Command({"compare", "baseline", "faster"});
  EXPECT_EQ(text.ending, "exit 0") << text.output;
  EXPECT_THAT(text.output, HasSubstr("A  baseline  completed  200 of 2 ranks      600"));
  EXPECT_THAT(text.output, HasSubstr("B  faster    completed"));
  EXPECT_THAT(text.output, HasSubstr("batches 0 ... 99, mean per step"));
  EXPECT_THAT(text.output,
              HasSubstr("dataloader_next  40.0 ms   40.0 %  10.0 ms   13.3 %    -30.0 ms  0.250"));
  EXPECT_THAT(text.output, HasSubstr("training  loss    0.25  0.1875     -0.0625  0.750"));
  EXPECT_THAT(text.output, HasSubstr("A  Complete: all 600 samples"));
  EXPECT_THAT(text.output, Not(HasSubstr("\033["))) << "no terminal, no colours";

  const Ran some = Command({"compare", "baseline", "faster", "--from", "60", "--group", "timing",
                            "--group-by", "rank", "--json"});
  EXPECT_EQ(some.ending, "exit 0") << some.output;
  const auto answer = nlohmann::json::parse(some.output);
  EXPECT_EQ(answer["start"], 60);
  EXPECT_EQ(answer["width"], 40);
  ASSERT_EQ(answer["series"].size(), 4u) << "two ranks each, by name and label";
  const auto& load = answer["series"][0];
  EXPECT_EQ(load["key"]["labels"]["rank"], "0");
  EXPECT_EQ(load["sides"][0]["count"], 40);
  EXPECT_EQ(load["sides"][1]["count"], 0) << "it had 50 batches";

  // Folded or not, they are the same.
  ASSERT_TRUE(client_->Flush().ok());
  EXPECT_EQ(Command({"compare", "baseline", "faster"}).output, text.output);

  const Ran time =
      Command({"compare", "faster", "baseline", "--by", "time", "--to", "1s", "--json"});
  const auto by_time = nlohmann::json::parse(time.output);
  EXPECT_EQ(by_time["series"][0]["sides"][0]["count"], 14);
  EXPECT_EQ(by_time["series"][0]["sides"][1]["count"], 20);
  EXPECT_EQ(by_time["trials"][0]["start_time_us"], start_us_);
}

TEST_F(CompareTest, WhatCannotBeComparedIsSaid) {
  StartMaster();
  Train("baseline", 10, 0.1, 0.04);
  Record("batchless", 100);
  const Ran unknown = Command({"compare", "baseline", "walk"});
  EXPECT_EQ(unknown.ending, "exit 1");
  EXPECT_THAT(unknown.output, HasSubstr("there is no trial 'walk' in project 'default'"));
  EXPECT_THAT(unknown.output, HasSubstr("The newest trials: batchless, baseline."));
  const Ran twice = Command({"compare", "baseline", "batchless", "baseline"});
  EXPECT_EQ(twice.ending, "exit 1");
  EXPECT_THAT(twice.output, HasSubstr("trials[2] is trial "));
  const Ran batchless = Command({"compare", "batchless", "baseline", "--group", "test"});
  EXPECT_EQ(batchless.ending, "exit 1");
  EXPECT_THAT(batchless.output, HasSubstr("--by time compares those without, too"));
  EXPECT_EQ(Command({"compare", "batchless", "baseline", "--by", "time"}).ending, "exit 0");
}

}  // namespace
}  // namespace stepwell::testing
