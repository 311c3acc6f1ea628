#include "client/demo/options.h"

#include <charconv>
#include <functional>
#include <map>

namespace stepwell::demo {
namespace {

// Says what is wrong with a value, empty if nothing is.
using Take = std::function<std::string(const std::string&)>;

template <typename Number>
Take InRange(Number& target, Number low, Number high, const char* allowed) {
  return [&target, low, high, allowed](const std::string& text) -> std::string {
    Number number{};
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc() || end != text.data() + text.size() || !(number >= low) ||
        !(number <= high)) {
      return std::string("is not ") + allowed;
    }
    target = number;
    return "";
  };
}

Take Text(std::string& target) {
  return [&target](const std::string& text) -> std::string {
    if (text.empty()) return "is empty";
    target = text;
    return "";
  };
}

std::map<std::string, Take> Valued(Options& options, bool& has_seconds) {
  const Take seconds = InRange(options.seconds, 0.1, 1e6, "a number of 0.1 ... 1000000");
  return {
      {"--data", Text(options.data)},
      {"--held-out",
       [&options](const std::string& text) -> std::string {
         options.held_outs.push_back(text);
         return text.empty() ? "is empty" : "";
       }},
      {"--steps",
       InRange<std::int64_t>(options.steps, 1, 1'000'000'000, "a count of 1 ... 1000000000")},
      {"--seconds",
       [seconds, &has_seconds](const std::string& text) {
         has_seconds = true;
         return seconds(text);
       }},
      {"--ranks", InRange(options.ranks, 1, 64, "a count of 1 ... 64")},
      {"--batch-size", InRange(options.batch_size, 8, 4096, "a count of 8 ... 4096")},
      {"--slow-loader",
       InRange(options.slow_loader_ms, 0.0, 60'000.0, "a number of milliseconds of 0 ... 60000")},
      {"--seed", InRange<std::uint64_t>(options.seed, 0, ~std::uint64_t{0}, "a number")},
      {"--trial", Text(options.trial)},
      {"--exit-wait", InRange(options.exit_wait_s, 0.0, 3600.0, "a number of 0 ... 3600")},
  };
}

}  // namespace

const char kHelp[] =
    R"(stepwell-demo trains a small language model on the text files of a directory, and records
where the time of its steps goes. It predicts each byte from the 12 before it.

Usage: stepwell-demo [options]
  --data DIR          text to learn from (default: the source tree this was built from, else .)
  --held-out FILE     kept from training, measured at the end; may be repeated
                      (default: one file in ten; of a single file its last tenth)
  --seconds S         how long to train (default 20, or no limit with --steps)
  --steps N           how many steps to train (default: no limit)
  --ranks N           data-parallel processes, which reduce gradients over shared memory (default 1)
  --batch-size N      bytes predicted per step and rank (default 128)
  --slow-loader MS    makes every batch take that much longer to load
  --seed N            of weights and batches (default 4711)
  --trial NAME        name of the trial (default: STEPWELL_TRIAL, else demo-TIME)
  --exit-wait S       how long the end may wait until the master holds everything
                      (default STEPWELL_EXIT_WAIT, else 5)
  --check             exit 1 unless the held-out loss is below a byte-bigram baseline
  --json              print the result as one JSON object
  --quiet             no progress on stderr
  --help

It records as any program with Stepwell's library: it starts an agent where none runs, which ships to
STEPWELL_SERVER (default 127.0.0.1:7817). STEPWELL_OFFLINE=1 keeps it here, STEPWELL_DISABLED=1 records
nothing.

Examples:
  stepwell-demo --seconds 20 --check
  STEPWELL_SERVER=node1:7817 stepwell-demo --trial mine --ranks 2
  stepwell-demo --slow-loader 20 --steps 200        # an input-bound training: see the report

Exit: 0 trained (and with --check below the baseline), 1 not below it or a rank failed,
      64 wrong use, 66 no text to learn from.
)";

ParsedOptions ParseOptions(std::span<const std::string> arguments) {
  ParsedOptions parsed;
  Options& options = parsed.options;
  bool has_seconds = false;
  const std::map<std::string, Take> valued = Valued(options, has_seconds);
  const std::map<std::string, bool*> switches = {{"--json", &options.is_json},
                                                 {"--quiet", &options.is_quiet},
                                                 {"--check", &options.is_checked},
                                                 {"--help", &options.wants_help},
                                                 {"-h", &options.wants_help}};
  for (std::size_t i = 0; i < arguments.size() && parsed.error.empty(); ++i) {
    const std::string& argument = arguments[i];
    const std::size_t equals = argument.find('=');
    const std::string name = argument.substr(0, equals);
    if (const auto found = switches.find(argument); found != switches.end()) {
      *found->second = true;
    } else if (const auto taker = valued.find(name); taker == valued.end()) {
      parsed.error = "unknown argument '" + argument + "'; see --help";
    } else if (equals == std::string::npos && i + 1 == arguments.size()) {
      parsed.error = name + " needs a value";
    } else {
      const std::string value =
          equals == std::string::npos ? arguments[++i] : argument.substr(equals + 1);
      if (const std::string wrong = taker->second(value); !wrong.empty()) {
        parsed.error = name;
        parsed.error.append(": '").append(value).append("' ").append(wrong);
      }
    }
  }
  if (options.steps > 0 && !has_seconds) options.seconds = 0;
  return parsed;
}

}  // namespace stepwell::demo
