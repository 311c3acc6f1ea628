// TopScreen: a terminal taken over for a live view: its alternate screen, without cursor, keys
// without Enter; given back as it was on every way out that a program can see (a key, SIGINT,
// SIGTERM, SIGHUP, Ctrl-Z for the time of the stop). Confined to one thread; one at a time in a
// process, for signals have no owner.
//
//   TopScreen screen(STDIN_FILENO, STDOUT_FILENO);
//   while (true) {
//     screen.Draw(TopFrame(...));
//     switch (screen.Wait(wake_fd)) ...
//   }
#pragma once

#include <signal.h>
#include <termios.h>

#include <array>
#include <string>
#include <vector>

namespace stepwell::cli {

class TopScreen {
 public:
  // `out` is a terminal; `in` need not be one, then there are no keys.
  TopScreen(int in, int out);
  ~TopScreen();
  TopScreen(const TopScreen&) = delete;
  TopScreen& operator=(const TopScreen&) = delete;

  struct Size {
    int columns = 80;
    int rows = 24;
  };
  // As it is now; 80 x 24 where the terminal does not say.
  static Size SizeOf(int out);
  Size size() const { return SizeOf(out_); }
  // Shows `lines` from the top, nothing else. What the terminal does not take is left out.
  void Draw(const std::vector<std::string>& lines);

  enum class Event {
    kQuit,       // q, Ctrl-C, a signal to end, or the terminal is gone
    kToggleAll,  // a
    kUp,         // an arrow, or k
    kDown,       // an arrow, or j
    kPageUp,     // also b
    kPageDown,   // also the space bar
    kRedraw,     // another size, or back after a stop
    kWoken,      // wake_fd is readable
  };
  // Until something happens; keys without meaning are passed over.
  Event Wait(int wake_fd);

  // Whether `out` can be taken over: a terminal that knows the codes.
  static bool CanShow(int out);

 private:
  void Enter();
  void Leave();
  void Write(const std::string& bytes) const;
  Event TakeSignal();
  // Reads what was typed. False: there is nobody to type any more.
  bool ReadKeys();
  // The next key of it; kWoken = it means nothing.
  Event TakeKey();

  static constexpr std::array kSignals = {SIGINT, SIGTERM, SIGHUP, SIGWINCH, SIGTSTP};
  const int in_;
  const int out_;
  bool has_keys_ = false;
  std::string typed_;  // and not yet answered
  bool entered_ = false;
  termios before_ = {};
  std::array<struct sigaction, kSignals.size()> actions_before_ = {};
  int signals_[2] = {-1, -1};  // written by the handler, read by Wait
};

}  // namespace stepwell::cli
