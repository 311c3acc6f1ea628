// What a bench was asked for by its command line: flags alone, for a word that nobody looks at would measure another thing than was meant,
// for minutes. `--help` says what there is and ends the process with 0; a word that is no flag of this bench ends it with 64.
//
//   const AskedOptions asked("harm_bench", {{"--quick", "seconds, not minutes"}}, argc, argv);
//   Main(asked.Has("--quick"));
#pragma once

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <initializer_list>
#include <string_view>
#include <vector>

namespace stepwell::bench {

class AskedOptions {
 public:
  struct Flag {
    const char* name;
    const char* about;
  };
  // Of a bench that has no others.
  static constexpr Flag kQuick = {"--quick", "less of it, in seconds: for a look, not for a bar"};

  AskedOptions(const char* program, std::initializer_list<Flag> flags, int argc, char** argv)
      : words_(argv + 1, argv + argc) {
    for (const std::string_view word : words_) {
      if (word == "--help" || word == "-h") {
        Print(stdout, program, flags);
        std::exit(0);
      }
      const bool is_known = std::any_of(flags.begin(), flags.end(),
                                        [&](const Flag& flag) { return flag.name == word; });
      if (is_known) continue;
      std::fprintf(stderr, "%s: no option '%.*s'\n", program, static_cast<int>(word.size()),
                   word.data());
      Print(stderr, program, flags);
      std::exit(64);
    }
  }

  bool Has(std::string_view flag) const {
    return std::find(words_.begin(), words_.end(), flag) != words_.end();
  }

 private:
  static void Print(std::FILE* to, const char* program, std::initializer_list<Flag> flags) {
    std::fprintf(to, "usage: %s [options]; its results are lines of JSON\n", program);
    for (const Flag& flag : flags) std::fprintf(to, "  %-10s %s\n", flag.name, flag.about);
  }

  std::vector<std::string_view> words_;
};

}  // namespace stepwell::bench
