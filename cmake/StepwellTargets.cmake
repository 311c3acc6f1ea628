# The ways a folder declares what it builds. Sources are globbed: a new file needs no CMake line.

if(STEPWELL_UNITY)
  find_package(Python3 REQUIRED COMPONENTS Interpreter)
  set_property(DIRECTORY ${PROJECT_SOURCE_DIR} APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/cmake/batches.py)
endif()

# Flags of our own code. Third-party headers are SYSTEM, so warnings there stay silent.
add_library(stepwell_flags INTERFACE)
target_compile_options(stepwell_flags INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Werror
  $<$<COMPILE_LANGUAGE:CXX>:-Wconversion -Wno-sign-conversion -Wnon-virtual-dtor -Woverloaded-virtual>
  # gcc 12 sees overlap inside std::string's own insert and replace when it optimises (PR 105329).
  $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-restrict>)
target_include_directories(stepwell_flags INTERFACE ${PROJECT_SOURCE_DIR})
if(STEPWELL_SANITIZE)
  add_compile_options(-fsanitize=${STEPWELL_SANITIZE} -fno-omit-frame-pointer
                      -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${STEPWELL_SANITIZE})
  # gcc 12 sees uninitialised members inside libstdc++ once sanitizers change its inlining; the
  # release build keeps the warning.
  target_compile_options(stepwell_flags INTERFACE
    $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>)
endif()
if(STEPWELL_SANITIZE MATCHES thread)
  # Built by cmake/tsan.
  target_sources(stepwell_flags INTERFACE
    $<$<STREQUAL:$<TARGET_PROPERTY:TYPE>,EXECUTABLE>:$<TARGET_OBJECTS:stepwell_seen_locks>>)
  target_link_libraries(stepwell_flags INTERFACE absl::synchronization)
endif()
if(STEPWELL_FAILPOINTS)
  target_compile_definitions(stepwell_flags INTERFACE STEPWELL_FAILPOINTS=1)
endif()

# Sources that the mutants of tests/simulation stand in for: a library gives the rest of itself, object by object.
set(mutants_json ${PROJECT_SOURCE_DIR}/tests/simulation/mutants/mutants.json)
set_property(DIRECTORY ${PROJECT_SOURCE_DIR} APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${mutants_json})
file(STRINGS ${mutants_json} STEPWELL_MUTATED REGEX "\"file\": \"")
list(TRANSFORM STEPWELL_MUTATED REPLACE ".*\"file\": \"([^\"]+)\".*" "\\1")
list(REMOVE_DUPLICATES STEPWELL_MUTATED)
# Who links a library has them only where something of theirs is named: client/cli/alone brings a log of its own, and
# monotonic_waits.cc has waits in place of abseil's.
set(STEPWELL_ALONE base/log.cc base/monotonic_waits.cc)

# stepwell_batches(OUT NAME source...): with STEPWELL_UNITY the sources of the target NAME in batches of up to eight, each a
# file that includes them: what they share is parsed and compiled once, which takes half the time. By their place in the
# tree, not by CMake's UNITY_BUILD, which knows a file by its absolute path: no other clone's cache would serve it.
# cmake/batches.py says which go together, as often as CMake configures. What only builds without batches tell, dev and
# clang: an include or a using that is missing, and who holds a hidden type. Shadowed names are told once, by the release.
function(stepwell_batches out name)
  if(NOT STEPWELL_UNITY)
    set(${out} ${ARGN} PARENT_SCOPE)
    return()
  endif()
  set(alone)
  set(together)
  foreach(source ${ARGN})
    cmake_path(RELATIVE_PATH source BASE_DIRECTORY ${PROJECT_SOURCE_DIR} OUTPUT_VARIABLE place)
    get_property(definitions SOURCE ${source} PROPERTY COMPILE_DEFINITIONS)
    if(place IN_LIST STEPWELL_MUTATED OR place IN_LIST STEPWELL_ALONE OR definitions)
      list(APPEND alone ${source})
    else()
      list(APPEND together ${source})
    endif()
  endforeach()
  execute_process(COMMAND ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/cmake/batches.py ${PROJECT_SOURCE_DIR} 8 ${together}
    OUTPUT_VARIABLE lines OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
  string(REPLACE "\n" ";" lines "${lines}")
  set(made)
  foreach(line ${lines})
    string(REGEX REPLACE "([^ ]+) ?" "#include \"\\1\"\n" text "${line}")
    list(LENGTH made number)
    file(CONFIGURE OUTPUT unity/${name}_${number}.cc CONTENT "${text}")
    list(APPEND made ${CMAKE_CURRENT_BINARY_DIR}/unity/${name}_${number}.cc)
  endforeach()
  # In the release -Wshadow stays on, and this one adds nothing to it.
  set(shadows -Wshadow=local)
  if(STEPWELL_SANITIZE)
    set(shadows -Wno-shadow)
  endif()
  set_source_files_properties(${made} PROPERTIES COMPILE_OPTIONS "${shadows};-Wno-subobject-linkage")
  set(${out} ${alone} ${made} PARENT_SCOPE)
endfunction()

# stepwell_library(NAME DEPS target...): every .cc below the current folder (not in subfolders that
# have a CMakeLists.txt of their own) becomes the static library NAME. EXCLUDE lists file names left out.
function(stepwell_library name)
  cmake_parse_arguments(ARG "" "" "DEPS;EXCLUDE" ${ARGN})
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.cc)
  foreach(excluded ${ARG_EXCLUDE})
    list(REMOVE_ITEM sources ${CMAKE_CURRENT_SOURCE_DIR}/${excluded})
  endforeach()
  if(NOT sources)
    add_library(${name} INTERFACE)
    target_link_libraries(${name} INTERFACE stepwell_flags ${ARG_DEPS})
    return()
  endif()
  stepwell_batches(sources ${name} ${sources})
  add_library(${name} STATIC ${sources})
  target_link_libraries(${name} PUBLIC stepwell_flags ${ARG_DEPS})
