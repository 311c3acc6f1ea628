#include "client/cli/top_screen.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <utility>

#include "base/check.h"

namespace stepwell::cli {
namespace {

// Alternate screen, no cursor, no wrapping of what is too long; and back, in reverse.
constexpr char kTakeOver[] = "\033[?1049h\033[?25l\033[?7l\033[2J";
constexpr char kGiveBack[] = "\033[?7h\033[?25h\033[?1049l";

// Where the handler writes; -1 while there is no screen.
std::atomic<int> signal_pipe{-1};

void OnSignal(int signal) {
  const int saved = errno;
  const char byte = static_cast<char>(signal);
  // Full only where signals by the thousand were not looked at: one more says nothing new.
  if (write(signal_pipe.load(), &byte, 1) < 0) errno = saved;
  errno = saved;
}

// Of the first key of `typed`: a character, or the sequence that an arrow sends. REQUIRES: not empty.
std::size_t KeyBytes(std::string_view typed) {
  if (typed.size() < 2 || typed[0] != '\033') return 1;
  if (typed[1] != '[' && typed[1] != 'O') return 2;  // Alt and a key
  std::size_t last = 2;
  while (last < typed.size() && (typed[last] < '@' || typed[last] > '~')) ++last;
  return std::min(last + 1, typed.size());
}

}  // namespace

bool TopScreen::CanShow(int out) {
  const char* term = std::getenv("TERM");
  return isatty(out) != 0 && term != nullptr && *term != '\0' && std::strcmp(term, "dumb") != 0;
}

TopScreen::TopScreen(int in, int out) : in_(in), out_(out) {
  STEPWELL_CHECK(pipe2(signals_, O_CLOEXEC | O_NONBLOCK) == 0);
  STEPWELL_CHECK(signal_pipe.exchange(signals_[1]) == -1);
  has_keys_ = tcgetattr(in_, &before_) == 0;
  for (std::size_t i = 0; i < kSignals.size(); ++i) {
    struct sigaction action {};
    action.sa_handler = OnSignal;
    sigemptyset(&action.sa_mask);
    sigaction(kSignals[i], &action, &actions_before_[i]);
  }
  Enter();
}

TopScreen::~TopScreen() {
  Leave();
  for (std::size_t i = 0; i < kSignals.size(); ++i) {
    sigaction(kSignals[i], &actions_before_[i], nullptr);
  }
  signal_pipe.store(-1);
  close(signals_[0]);
  close(signals_[1]);
}

void TopScreen::Enter() {
  if (has_keys_) {
    termios keys = before_;
    // Ctrl-C and Ctrl-Z stay signals, which reach a whole pipeline.
    keys.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
    keys.c_cc[VMIN] = 1;
    keys.c_cc[VTIME] = 0;
    tcsetattr(in_, TCSADRAIN, &keys);
  }
  Write(kTakeOver);
  entered_ = true;
}

void TopScreen::Leave() {
  if (!entered_) return;
  entered_ = false;
  // A terminal held by Ctrl-S would keep what gives it back.
  tcflow(out_, TCOON);
  Write(kGiveBack);
  if (has_keys_) tcsetattr(in_, TCSAFLUSH, &before_);
}

TopScreen::Size TopScreen::SizeOf(int out) {
  Size size;
  winsize window{};
  if (ioctl(out, TIOCGWINSZ, &window) == 0 && window.ws_col > 0 && window.ws_row > 0) {
    size.columns = window.ws_col;
    size.rows = window.ws_row;
  }
  return size;
}

void TopScreen::Draw(const std::vector<std::string>& lines) {
  std::string bytes = "\033[H";
  for (std::size_t i = 0; i < lines.size(); ++i) {
    // No line feed behind the last: it would scroll a full screen.
    if (i > 0) bytes += "\r\n";
    bytes += lines[i] + "\033[K";
  }
  Write(bytes + "\033[J");
}

// A signal ends it: what is left of a frame is worth less than an answer.
void TopScreen::Write(const std::string& bytes) const {
  for (std::size_t at = 0; at < bytes.size();) {
    const ssize_t written = write(out_, bytes.data() + at, bytes.size() - at);
    if (written <= 0) return;
    at += static_cast<std::size_t>(written);
  }
}

TopScreen::Event TopScreen::TakeSignal() {
  char byte = 0;
  if (read(signals_[0], &byte, 1) != 1) return Event::kWoken;
  switch (byte) {
    case SIGWINCH:
      return Event::kRedraw;
    case SIGTSTP:
      Leave();
      raise(SIGSTOP);
      Enter();
      return Event::kRedraw;
    default:
      return Event::kQuit;
  }
}

bool TopScreen::ReadKeys() {
  char bytes[64];
  const ssize_t count = read(in_, bytes, sizeof(bytes));
  if (count > 0) typed_.append(bytes, static_cast<std::size_t>(count));
  return count > 0 || (count < 0 && (errno == EINTR || errno == EAGAIN));
}

TopScreen::Event TopScreen::TakeKey() {
  static constexpr std::pair<std::string_view, Event> kKeys[] = {
      {"q", Event::kQuit},           {"Q", Event::kQuit},
      {"\004", Event::kQuit},  // Ctrl-D
      {"a", Event::kToggleAll},      {"k", Event::kUp},
      {"\033[A", Event::kUp},        {"\033OA", Event::kUp},
      {"j", Event::kDown},           {"\033[B", Event::kDown},
      {"\033OB", Event::kDown},      {"b", Event::kPageUp},
      {"\033[5~", Event::kPageUp},   {" ", Event::kPageDown},
      {"\033[6~", Event::kPageDown},
  };
  const std::string key = typed_.substr(0, KeyBytes(typed_));
  typed_.erase(0, key.size());
  for (const auto& [bytes, event] : kKeys) {
    if (key == bytes) return event;
  }
  return Event::kWoken;
}

TopScreen::Event TopScreen::Wait(int wake_fd) {
  // Several keys may have come at once.
  while (!typed_.empty()) {
    if (const Event event = TakeKey(); event != Event::kWoken) return event;
  }
  while (true) {
    pollfd watched[] = {{signals_[0], POLLIN, 0},
                        {has_keys_ ? in_ : -1, POLLIN, 0},
                        {wake_fd, POLLIN, 0},
                        // Only for its end.
                        {out_, 0, 0}};
    if (poll(watched, 4, -1) < 0 && errno != EINTR) return Event::kQuit;
    if (watched[0].revents != 0) {
      if (const Event event = TakeSignal(); event != Event::kWoken) return event;
    }
    if ((watched[3].revents & (POLLERR | POLLHUP | POLLNVAL)) != 0) return Event::kQuit;
    if (watched[1].revents != 0 && !ReadKeys()) return Event::kQuit;
    while (!typed_.empty()) {
      if (const Event event = TakeKey(); event != Event::kWoken) return event;
    }
    if (watched[2].revents != 0) return Event::kWoken;
  }
}

}  // namespace stepwell::cli
