// PtyChild: a program on a terminal of its own, as a person sees and drives it. Confined to one
// thread, the one that starts it.
//
//   PtyChild top({BuiltProgram("stepwell"), "top"}, {{"TERM", "xterm"}}, 80, 24);
//   ASSERT_TRUE(top.WaitFor("train_batch", absl::Seconds(20))) << top.shown();
//   top.Type("q");
//   EXPECT_EQ(top.Wait(absl::Seconds(10)), "exit 0");
#pragma once

#include <sys/types.h>
#include <termios.h>

#include <map>
#include <string>
#include <vector>

#include "absl/time/time.h"

namespace stepwell::testing {

class PtyChild {
 public:
  // `environment` is added to this process's own.
  PtyChild(const std::vector<std::string>& words,
           const std::map<std::string, std::string>& environment, int columns, int rows);
  // Kills.
  ~PtyChild();
  PtyChild(const PtyChild&) = delete;
  PtyChild& operator=(const PtyChild&) = delete;

  void Type(const std::string& keys);
  void Resize(int columns, int rows);
  void Signal(int signal) const;
  // Until the terminal was given `text` since the last Forget.
  bool WaitFor(const std::string& text, absl::Duration patience);
  // Until it ended: "exit 0", "killed by signal 9", or "still running".
  std::string Wait(absl::Duration patience);
  // All bytes that it was given since the last Forget.
  const std::string& shown() const { return shown_; }
  void Forget() { shown_.clear(); }
  // Lines are edited and keys echoed, as at the start.
  bool IsRestored() const;

 private:
  // False: nothing more will come.
  bool ReadSome(absl::Duration patience);

  pid_t pid_ = 0;
  int terminal_ = -1;
  int holder_ = -1;  // keeps the terminal's settings readable once the program has gone
  termios before_ = {};
  std::string shown_;
};

}  // namespace stepwell::testing
