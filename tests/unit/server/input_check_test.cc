// What clients say of themselves and of their series: text, Open, Definitions, damaged messages.
#include <gtest/gtest.h>

#include <functional>

#include "absl/strings/str_cat.h"
#include "server/definition_check.h"
#include "server/limits.h"
#include "server/malformed.h"
#include "server/open_check.h"
#include "server/text_check.h"
#include "tests/unit/server/chunk_maker.h"

namespace stepwell {
namespace {

TEST(TextCheckTest, KnowsUtf8) {
  struct Row {
    const char* name;
    std::string text;
    bool valid;
  };
  for (const Row& row :
       {Row{"ascii", "abc", true}, Row{"two bytes", "\xC3\xA4", true},
        Row{"four bytes", "\xF0\x9F\x98\x80", true}, Row{"alone", "\x80", false},
        Row{"cut", "\xE2\x82", false}, Row{"overlong slash", "\xC0\xAF", false},
        Row{"overlong three", "\xE0\x80\x80", false}, Row{"surrogate", "\xED\xA0\x80", false},
        Row{"above", "\xF4\x90\x80\x80", false}, Row{"ff", "\xFF", false}}) {
    SCOPED_TRACE(row.name);
    EXPECT_EQ(IsUtf8(row.text), row.valid);
  }
}

TEST(TextCheckTest, RefusesControlCharacters) {
  for (const std::string& text : {std::string("a\nb"), std::string("a\0b", 3), std::string("\x7F"),
                                  std::string("\xC2\x85")}) {
    const auto complaint = CheckText("name", text, {0, 10}, "NAME");
    ASSERT_TRUE(complaint.has_value());
    EXPECT_EQ(complaint->reason, "CONTROL_CHARACTER");
  }
  EXPECT_FALSE(CheckText("name", "\xC2\xA0", {0, 10}, "NAME").has_value());
  EXPECT_EQ(CheckText("name", "", {1, 10}, "NAME")->reason, "NAME_BYTES");
}

TEST(TextCheckTest, ShortensBetweenCharacters) {
  EXPECT_EQ(Shortened("ab\xC3\xA4", 3), "ab");
  EXPECT_EQ(Shortened("a\xFFz", 8), "a?z");
}

pb::Open GoodOpen() {
  pb::Open open;
  open.set_writer(Uuid::Random().ToBytes());
  open.set_external_id("run-1");
  open.set_agent_id("node-7");
  open.set_rank(2);
  open.set_world_size(4);
  (*open.mutable_labels())["team"] = "vision";
  return open;
}

TEST(OpenCheckTest, TakesAGoodOneWithItsLabels) {
  OpenWriterRequest request;
  ASSERT_FALSE(CheckOpen(GoodOpen(), request).has_value());
  EXPECT_EQ(request.trial.project, "default");
  EXPECT_EQ(WriterLabels(request),
            (Labels{{"agent", "node-7"}, {"rank", "2"}, {"team", "vision"}}));
}

struct BadOpen {
  const char* name;
  std::function<void(pb::Open&)> spoil;
  const char* reason;
};

TEST(OpenCheckTest, NamesWhatIsWrong) {
  const std::vector<BadOpen> rows = {
      {"uuid", [](auto& o) { o.set_writer("short"); }, "WRITER_UUID"},
      {"zero uuid", [](auto& o) { o.set_writer(std::string(16, '\0')); }, "WRITER_UUID"},
      {"no trial", [](auto& o) { o.clear_external_id(); }, "TRIAL_SELECTOR"},
      {"two trials", [](auto& o) { o.set_trial_id(7); }, "TRIAL_SELECTOR"},
      {"negative",
       [](auto& o) {
         o.clear_external_id();
         o.set_trial_id(-1);
       },
       "TRIAL_ID"},
      {"project", [](auto& o) { o.set_project("a b"); }, "PROJECT_NAME"},
      {"long id", [](auto& o) { o.set_external_id(std::string(257, 'x')); }, "EXTERNAL_ID_BYTES"},
      {"nul", [](auto& o) { o.set_agent_id(std::string("a\0", 2)); }, "CONTROL_CHARACTER"},
      {"rank", [](auto& o) { o.set_rank(4); }, "RANK"},
      {"negative rank", [](auto& o) { o.set_rank(-1); }, "RANK"},
      {"world", [](auto& o) { o.set_world_size(-1); }, "WORLD_SIZE"},
      {"reserved", [](auto& o) { (*o.mutable_labels())["rank"] = "1"; }, "LABEL_RESERVED"},
      {"bomb",
       [](auto& o) {
         for (int i = 0; i <= kLabelsPerSeriesMax; ++i) {
           (*o.mutable_labels())[absl::StrCat("l", i)] = "";
         }
       },
       "LABEL_COUNT"},
      {"label value", [](auto& o) { (*o.mutable_labels())["a"] = std::string(1025, 'v'); },
       "LABEL_VALUE_BYTES"},
      {"empty label", [](auto& o) { (*o.mutable_labels())[""] = "v"; }, "LABEL_NAME_BYTES"},
      {"generation", [](auto& o) { o.set_last_generation(~std::uint64_t{0}); }, "GENERATION_RANGE"},
      {"a generation that leaves no room for others",
       [](auto& o) { o.set_last_generation((std::uint64_t{1} << 63) - 2); }, "GENERATION_RANGE"},
  };
  for (const BadOpen& row : rows) {
    SCOPED_TRACE(row.name);
    pb::Open open = GoodOpen();
    row.spoil(open);
    OpenWriterRequest request;
    const auto complaint = CheckOpen(open, request);
    ASSERT_TRUE(complaint.has_value());
    EXPECT_EQ(complaint->reason, row.reason) << complaint->message;
  }
}

pb::Definition GoodDefinition(std::uint32_t ref) {
  pb::Definition definition;
  definition.set_ref(ref);
  definition.set_tick_group(1);
  definition.set_metric_group("gpu");
  definition.set_name("gpu_util");
  definition.set_unit("percent");
  definition.set_kind(pb::SERIES_KIND_GAUGE);
  return definition;
}

TEST(DefinitionCheckTest, ABadOneDoesNotTakeOthersWithIt) {
  pb::Definitions definitions;
  *definitions.add_definitions() = GoodDefinition(1);
  *definitions.add_definitions() = GoodDefinition(2);
  definitions.mutable_definitions(1)->set_divisor(3);
  *definitions.add_definitions() = GoodDefinition(3);
  const DefinitionResult result = CheckDefinitions(definitions, {{"rank", "0"}}, {});
  ASSERT_EQ(result.fresh.size(), 2U);
  EXPECT_EQ(result.fresh[1].number, 3U);
  EXPECT_EQ(result.fresh[0].definition.key.labels, (Labels{{"rank", "0"}}));
  ASSERT_EQ(result.refused.size(), 1U);
  EXPECT_EQ(result.refused[0].number, 2U);
  EXPECT_EQ(result.refused[0].complaint.reason, "DIVISOR");
}

TEST(DefinitionCheckTest, RepeatsAreIdempotentAndChangesRefused) {
  pb::Definitions definitions;
  *definitions.add_definitions() = GoodDefinition(1);
  DefinitionResult first = CheckDefinitions(definitions, {}, {});
  RefTable refs;
  refs[1] = first.fresh[0].ref;
  EXPECT_TRUE(CheckDefinitions(definitions, {}, refs).fresh.empty());
  EXPECT_TRUE(CheckDefinitions(definitions, {}, refs).refused.empty());
  definitions.mutable_definitions(0)->set_name("gpu_free_memory");
  const DefinitionResult changed = CheckDefinitions(definitions, {}, refs);
  ASSERT_EQ(changed.refused.size(), 1U);
  EXPECT_EQ(changed.refused[0].complaint.reason, "REF_REDEFINED");
  EXPECT_EQ(changed.refused[0].number, 0U) << "the first meaning stays";
}

TEST(DefinitionCheckTest, LabelBombsAreRefused) {
  pb::Definitions definitions;
  *definitions.add_definitions() = GoodDefinition(1);
  for (int i = 0; i < 100; ++i) {
    (*definitions.mutable_definitions(0)->mutable_labels())[absl::StrCat("l", i)] = "v";
  }
  const DefinitionResult result = CheckDefinitions(definitions, {}, {});
  ASSERT_EQ(result.refused.size(), 1U);
  EXPECT_EQ(result.refused[0].complaint.reason, "LABEL_COUNT");
  EXPECT_EQ(result.refused[0].complaint.message,
            "definitions[0].labels has 100 entries, allowed are at most 32");
}

TEST(DefinitionCheckTest, AWriterHasSoManySeries) {
  RefTable refs;
  for (std::uint32_t ref = 1; ref <= kSeriesPerWriterMax; ++ref) refs[ref] = {};
  pb::Definitions definitions;
  *definitions.add_definitions() = GoodDefinition(kSeriesPerWriterMax + 1);
  const DefinitionResult result = CheckDefinitions(definitions, {}, refs);
  ASSERT_EQ(result.refused.size(), 1U);
  EXPECT_EQ(result.refused[0].complaint.reason, "WRITER_SERIES_LIMIT");
}

TEST(MalformedTest, NamesTheFieldThatIsNotUtf8) {
  // Built by hand, since protobuf refuses to write it: definitions{writer, definitions{name}}.
  const std::string writer = Uuid::Random().ToBytes();
  const std::string name = "\x22\x01\xFF";  // field 4, one byte
  const std::string definition = absl::StrCat("\x12", std::string(1, '\x03'), name);
  const std::string inner = absl::StrCat("\x0A\x10", writer, definition);
  const std::string message =
      absl::StrCat("\x12", std::string(1, static_cast<char>(inner.size())), inner);
  pb::StreamChunksRequest parsed;
  ASSERT_FALSE(parsed.ParseFromString(message));
  const MalformedMessage found = DescribeMalformed(message);
  EXPECT_EQ(found.complaint.reason, "INVALID_UTF8");
  EXPECT_EQ(found.complaint.message, "definitions.definitions.name is not valid UTF-8");
  EXPECT_EQ(found.writer, writer);
}

TEST(MalformedTest, SaysThatBytesAreNoMessage) {
  const MalformedMessage found = DescribeMalformed("\xFF\xFF");
  EXPECT_EQ(found.complaint.reason, "MALFORMED");
  EXPECT_TRUE(found.writer.empty());
}

}  // namespace
}  // namespace stepwell
