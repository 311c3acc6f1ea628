# Targets for the hand: `format` rewrites our sources, `format_check` only looks, `tidy` runs
# clang-tidy on every file of this build. tests/run.sh checks the same.
find_program(CLANG_FORMAT clang-format-14)
find_program(RUN_CLANG_TIDY run-clang-tidy-14)
file(GLOB_RECURSE style_sources CONFIGURE_DEPENDS RELATIVE ${PROJECT_SOURCE_DIR}
  base/*.cc base/*.h storage/*.cc storage/*.h server/*.cc server/*.h
  client/*.cc client/*.h tests/*.cc tests/*.h bench/*.cc bench/*.h)
list(FILTER style_sources EXCLUDE REGEX "node_modules|/build/")

if(CLANG_FORMAT)
  add_custom_target(format COMMAND ${CLANG_FORMAT} -i ${style_sources}
    WORKING_DIRECTORY ${PROJECT_SOURCE_DIR} VERBATIM)
  add_custom_target(format_check COMMAND ${CLANG_FORMAT} --dry-run -Werror ${style_sources}
    WORKING_DIRECTORY ${PROJECT_SOURCE_DIR} VERBATIM)
endif()
if(RUN_CLANG_TIDY)
  # Generated protocol sources are in the compile commands too; the pattern leaves them out. The
  # commands are gcc's, some of whose warnings clang does not know.
  add_custom_target(tidy COMMAND ${RUN_CLANG_TIDY} -quiet -p ${PROJECT_BINARY_DIR} -j 2
    -extra-arg=-Wno-unknown-warning-option
    "^${PROJECT_SOURCE_DIR}/(base|storage|server|client|tests|bench)/"
    WORKING_DIRECTORY ${PROJECT_SOURCE_DIR} VERBATIM)
  add_dependencies(tidy stepwell_proto)
endif()
