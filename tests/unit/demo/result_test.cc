#include "client/demo/result.h"

#include <gtest/gtest.h>

namespace stepwell::demo {
namespace {

Result Trained() {
  return {.trial = "a \"b\"",
          .ranks = 2,
          .step_count = 100,
          .seconds = 2.5,
          .examples_per_second = 1000,
          .parameter_count = 50,
          .training_file_count = 9,
          .training_bytes = 900,
          .held_out_file_count = 1,
          .held_out_place_count = 80,
          .training_loss = 2,
          .held_out_loss = 2.1,
          .bigram_loss = 2.5,
          .is_recorded = true,
          .is_stored = true,
          .recording_message = "",
          .dropped_count = 3};
}

TEST(DemoResultTest, IsShownAsText) {
  EXPECT_EQ(AsText(Trained()),
            "trial             a \"b\"\n"
            "trained           100 steps in 2.5 s, 1000 examples/s, 2 ranks\n"
            "on                9 files, 900 bytes; 50 parameters\n"
            "training loss     2.0000 nats/byte\n"
            "held-out loss     2.1000 nats/byte (80 bytes of 1 files)\n"
            "bigram baseline   2.5000 nats/byte: the model is below it\n"
            "recorded          yes, and all of it is stored by the master (3 events dropped)\n");
}

TEST(DemoResultTest, SaysWhyItIsNotRecorded) {
  Result result = Trained();
  result.is_recorded = result.is_stored = false;
  result.recording_message = "no spool directory";
  result.held_out_loss = 2.6;
  const std::string text = AsText(result);
  EXPECT_NE(text.find("recorded          no: no spool directory\n"), std::string::npos) << text;
  EXPECT_NE(text.find("the model is NOT below it"), std::string::npos) << text;
}

TEST(DemoResultTest, SaysHowWhatWasRecordedOfflineIsSent) {
  Result result = Trained();
  result.is_stored = false;
  result.recording_message = "offline: 'stepwell upload /tmp/spool' sends it";
  const std::string text = AsText(result);
  EXPECT_NE(text.find("recorded          yes; offline: 'stepwell upload /tmp/spool' sends it (3 "),
            std::string::npos)
      << text;
}

TEST(DemoResultTest, IsShownAsJson) {
  EXPECT_EQ(AsJson(Trained()),
            "{\"trial\": \"a \\\"b\\\"\", \"ranks\": 2, \"steps\": 100, \"seconds\": 2.500, "
            "\"examples_per_second\": 1000.0, \"parameters\": 50, \"training_files\": 9, "
            "\"training_bytes\": 900, \"held_out_files\": 1, \"held_out_bytes\": 80, "
            "\"training_loss\": 2.000000, \"held_out_loss\": 2.100000, \"bigram_loss\": 2.500000, "
            "\"below_bigram\": true, \"recorded\": true, \"stored\": true, "
            "\"recording_message\": \"\", \"dropped_events\": 3}\n");
}

}  // namespace
}  // namespace stepwell::demo
