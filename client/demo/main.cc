// stepwell-demo: a real training that records itself. See --help.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <random>
#include <string>
#include <system_error>
#include <vector>

#include "client/demo/corpus.h"
#include "client/demo/held_out.h"
#include "client/demo/options.h"
#include "client/demo/rank_group.h"
#include "client/demo/result.h"
#include "client/demo/trainer.h"
#include "stepwell/stepwell.h"

namespace stepwell::demo {
namespace {

namespace fs = std::filesystem;

constexpr int kExitUsage = 64;
constexpr int kExitNoText = 66;
constexpr std::int64_t kHeldOutPlacesMax = 20'000;

// The source tree that holds this executable's build folder, else the working directory.
std::string DefaultData() {
  std::error_code error;
  fs::path folder = fs::read_symlink("/proc/self/exe", error).parent_path();
  for (; !error && folder.has_relative_path(); folder = folder.parent_path()) {
    if (fs::exists(folder / "proto" / "stepwell", error)) return folder.string();
  }
  return ".";
}

bool HasJobName() {
  for (const char* name :
       {"STEPWELL_TRIAL", "TORCHELASTIC_RUN_ID", "SLURM_JOB_ID", "MASTER_ADDR"}) {
    if (std::getenv(name) != nullptr) return true;
  }
  return false;
}

std::string NameByTime() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  gmtime_r(&now, &parts);
  char text[32];
  std::strftime(text, sizeof(text), "demo-%Y%m%d-%H%M%S", &parts);
  return text;
}

// What makes the ranks of one start one attempt; a lone rank is its own.
std::string AttemptKey(const Options& options) {
  if (options.ranks == 1 || std::getenv("STEPWELL_ATTEMPT_KEY") != nullptr) return "";
  std::random_device random;
  return "demo-" + std::to_string(std::uint64_t{random()} << 32 | random());
}

class Program {
 public:
  Program(Options options, Corpus corpus)
      : options_(std::move(options)),
        corpus_(std::move(corpus)),
        attempt_key_(AttemptKey(options_)),
        parameter_count_(ParameterCount(corpus_)) {}

  int Run() {
    const auto group = RankGroup::Make(options_.ranks, parameter_count_);
    if (group == nullptr) {
      std::fprintf(stderr, "stepwell-demo: no shared memory for %d ranks\n", options_.ranks);
      return 1;
    }
    return group->Run([&](int rank) { return RunRank(rank, *group); });
  }

 private:
  // Options that leave rank and world size to the launcher's environment unless we made the ranks.
  stepwell::Options RecorderOptions(int rank) const {
    stepwell::Options recorded;
    recorded.trial = options_.trial;
    recorded.attempt_key = attempt_key_;
    if (options_.ranks > 1) {
      recorded.rank = rank;
      recorded.world_size = options_.ranks;
    }
    return recorded;
  }

  int RunRank(int rank, RankGroup& group) {
    stepwell::Recorder recorder(RecorderOptions(rank));
    Trainer trainer(options_, corpus_, group, rank, recorder);
    const Trainer::Summary summary = trainer.Train();
    if (!summary.is_complete) {
      std::fprintf(stderr, "stepwell-demo: rank %d stops: another rank is gone\n", rank);
      return 1;
    }
    Result result;
    if (rank == 0) result = Measure(trainer, summary);
    result.dropped_count = recorder.dropped_count();
    result.is_recorded = recorder.state() == STEPWELL_RECORDING;
    result.recording_message = stepwell_message();  // with what came since the open
    result.is_stored = recorder.Close(ExitWait());
    return rank == 0 ? Show(result) : 0;
  }

  std::chrono::milliseconds ExitWait() const {
    if (options_.exit_wait_s < 0) return std::chrono::milliseconds(stepwell_exit_wait_ms());
    return std::chrono::milliseconds(std::llround(1000 * options_.exit_wait_s));
  }

  Result Measure(Trainer& trainer, const Trainer::Summary& summary) const {
    STEPWELL_SCOPE("validate");
    const HeldOut held_out(corpus_, kContext, kHeldOutPlacesMax);
    Result result;
    result.trial = options_.trial;
    if (const char* name = std::getenv("STEPWELL_TRIAL"); result.trial.empty() && name != nullptr) {
      result.trial = name;
    }
    result.ranks = options_.ranks;
    result.step_count = summary.step_count;
    result.seconds = summary.seconds;
    result.examples_per_second = summary.examples_per_second * options_.ranks;
    result.parameter_count = static_cast<std::int64_t>(parameter_count_);
    result.training_file_count = static_cast<std::int64_t>(corpus_.training().size());
    result.training_bytes = BytesOf(corpus_.training());
    result.held_out_file_count = static_cast<std::int64_t>(corpus_.held_out().size());
    result.held_out_place_count = held_out.place_count();
    result.training_loss = summary.loss;
    result.held_out_loss = held_out.LossOf(trainer.model());
    result.bigram_loss = held_out.LossOfBigram(corpus_);
    return result;
  }

  int Show(const Result& result) const {
    std::fputs((options_.is_json ? AsJson(result) : AsText(result)).c_str(), stdout);
    return options_.is_checked && !result.IsBelowBaseline() ? 1 : 0;
  }

  const Options options_;
  const Corpus corpus_;
  const std::string attempt_key_;
  const std::size_t parameter_count_;
};

int Main(const std::vector<std::string>& arguments) {
  ParsedOptions parsed = ParseOptions(arguments);
  if (!parsed.error.empty()) {
    std::fprintf(stderr, "stepwell-demo: %s\n", parsed.error.c_str());
    return kExitUsage;
  }
  Options& options = parsed.options;
  if (options.wants_help) {
    std::fputs(kHelp, stdout);
    return 0;
  }
  if (options.data.empty()) options.data = DefaultData();
  if (options.trial.empty() && !HasJobName()) options.trial = NameByTime();
  std::string error;
  std::optional<Corpus> corpus = Corpus::Find(options.data, options.held_outs, &error);
  if (!corpus) {
    std::fprintf(stderr, "stepwell-demo: %s\n", error.c_str());
    return kExitNoText;
  }
  return Program(std::move(options), *std::move(corpus)).Run();
}

}  // namespace
}  // namespace stepwell::demo

int main(int argc, char** argv) {
  return stepwell::demo::Main(std::vector<std::string>(argv + 1, argv + argc));
}
