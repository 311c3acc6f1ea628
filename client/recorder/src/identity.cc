#include "client/recorder/src/identity.h"

#include <sys/random.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>

#include "client/recorder/include/stepwell/recorder.h"
#include "client/recorder/src/exit_wait.h"
#include "client/recorder/src/json_text.h"
#include "client/recorder/src/placement.h"
#include "client/recorder/src/spool_format.h"

namespace stepwell::recorder {
namespace {

std::int32_t Number(const Environment& environment, const char* name, std::int32_t otherwise) {
  const std::string text = ReadVariable(environment, name);
  if (text.empty() || text.size() > 9) return otherwise;
  if (text.find_first_not_of("0123456789") != std::string::npos) return otherwise;
  return std::atoi(text.c_str());
}

std::string DayOf(std::int64_t time_us) {
  const std::time_t seconds = static_cast<std::time_t>(time_us / 1'000'000);
  std::tm parts{};
  gmtime_r(&seconds, &parts);
  char text[16];
  std::strftime(text, sizeof(text), "%Y-%m-%d", &parts);
  return text;
}

// What all ranks of one job share; empty for a lone process.
std::string JobOf(const Environment& environment, std::int64_t time_us) {
  std::string elastic = ReadVariable(environment, "TORCHELASTIC_RUN_ID");
  if (!elastic.empty() && elastic != "none") return elastic;
  const std::string slurm = ReadVariable(environment, "SLURM_JOB_ID");
  if (!slurm.empty()) {
    const std::string step = ReadVariable(environment, "SLURM_STEP_ID");
    return "slurm-" + slurm + (step.empty() ? "" : "." + step);
  }
  const std::string address = ReadVariable(environment, "MASTER_ADDR");
  if (address.empty()) return "";
  return address + ":" + ReadVariable(environment, "MASTER_PORT") + "-" + DayOf(time_us);
}

std::string AttemptOf(const std::string& job, const Environment& environment) {
  const std::string elastic = ReadVariable(environment, "TORCHELASTIC_RESTART_COUNT");
  const std::string slurm = ReadVariable(environment, "SLURM_RESTART_COUNT");
  return job + "#" + (!elastic.empty() ? elastic : !slurm.empty() ? slurm : "0");
}

void TakeIfEmpty(std::string& wish, const std::string& found) {
  if (wish.empty()) wish = found;
}

// "TOKEN PROJECT/TRIAL", or "TOKEN id:7": of that trial, and of no other that somebody names meanwhile. Without a name it is that
// of the trial that the environment names. Not STEPWELL_TOKEN: that opens a master to everybody who has it, and this is written down.
void TakeTokenOfTrial(Identity& wishes, const Environment& environment) {
  std::string token = ReadVariable(environment, "STEPWELL_TRIAL_TOKEN");
  if (!wishes.token.empty() || token.empty()) return;
  const std::string named = wishes.project + "/" + wishes.trial;
  const std::size_t space = token.find(' ');
  if (space != std::string::npos) {
    const std::string whose = token.substr(space + 1);
    const bool is_number = whose.rfind("id:", 0) == 0;
    if (whose != (is_number ? wishes.trial : named)) return;
    token.resize(space);
  } else {
    std::string project = ReadVariable(environment, "STEPWELL_PROJECT");
    TakeIfEmpty(project, "default");
    if (named != project + "/" + ReadVariable(environment, "STEPWELL_TRIAL")) return;
  }
  wishes.token = std::move(token);
  wishes.renews_token = !wishes.token.empty();
}

std::string ToJson(const std::map<std::string, std::string>& labels) {
  std::string json = "{";
  for (const auto& [name, value] : labels) {
    if (json.size() > 1) json += ", ";
    json += Quoted(name) + ": " + Quoted(value);
  }
  return json + "}";
}

// As the agent takes them (client/agent/writer_identity.cc).
constexpr int kCycleStepsMin = 10;

// 0, which is none, or from `min` on.
int Count(const Environment& environment, const char* name, int min,
          std::vector<std::string>& remarks) {
  const std::string said = ReadVariable(environment, name);
  const int count = Number(environment, name, said.empty() ? 0 : -1);
  if (count == 0 || count >= std::max(min, 1)) return count;
  const int taken = count > 0 ? min : 0;
  remarks.push_back(std::string(name) + " is '" + said + "': allowed: 0" +
                    (min > 0 ? ", or " + std::to_string(min) + " and more" : " and more") +
                    "; taken: " + std::to_string(taken));
  return taken;
}

}  // namespace

Identity ResolveIdentity(Identity wishes, const Environment& environment,
                         std::vector<std::string>& remarks) {
  if (IsSwitchedOn(environment, "STEPWELL_OFFLINE")) wishes.server = spool::kServerOffline;
  TakeIfEmpty(wishes.server, ReadVariable(environment, "STEPWELL_SERVER"));
  TakeIfEmpty(wishes.project, ReadVariable(environment, "STEPWELL_PROJECT"));
  TakeIfEmpty(wishes.project, "default");
  if (wishes.rank < 0) {
    wishes.rank = Number(environment, "RANK", Number(environment, "SLURM_PROCID", -1));
  }
  const bool is_alone = wishes.rank < 0;
  wishes.rank = std::max(wishes.rank, 0);
  if (wishes.world_size < 1) {
    wishes.world_size =
        Number(environment, "WORLD_SIZE", Number(environment, "SLURM_NTASKS", is_alone ? 1 : 0));
  }
  // What cannot be is unknown: a master refuses a rank beyond its world, and the samples with it.
  if (wishes.world_size <= wishes.rank) wishes.world_size = is_alone ? 1 : 0;
  const std::string job = JobOf(environment, wishes.opened_time_us);
  TakeIfEmpty(wishes.trial, ReadVariable(environment, "STEPWELL_TRIAL"));
  TakeIfEmpty(wishes.trial, job);
  TakeIfEmpty(wishes.trial, wishes.writer);
  TakeTokenOfTrial(wishes, environment);
  TakeIfEmpty(wishes.attempt_key, ReadVariable(environment, "STEPWELL_ATTEMPT_KEY"));
  if (!job.empty()) TakeIfEmpty(wishes.attempt_key, AttemptOf(job, environment));
  TakeIfEmpty(wishes.attempt_key, wishes.writer);
  wishes.placement = PlacementOf(environment);
  wishes.sampling = ResolveSampling(std::move(wishes.sampling), environment, remarks);
  TakeIfEmpty(wishes.tracing.directory, ReadVariable(environment, "STEPWELL_TRACES"));
  if (!wishes.tracing.directory.empty() && wishes.tracing.directory.front() != '/') {
    remarks.push_back("STEPWELL_TRACES is '" + wishes.tracing.directory +
                      "': it must be an absolute path; no trace is recorded");
    wishes.tracing.directory.clear();
  }
  wishes.tracing.kept_max = Count(environment, "STEPWELL_TRACES_KEEP", 0, remarks);
  const std::string uploads = ReadVariable(environment, "STEPWELL_TRACES_UPLOAD");
  wishes.tracing.uploads = uploads != "0";
  if (!uploads.empty() && uploads != "0" && uploads != "1") {
    remarks.push_back("STEPWELL_TRACES_UPLOAD is '" + uploads + "': allowed: 0, 1; taken: 1");
  }
  wishes.tracing.cycle_steps = Count(environment, "STEPWELL_TRACES_STEPS", kCycleStepsMin, remarks);
  if (std::string remark = ExitWaitRemark(environment); !remark.empty()) {
    remarks.push_back(std::move(remark));
  }
  return wishes;
}

std::string ToJson(const Identity& identity) {
  std::string json = "{\"format\": " + std::to_string(spool::kFormatVersion);
  json += ", \"writer\": " + Quoted(identity.writer);
  json += ", \"server\": " + Quoted(identity.server);
  json += ", \"project\": " + Quoted(identity.project);
  json += ", \"trial\": " + Quoted(identity.trial);
  json += ", \"attempt_key\": " + Quoted(identity.attempt_key);
  json += ", \"rank\": " + std::to_string(identity.rank);
  json += ", \"world_size\": " + std::to_string(identity.world_size);
  json += ", \"token\": " + Quoted(identity.token);
  json += std::string(", \"renews_token\": ") + (identity.renews_token ? "true" : "false");
  json += ", \"boot_id\": " + Quoted(identity.boot_id);
  json += ", \"labels\": " + ToJson(identity.labels);
  json += ", \"placement\": " + ToJson(identity.placement);
  json += ", \"rings\": " + Quoted(identity.rings);
  json += ", \"path\": " + Quoted(identity.path);
  json += ", \"pid\": " + std::to_string(identity.pid);
  json += ", \"recorder_version\": " + Quoted(STEPWELL_VERSION);
  json += ", \"opened_time_us\": " + std::to_string(identity.opened_time_us);
  json += ", \"opened_monotonic_ns\": " + std::to_string(identity.opened_monotonic_ns);
  json += ", \"sampling\": " + ToJson(identity.sampling);
  json += ", \"tracing\": {\"directory\": " + Quoted(identity.tracing.directory);
  json += ", \"kept_max\": " + std::to_string(identity.tracing.kept_max);
  json += std::string(", \"uploads\": ") + (identity.tracing.uploads ? "true" : "false");
  json += ", \"cycle_steps\": " + std::to_string(identity.tracing.cycle_steps) + "}";
  return json + "}\n";
}

std::string NewUuid() {
  std::array<unsigned char, 16> bytes{};
  if (getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size())) return "";
  bytes[6] = static_cast<unsigned char>((bytes[6] & 0x0f) | 0x40);
  bytes[8] = static_cast<unsigned char>((bytes[8] & 0x3f) | 0x80);
  std::string text;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    char hex[3];
    std::snprintf(hex, sizeof(hex), "%02x", bytes[i]);
    text += hex;
  }
  return text;
}

std::string ReadBootId() {
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string line;
  std::getline(file, line);
  return line;
}

}  // namespace stepwell::recorder
