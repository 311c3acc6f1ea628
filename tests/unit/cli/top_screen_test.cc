// On a pseudo-terminal: what TopScreen writes is read at the other end.
#include "client/cli/top_screen.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <pty.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdlib>
#include <memory>

namespace stepwell::cli {
namespace {

class TopScreenTest : public ::testing::Test {
 protected:
  TopScreenTest() {
    const winsize window{.ws_row = 30, .ws_col = 100, .ws_xpixel = 0, .ws_ypixel = 0};
    EXPECT_EQ(openpty(&person_, &terminal_, nullptr, nullptr, &window), 0);
    EXPECT_EQ(fcntl(person_, F_SETFL, O_NONBLOCK), 0);
    EXPECT_EQ(tcgetattr(terminal_, &before_), 0);
  }
  ~TopScreenTest() override {
    close(person_);
    close(terminal_);
    close(wake_);
  }

  void Type(const std::string& keys) {
    ASSERT_EQ(write(person_, keys.data(), keys.size()), static_cast<ssize_t>(keys.size()));
  }
  // All that was shown since the last call.
  std::string Shown() {
    std::string shown;
    char bytes[4096];
    for (ssize_t got = 0; (got = read(person_, bytes, sizeof(bytes))) > 0;) {
      shown.append(bytes, static_cast<std::size_t>(got));
    }
    return shown;
  }
  bool Restored() const {
    termios now{};
    EXPECT_EQ(tcgetattr(terminal_, &now), 0);
    return now.c_lflag == before_.c_lflag && now.c_iflag == before_.c_iflag;
  }

  int person_ = -1;
  int terminal_ = -1;
  int wake_ = eventfd(0, EFD_NONBLOCK);
  termios before_ = {};
};

TEST_F(TopScreenTest, TakesTheScreenAndGivesItBack) {
  {
    TopScreen screen(terminal_, terminal_);
    EXPECT_EQ(Shown(), "\033[?1049h\033[?25l\033[?7l\033[2J");
    EXPECT_FALSE(Restored());
    screen.Draw({"one", "two"});
    // The terminal's driver adds a carriage return; another's may not.
    EXPECT_EQ(Shown(), "\033[Hone\033[K\r\r\ntwo\033[K\033[J");
  }
  EXPECT_EQ(Shown(), "\033[?7h\033[?25h\033[?1049l");
  EXPECT_TRUE(Restored());
}

TEST_F(TopScreenTest, AnswersKeys) {
  TopScreen screen(terminal_, terminal_);
  Type("zza");
  EXPECT_EQ(screen.Wait(wake_), TopScreen::Event::kToggleAll) << "others mean nothing";
  Type("q");
  EXPECT_EQ(screen.Wait(wake_), TopScreen::Event::kQuit);
  Type("\004");
  EXPECT_EQ(screen.Wait(wake_), TopScreen::Event::kQuit);
}

TEST_F(TopScreenTest, AnswersKeysThatSendSeveralBytes) {
  TopScreen screen(terminal_, terminal_);
  // F5 and Alt-q mean nothing, and what comes behind them is not lost.
  Type("\033[A\033OB\033[15~\033q\033[5~j \033");
  for (const TopScreen::Event event :
       {TopScreen::Event::kUp, TopScreen::Event::kDown, TopScreen::Event::kPageUp,
        TopScreen::Event::kDown, TopScreen::Event::kPageDown}) {
    EXPECT_EQ(screen.Wait(wake_), event);
  }
  Type("q");
  EXPECT_EQ(screen.Wait(wake_), TopScreen::Event::kQuit) << "Escape alone begins nothing";
}

TEST_F(TopScreenTest, AnswersSignalsAndNewSizes) {
  TopScreen screen(terminal_, terminal_);
  EXPECT_EQ(screen.size().columns, 100);
  EXPECT_EQ(screen.size().rows, 30);
  const winsize window{.ws_row = 20, .ws_col = 50, .ws_xpixel = 0, .ws_ypixel = 0};
  ASSERT_EQ(ioctl(person_, TIOCSWINSZ, &window), 0);
  // This process has another terminal: the kernel tells whoever has this one.
  raise(SIGWINCH);
  EXPECT_EQ(screen.Wait(wake_), TopScreen::Event::kRedraw);
  EXPECT_EQ(screen.size().columns, 50);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    raise(signal);
    EXPECT_EQ(screen.Wait(wake_), TopScreen::Event::kQuit) << signal;
  }
}

TEST_F(TopScreenTest, EndsWhereTheTerminalIsGone) {
  TopScreen screen(terminal_, terminal_);
  close(person_);
  EXPECT_EQ(screen.Wait(wake_), TopScreen::Event::kQuit);
  person_ = -1;
}

TEST_F(TopScreenTest, WakesForWhatIsNew) {
  TopScreen screen(terminal_, terminal_);
  ASSERT_EQ(eventfd_write(wake_, 1), 0);
  EXPECT_EQ(screen.Wait(wake_), TopScreen::Event::kWoken);
}

TEST_F(TopScreenTest, NeedsNoKeys) {
  const int nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);
  {
    TopScreen screen(nothing, terminal_);
    raise(SIGTERM);
    EXPECT_EQ(screen.Wait(wake_), TopScreen::Event::kQuit);
  }
  close(nothing);
}

TEST_F(TopScreenTest, KnowsWhatCanShow) {
  setenv("TERM", "xterm", 1);
  EXPECT_TRUE(TopScreen::CanShow(terminal_));
  EXPECT_FALSE(TopScreen::CanShow(wake_));
  setenv("TERM", "dumb", 1);
  EXPECT_FALSE(TopScreen::CanShow(terminal_));
  unsetenv("TERM");
  EXPECT_FALSE(TopScreen::CanShow(terminal_));
}

}  // namespace
}  // namespace stepwell::cli
