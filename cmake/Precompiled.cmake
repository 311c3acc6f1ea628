# Headers that most tests read, parsed once for all of them: STEPWELL_PRECOMPILE, for builds that a sanitizer looks at. The
# presets dev and clang go without, and without batches, so that a file that lacks an include is red there. The libraries have none: what gcc
# 12 warns of within std::string once it optimises is silent in a system's header, and no longer so in a precompiled one.
set(headers
  <algorithm> <chrono> <functional> <iostream> <map> <memory> <optional> <set> <string> <utility> <vector>
  <absl/container/flat_hash_map.h> <absl/status/statusor.h> <absl/strings/str_cat.h> <absl/synchronization/mutex.h>
  <absl/time/time.h> <gmock/gmock.h> <gtest/gtest.h>)
if(STEPWELL_SANITIZE MATCHES thread)
  # Comes before all else there, and a precompiled header is the first that a file reads.
  list(PREPEND headers ${PROJECT_SOURCE_DIR}/cmake/tsan/protobuf_layout.inc)
  get_target_property(options stepwell_proto INTERFACE_COMPILE_OPTIONS)
  string(REGEX REPLACE "(SHELL:-include [^;]*protobuf_layout.inc)"
    "$<$<NOT:$<BOOL:$<TARGET_PROPERTY:STEPWELL_PRECOMPILED>>>:\\1>" options "${options}")
  set_target_properties(stepwell_proto PROPERTIES INTERFACE_COMPILE_OPTIONS "${options}")
endif()

# As in the release, tests themselves are not optimised; simulations, which count thousands of runs, stay as they are.
get_property(tests GLOBAL PROPERTY STEPWELL_TESTS)
list(FILTER tests EXCLUDE REGEX simulation)

# Compiled as the tests are, but for the checks of ubsan that most of them leave out, and nothing that anybody runs.
file(CONFIGURE OUTPUT precompiled.cc CONTENT "int main() { return 0; }\n")
add_executable(stepwell_precompiled EXCLUDE_FROM_ALL ${CMAKE_CURRENT_BINARY_DIR}/precompiled.cc)
target_link_libraries(stepwell_precompiled PRIVATE stepwell_flags GTest::gmock)
target_precompile_headers(stepwell_precompiled PRIVATE ${headers})

foreach(target stepwell_precompiled ${tests})
  # ccache takes what a precompiled header stands for from the preprocessor (and wants CCACHE_SLOPPINESS, in the presets).
  target_compile_options(${target} PRIVATE -O0 -fpch-preprocess)
  set_target_properties(${target} PROPERTIES STEPWELL_PRECOMPILED ON)
  if(NOT target STREQUAL stepwell_precompiled)
    target_precompile_headers(${target} REUSE_FROM stepwell_precompiled)
  endif()
endforeach()
