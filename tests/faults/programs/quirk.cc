#include "tests/faults/programs/quirk.h"

#include <cstdlib>
#include <iostream>
#include <iterator>
#include <limits>

#include "google/protobuf/unknown_field_set.h"

namespace stepwell::faults {
namespace {

// A message's bytes have a limit of 4 MiB.
constexpr std::size_t kTooManyBytes = (4 << 20) + 1;
constexpr std::size_t kLongLabelBytes = 100'000;
// One that a writer gives to nothing else.
constexpr std::uint32_t kWrongRef = 1000;

}  // namespace

Quirk QuirkNamed(const std::string& name) {
  constexpr const char* kNames[] = {"",          "repeats", "swaps",  "skips", "again",
                                    "elsewhere", "times",   "values", "wrong", "spoils"};
  for (std::size_t i = 0; i < std::size(kNames); ++i) {
    if (name == kNames[i]) return static_cast<Quirk>(i);
  }
  std::cerr << name << ": no such quirk\n";
  std::exit(64);
}

double ExtremeValue(std::int64_t number) {
  using Limits = std::numeric_limits<double>;
  constexpr double kValues[] = {Limits::quiet_NaN(),
                                Limits::infinity(),
                                -Limits::infinity(),
                                -0.0,
                                0.0,
                                Limits::denorm_min(),
                                -Limits::denorm_min(),
                                Limits::min(),
                                Limits::max(),
                                Limits::lowest(),
                                9007199254740993.0,
                                0.1};
  return kValues[static_cast<std::size_t>(number) % std::size(kValues)];
}

v1::StreamChunksRequest WrongMessage(const std::string& writer, int number) {
  v1::StreamChunksRequest message;
  v1::Definition definition;
  definition.set_ref(kWrongRef);
  definition.set_tick_group(1);
  definition.set_metric_group("faults");
  definition.set_name("wrong");
  switch (number % 5) {
    case 0:
      definition.set_name(std::string("a\0b", 3));
      break;
    case 1:
      definition.set_unit(std::string(kTooManyBytes, 'u'));
      break;
    case 2:
      // Protobuf writes no such text, but whatever is in a field that it does not know.
      definition.clear_name();
      definition.GetReflection()
          ->MutableUnknownFields(&definition)
          ->AddLengthDelimited(v1::Definition::kNameFieldNumber, "\xc3(");
      break;
    case 3:
      (*definition.mutable_labels())["l"] = std::string(kLongLabelBytes, 'v');
      break;
    default:
      return message;  // of no kind
  }
  message.mutable_definitions()->set_writer(writer);
  *message.mutable_definitions()->add_definitions() = definition;
  return message;
}

}  // namespace stepwell::faults
