// The fuzzer of notes in a spool: build/fuzz/bin/notes_fuzz tests/fuzz/notes
#include <cstddef>
#include <cstdint>

#include "tests/fuzz/hostile_notes.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  stepwell::testing::ReadHostileNotes({reinterpret_cast<const char*>(data), size});
  return 0;
}