endfunction()

# stepwell_tests(NAME LABEL label DEPS target...): every *_test.cc of the folder in one executable,
# registered test by test under LABEL (core, simulation, contract, faults, e2e or slow); those whose names
# match LONG under LABEL_long, with half an hour's time. WHOLE registers the
# executable as one test, for those whose tests share something dear, such as a PostgreSQL. CHECKED: see below.
function(stepwell_tests name)
  cmake_parse_arguments(ARG "WHOLE;CHECKED" "LABEL;LONG;TIMEOUT" "DEPS" ${ARGN})
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 120)
  endif()
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.cc)
  if(NOT sources)
    return()
  endif()
  stepwell_batches(sources ${name} ${sources})
  add_executable(${name} ${sources})
  target_link_libraries(${name} PRIVATE stepwell_flags stepwell_places ${ARG_DEPS} GTest::gmock GTest::gtest_main)
  # What is tested is compiled as it is shipped; optimising the tests themselves would cost a third of
  # their compilation and speeds up nothing that counts.
  target_compile_options(${name} PRIVATE $<$<CONFIG:RelWithDebInfo>:-O0>)
  # Nor do they check each pointer for null, alignment and type, which were 6, 20 and 44 % of the compilation of three
  # batches: what is read through null the address sanitizer sees. What our headers define inline may come without these checks, too, for
  # the linker takes the first one that it meets: CHECKED, for those that are given hostile bytes, keeps them all.
  if(STEPWELL_SANITIZE MATCHES undefined AND NOT ARG_CHECKED)
    target_compile_options(${name} PRIVATE -fno-sanitize=null,alignment,vptr,object-size)
  endif()
  set_property(GLOBAL APPEND PROPERTY STEPWELL_TESTS ${name})
  if(ARG_WHOLE)
    add_test(NAME ${name} COMMAND ${name})
    set_tests_properties(${name} PROPERTIES LABELS ${ARG_LABEL} TIMEOUT ${ARG_TIMEOUT})
  elseif(ARG_LONG)
    gtest_discover_tests(${name} DISCOVERY_TIMEOUT 60 TEST_FILTER "-${ARG_LONG}"
      PROPERTIES LABELS ${ARG_LABEL} TIMEOUT ${ARG_TIMEOUT})
    gtest_discover_tests(${name} DISCOVERY_TIMEOUT 60 TEST_FILTER "${ARG_LONG}" TEST_LIST ${name}_long
      PROPERTIES LABELS ${ARG_LABEL}_long TIMEOUT 1800)
  else()
    gtest_discover_tests(${name} DISCOVERY_TIMEOUT 60
      PROPERTIES LABELS ${ARG_LABEL} TIMEOUT ${ARG_TIMEOUT})
  endif()
  # stepwell_tests_core and the like build one label alone: a sanitizer need not compile the rest.
  foreach(label ${ARG_LABEL})
    if(NOT TARGET stepwell_tests_${label})
      add_custom_target(stepwell_tests_${label})
    endif()
    add_dependencies(stepwell_tests_${label} ${name})
  endforeach()
endfunction()
