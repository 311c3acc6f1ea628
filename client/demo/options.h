// Options of stepwell-demo: what the command line says.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace stepwell::demo {

struct Options {
  std::string data;                    // directory of text; empty = the project's own
  std::vector<std::string> held_outs;  // files kept from training; empty = one in ten
  std::int64_t steps = 0;              // 0 = no limit
  double seconds = 20;                 // of training; 0 = no limit
  int ranks = 1;
  int batch_size = 128;
  double slow_loader_ms = 0;
  std::uint64_t seed = 4711;
  std::string trial;        // empty = STEPWELL_TRIAL, else a new name
  double exit_wait_s = -1;  // negative = as the recorder has it
  bool is_json = false;
  bool is_quiet = false;
  bool is_checked = false;
  bool wants_help = false;
};

struct ParsedOptions {
  Options options;
  std::string error;  // empty = legal
};

// `arguments` without the program's name.
ParsedOptions ParseOptions(std::span<const std::string> arguments);

extern const char kHelp[];

}  // namespace stepwell::demo
