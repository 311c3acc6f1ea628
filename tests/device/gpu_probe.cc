// gpu_probe SECONDS: what the agent's GPU sensors read on this machine, once a second: a line of
// JSON per tick with samples and absences, and at the end what a tick cost.
#include <time.h>

#include <cstdlib>
#include <iostream>
#include <map>

#include "client/agent/sensors/nvml_finder.h"
#include "client/agent/sensors/sensor_set.h"

namespace {

using stepwell::agent::Absence;
using stepwell::agent::Cadence;
using stepwell::agent::Reading;
using stepwell::agent::SensedSample;

double ProcessorMs() {
  timespec spent{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &spent);
  return static_cast<double>(spent.tv_sec) * 1e3 + static_cast<double>(spent.tv_nsec) * 1e-6;
}

// Texts of the library and of this program: quotes and backslashes alone need care.
std::string Quoted(const std::string& text) {
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') quoted += '\\';
    quoted += c;
  }
  return quoted + "\"";
}

void Print(const Reading& reading) {
  std::cout.precision(15);
  std::cout << "{\"samples\": [";
  const char* separator = "";
  for (const SensedSample& sample : reading.samples()) {
    std::cout << separator << "{\"name\": " << Quoted(sample.series->name)
              << ", \"unit\": " << Quoted(sample.series->unit) << ", \"value\": " << sample.value;
    for (const auto& [label, value] : sample.series->labels) {
      std::cout << ", " << Quoted(label) << ": " << Quoted(value);
    }
    std::cout << "}";
    separator = ", ";
  }
  std::cout << "], \"absences\": [";
  separator = "";
  for (const Absence& absence : reading.absences()) {
    std::cout << separator << Quoted(absence.reason);
    separator = ", ";
  }
  std::cout << "]}" << std::endl;
}

}  // namespace

int main(int argc, char** argv) {
  const int seconds = argc > 1 ? std::max(2, std::atoi(argv[1])) : 10;
  stepwell::agent::SensorSet set({.first_look_patience = absl::Seconds(30)},
                                 stepwell::RealClock::Get());
  set.AddFinder(std::make_unique<stepwell::agent::NvmlFinder>(
      stepwell::agent::NvmlLibrary::PathToLoad(), stepwell::agent::KernelText("/"),
      stepwell::RealClock::Get()));
  const auto selection = std::make_shared<stepwell::agent::SensorSelection>();
  Print(set.Read(Cadence::kFast, selection));
  const double before_ms = ProcessorMs();
  const absl::Duration began = stepwell::RealClock::Get().Monotonic();
  absl::Duration reading_time;
  for (int second = 1; second < seconds; ++second) {
    absl::SleepFor(began + absl::Seconds(second) - stepwell::RealClock::Get().Monotonic());
    const absl::Duration started = stepwell::RealClock::Get().Monotonic();
    const Reading reading = set.Read(Cadence::kFast, selection);
    reading_time += stepwell::RealClock::Get().Monotonic() - started;
    // What a slow device answered to the tick before: a line of its own.
    for (const stepwell::agent::PastReading& past : set.TakePast()) Print(past.reading);
    Print(reading);
  }
  const int ticks = seconds - 1;
  std::cout << "{\"tick_ms\": " << absl::ToDoubleMilliseconds(reading_time) / ticks
            << ", \"tick_processor_ms\": " << (ProcessorMs() - before_ms) / ticks << "}"
            << std::endl;
  return 0;
}
