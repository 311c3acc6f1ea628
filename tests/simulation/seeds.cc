#include "tests/simulation/seeds.h"

#include <signal.h>
#include <unistd.h>

#include <cstdlib>
#include <iostream>
#include <random>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/log.h"

namespace stepwell::simulation {
namespace {

constexpr std::size_t kLinesShown = 400;

char running[80];  // what a dying process says

std::string Command(std::uint64_t seed) {
  return absl::StrCat("STEPWELL_TEST_SEED=", seed,
                      " build/release/bin/simulation_tests --gtest_filter='*OneSeedGivesOneRun'");
}

void TellSeed(int signal) {
  [[maybe_unused]] const ssize_t told = write(STDERR_FILENO, running, sizeof(running));
  ::signal(signal, SIG_DFL);
  raise(signal);
}

void PrepareSeed(std::uint64_t seed) {
  log::Setup({.level = log::Level::kError});
  const std::string text = absl::StrCat("\nin seed ", seed, "\n");
  std::fill(std::begin(running), std::end(running), '\0');
  text.copy(running, sizeof(running) - 1);
  for (const int fatal : {SIGABRT, SIGSEGV}) signal(fatal, TellSeed);
}

}  // namespace

std::uint64_t FirstSeed() {
  const char* const given = std::getenv("STEPWELL_TEST_SEED");
  const std::uint64_t seed =
      given != nullptr ? std::strtoull(given, nullptr, 10) : std::random_device{}();
  std::cout << "STEPWELL_TEST_SEED=" << seed << std::endl;
  return seed;
}

Outcome RunSeed(std::uint64_t seed) {
  PrepareSeed(seed);
  return World(seed, /*trace_lines=*/0).Run();
}

std::string Repeat(std::uint64_t seed) {
  PrepareSeed(seed);
  const Outcome outcome = World(seed, kLinesShown).Run();
  return absl::StrCat("repeat with\n  ", Command(seed), "\nits last lines:\n",
                      absl::StrJoin(outcome.lines, "\n"), "\n", outcome.wrong, "\n");
}

}  // namespace stepwell::simulation
