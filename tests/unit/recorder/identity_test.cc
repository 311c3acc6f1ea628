#include "client/recorder/src/identity.h"

#include <gtest/gtest.h>

namespace stepwell::recorder {
namespace {

using Variables = std::map<std::string, std::string>;

Identity Resolve(Identity wishes, const Variables& variables) {
  wishes.writer = "writer-uuid";
  wishes.opened_time_us = 1'700'000'000'000'000;  // 2023-11-14
  std::vector<std::string> remarks;
  const Identity identity = ResolveIdentity(
      std::move(wishes),
      [&variables](const char* name) {
        const auto found = variables.find(name);
        return found == variables.end() ? nullptr : found->second.c_str();
      },
      remarks);
  EXPECT_TRUE(remarks.empty()) << remarks.front();
  return identity;
}

TEST(IdentityTest, AgentRule12_FindsTrialAndAttempt) {
  const struct {
    const char* name;
    Variables variables;
    std::string trial;
    std::string attempt_key;
  } rows[] = {
      {"a lone process", {}, "writer-uuid", "writer-uuid"},
      {"named", {{"STEPWELL_TRIAL", "id:7"}}, "id:7", "writer-uuid"},
      {"elastic",
       {{"TORCHELASTIC_RUN_ID", "run"}, {"TORCHELASTIC_RESTART_COUNT", "2"}},
       "run",
       "run#2"},
      {"elastic without a name, under an address",
       {{"TORCHELASTIC_RUN_ID", "none"}, {"MASTER_ADDR", "node1"}, {"MASTER_PORT", "29500"}},
       "node1:29500-2023-11-14",
       "node1:29500-2023-11-14#0"},
      {"slurm step",
       {{"SLURM_JOB_ID", "55"}, {"SLURM_STEP_ID", "1"}, {"SLURM_RESTART_COUNT", "3"}},
       "slurm-55.1",
       "slurm-55.1#3"},
      {"slurm without a step", {{"SLURM_JOB_ID", "55"}}, "slurm-55", "slurm-55#0"},
      {"named within a job",
       {{"STEPWELL_TRIAL", "mine"}, {"SLURM_JOB_ID", "55"}},
       "mine",
       "slurm-55#0"},
      {"key given", {{"STEPWELL_ATTEMPT_KEY", "third"}}, "writer-uuid", "third"},
  };
  for (const auto& row : rows) {
    SCOPED_TRACE(row.name);
    const Identity identity = Resolve({}, row.variables);
    EXPECT_EQ(identity.trial, row.trial);
    EXPECT_EQ(identity.attempt_key, row.attempt_key);
    EXPECT_EQ(identity.project, "default");
  }
}

TEST(IdentityTest, SaysWhatItTakesOfATracingThatCannotBe) {
  const struct {
    const char* name;
    const char* value;
    const char* remark;  // "" = none
  } rows[] = {
      {"STEPWELL_TRACES_STEPS", "0", ""},
      {"STEPWELL_TRACES_STEPS", "10", ""},
      {"STEPWELL_TRACES_STEPS", "5",
       "STEPWELL_TRACES_STEPS is '5': allowed: 0, or 10 and more; taken: 10"},
      {"STEPWELL_TRACES_STEPS", "abc",
       "STEPWELL_TRACES_STEPS is 'abc': allowed: 0, or 10 and more; taken: 0"},
      {"STEPWELL_TRACES_KEEP", "3", ""},
      {"STEPWELL_TRACES_KEEP", "-3", "STEPWELL_TRACES_KEEP is '-3': allowed: 0 and more; taken: 0"},
      {"STEPWELL_TRACES_UPLOAD", "no", "STEPWELL_TRACES_UPLOAD is 'no': allowed: 0, 1; taken: 1"},
  };
  for (const auto& row : rows) {
    SCOPED_TRACE(row.value);
    std::vector<std::string> remarks;
    const Variables variables = {{row.name, row.value}};
    Identity wishes;
    wishes.writer = "writer-uuid";
    ResolveIdentity(
        std::move(wishes),
        [&variables](const char* name) {
          const auto found = variables.find(name);
          return found == variables.end() ? nullptr : found->second.c_str();
        },
        remarks);
    ASSERT_EQ(remarks.size(), *row.remark == '\0' ? 0U : 1U);
    if (!remarks.empty()) {
      EXPECT_EQ(remarks[0], row.remark);
    }
  }
}

TEST(IdentityTest, FindsRankAndWorldSize) {
  const struct {
    const char* name;
    Variables variables;
    std::int32_t rank, world_size;
  } rows[] = {
      {"nothing", {}, 0, 1},
      {"torchrun", {{"RANK", "3"}, {"WORLD_SIZE", "8"}}, 3, 8},
      {"slurm", {{"SLURM_PROCID", "2"}, {"SLURM_NTASKS", "4"}}, 2, 4},
      {"torchrun within slurm", {{"RANK", "5"}, {"SLURM_PROCID", "0"}}, 5, 0},
      {"a rank alone", {{"RANK", "3"}}, 3, 0},
      {"a rank beyond its world", {{"RANK", "3"}, {"WORLD_SIZE", "2"}}, 3, 0},
      {"not numbers", {{"RANK", "-1"}, {"WORLD_SIZE", "many"}}, 0, 1},
      {"absurd", {{"RANK", "99999999999"}, {"WORLD_SIZE", "0"}}, 0, 1},
  };
  for (const auto& row : rows) {
    SCOPED_TRACE(row.name);
    const Identity identity = Resolve({}, row.variables);
    EXPECT_EQ(identity.rank, row.rank);
    EXPECT_EQ(identity.world_size, row.world_size);
  }
}

TEST(IdentityTest, WishesWin) {
  Identity wishes;
  wishes.trial = "mine";
  wishes.server = "here:1";
  wishes.rank = 0;
  const Identity identity = Resolve(
      wishes, {{"STEPWELL_TRIAL", "theirs"}, {"STEPWELL_SERVER", "there:2"}, {"RANK", "9"}});
  EXPECT_EQ(identity.trial, "mine");
  EXPECT_EQ(identity.server, "here:1");
  EXPECT_EQ(identity.rank, 0);
}

TEST(IdentityTest, AgentRule04_IsWrittenAsJson) {
  Identity identity = Resolve({}, {});
  identity.trial = "a \"quoted\" \\ name\n";
  identity.labels = {{"team", "vision"}, {"site", "b"}};
  identity.placement = {{"pod", "p-0"}};
  identity.rings = "/dev/shm/r";
  identity.path = "/spools/f1/w";
  identity.pid = 12;
  EXPECT_EQ(ToJson(identity),
            "{\"format\": 1, \"writer\": \"writer-uuid\", \"server\": \"\", \"project\": "
            "\"default\", \"trial\": \"a \\\"quoted\\\" \\\\ name\\u000a\", \"attempt_key\": "
            "\"writer-uuid\", \"rank\": 0, \"world_size\": 1, \"token\": \"\", \"renews_token\": "
            "false, \"boot_id\": \"\", \"labels\": {\"site\": \"b\", \"team\": \"vision\"}, "
            "\"placement\": {\"pod\": "
            "\"p-0\"}, \"rings\": \"/dev/shm/r\", "
            "\"path\": \"/spools/f1/w\", \"pid\": 12, "
            "\"recorder_version\": \"0.1.0\", \"opened_time_us\": 1700000000000000, "
            "\"opened_monotonic_ns\": 0, \"sampling\": {\"on\": true, \"interval_us\": 0, "
            "\"groups\": [], \"without\": [], \"with\": []}, "
            "\"tracing\": {\"directory\": \"\", \"kept_max\": 0, \"uploads\": true, "
            "\"cycle_steps\": 0}}\n");
}

TEST(IdentityTest, ATokenOfATrialIsThatOfTheTrialThatTheEnvironmentNamesAlone) {
  const std::map<std::string, std::string> environment = {
      {"STEPWELL_TRIAL", "run"}, {"STEPWELL_PROJECT", "vision"}, {"STEPWELL_TRIAL_TOKEN", "its"}};
  Identity wishes;
  EXPECT_EQ(Resolve(wishes, environment).token, "its");
  EXPECT_TRUE(Resolve(wishes, environment).renews_token);
  wishes.trial = "another";
  EXPECT_EQ(Resolve(wishes, environment).token, "");
  EXPECT_FALSE(Resolve(wishes, environment).renews_token);
  wishes = {};
  wishes.project = "speech";
  EXPECT_EQ(Resolve(wishes, environment).token, "");
  wishes = {};
  wishes.token = "given";
  EXPECT_EQ(Resolve(wishes, environment).token, "given");
  EXPECT_FALSE(Resolve(wishes, environment).renews_token) << "it is shown as it is";
  EXPECT_EQ(Resolve({}, {{"STEPWELL_TRIAL", "run"}, {"STEPWELL_TRIAL_TOKEN", "its"}}).token, "its");
  EXPECT_EQ(Resolve({}, {{"STEPWELL_TRIAL", "run"}, {"STEPWELL_TOKEN", "wide"}}).token, "");
  EXPECT_EQ(Resolve({}, {{"SLURM_JOB_ID", "7"}, {"STEPWELL_TRIAL_TOKEN", "its"}}).token, "");
}

// As `stepwell run --trial-token` sets it: a program, or another run within it, may name another trial in the environment.
TEST(IdentityTest, ATokenThatNamesItsTrialIsNoOthersWhateverTheEnvironmentNames) {
  struct Row {
    const char* name;
    std::string token;
    std::map<std::string, std::string> environment;
    Identity wishes;
    std::string has;
  };
  Identity another;
  another.trial = "another";
  Identity its;
  its.trial = "run";
  its.project = "vision";
  const Row rows[] = {
      {"its own",
       "its vision/run",
       {{"STEPWELL_TRIAL", "run"}, {"STEPWELL_PROJECT", "vision"}},
       {},
       "its"},
      {"named by the program", "its vision/run", {}, its, "its"},
      {"another by the program", "its default/run", {{"STEPWELL_TRIAL", "run"}}, another, ""},
      {"another by the environment", "its default/run", {{"STEPWELL_TRIAL", "another"}}, {}, ""},
      {"another project",
       "its default/run",
       {{"STEPWELL_TRIAL", "run"}, {"STEPWELL_PROJECT", "vision"}},
       {},
       ""},
      {"a number",
       "its id:7",
       {{"STEPWELL_TRIAL", "id:7"}, {"STEPWELL_PROJECT", "vision"}},
       {},
       "its"},
      {"another number", "its id:7", {{"STEPWELL_TRIAL", "id:77"}}, {}, ""},
      {"blanks and slashes", "its default/a run/7", {{"STEPWELL_TRIAL", "a run/7"}}, {}, "its"},
      {"a name without a trial", "its ", {{"STEPWELL_TRIAL", "run"}}, {}, ""},
  };
  for (Row row : rows) {
    SCOPED_TRACE(row.name);
    row.environment["STEPWELL_TRIAL_TOKEN"] = row.token;
    const Identity identity = Resolve(row.wishes, row.environment);
    EXPECT_EQ(identity.token, row.has);
    EXPECT_EQ(identity.renews_token, !row.has.empty());
  }
}

TEST(IdentityTest, ThePodAndTheJobAreTheEnvironments) {
  struct Row {
    const char* name;
    std::map<std::string, std::string> environment;
    std::map<std::string, std::string> placement;
  };
  for (const Row& row : std::vector<Row>{
           {"neither", {{"HOSTNAME", "node-1"}}, {}},
           {"named", {{"POD_NAME", "p-0"}, {"HOSTNAME", "node-1"}}, {{"pod", "p-0"}}},
           {"by its host name",
            {{"KUBERNETES_SERVICE_HOST", "10.0.0.1"}, {"HOSTNAME", "p-0"}},
            {{"pod", "p-0"}}},
           {"with the node's network",
            {{"KUBERNETES_SERVICE_HOST", "10.0.0.1"}, {"HOSTNAME", "n"}, {"NODE_NAME", "n"}},
            {}},
           {"of Slurm", {{"SLURM_JOB_ID", "4711"}}, {{"slurm_job", "4711"}}}}) {
    EXPECT_EQ(Resolve({}, row.environment).placement, row.placement) << row.name;
  }
}

// A reader refuses a document that is no UTF-8, and all of the writer with it.
TEST(IdentityTest, VariablesThatAreNoTextDoNotSpoilTheDocument) {
  Identity identity = Resolve({}, {{"STEPWELL_TRIAL", "caf\xe9"}});
  identity.sampling.groups = {"\xff"};
  const std::string json = ToJson(identity);
  EXPECT_NE(json.find("\"trial\": \"caf?\""), std::string::npos) << json;
  EXPECT_NE(json.find("\"groups\": [\"?\"]"), std::string::npos) << json;
}

TEST(IdentityTest, OfflineHoldsForAllThatAPersonStarts) {
  Identity wishes;
  wishes.server = "here:1";
  EXPECT_EQ(Resolve(wishes, {{"STEPWELL_OFFLINE", "1"}}).server, "offline");
  EXPECT_EQ(Resolve(wishes, {{"STEPWELL_OFFLINE", "0"}}).server, "here:1");
  EXPECT_EQ(Resolve({}, {{"STEPWELL_OFFLINE", ""}, {"STEPWELL_SERVER", "there:2"}}).server,
            "there:2");
}

TEST(IdentityTest, UuidsAreOfVersionFourAndDiffer) {
  const std::string uuid = NewUuid();
  ASSERT_EQ(uuid.size(), 36u);
  EXPECT_EQ(uuid[14], '4');
  EXPECT_TRUE(std::string("89ab").find(uuid[19]) != std::string::npos) << uuid;
  EXPECT_NE(uuid, NewUuid());
}

}  // namespace
}  // namespace stepwell::recorder
