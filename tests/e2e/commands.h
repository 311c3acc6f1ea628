// CommandsTest: what tests of subcommands share: samples that a real master holds, and `stepwell WORDS`
// asked for them. Header only.
#pragma once

#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "tests/e2e/spine.h"
#include "tests/support/child_process.h"

namespace stepwell::testing {

struct Ran {
  std::string ending;
  std::string output;
};

class CommandsTest : public SpineTest {
 protected:
  // `stepwell WORDS --server the master`; stdout and stderr together.
  Ran Command(std::vector<std::string> words, const std::string& server) {
    const std::string log = scratch_ / absl::StrCat("command", ++command_count_);
    words.insert(words.begin(), BuiltProgram("stepwell"));
    words.insert(words.end(), {"--server", server});
    ChildProcess child;
    child.Start(words, {}, log);
    Ran ran{.ending = child.Wait(absl::Seconds(30)), .output = {}};
    std::stringstream text;
    text << std::ifstream(log).rdbuf();
    ran.output = text.str();
    return ran;
  }
  Ran Command(std::vector<std::string> words) {
    return Command(std::move(words), master_->grpc_address());
  }

  // `count` samples 0, 1, 2, ... of one writer in chunks of 100, all acked.
  void Record(const std::string& trial, int count) {
    RawStream stream(*client_);
    const Uuid writer = Uuid::Random();
    Open(stream, writer, trial);
    std::uint64_t sequence = 0;
    for (int at = 0; at < count; at += 100) {
      std::vector<double> values;
      for (int i = at; i < at + 100; ++i) values.push_back(i);
      stream.Send(
          ChunkMessage(writer, ++sequence, OneColumn(1, start_us_ + at * 1000, 1000, values)));
    }
    ASSERT_TRUE(stream.WaitAck(writer, sequence).has_value()) << master_->LogTail();
  }

  const std::int64_t start_us_ = NowUs() - 60'000'000;
  int command_count_ = 0;
};

}  // namespace stepwell::testing
