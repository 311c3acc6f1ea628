// Bar: what a figure is held to, and whose word it is (bench/README.md, `promised`). A value.
//
//   PrintOurs("ingest.cpu", "ns", "master and PostgreSQL", Promised("<= 100"), runs);
#pragma once

#include <string>
#include <utility>

namespace stepwell::bench {

struct Bar {
  std::string text;
  bool promised = false;

  // As JSON has it.
  const char* promised_word() const { return promised ? "true" : "false"; }
};

// Stepwell promises it: a full run that misses it ends bench/run.sh with 1.
inline Bar Promised(std::string text) { return {std::move(text), true}; }
// It is told, and promised to nobody.
inline Bar OwnBar(std::string text) { return {std::move(text), false}; }

}  // namespace stepwell::bench
