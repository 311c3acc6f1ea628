# Writes a C++ table of the SQL files in a folder. Run as a script, at build time:
#   cmake -DFOLDER=... -DOUTPUT=... -P EmbedMigrations.cmake
# Files are named NNNN_name.sql. The text goes in as bytes: no length limit of string literals, no
# delimiter that could occur in it.
file(GLOB files ${FOLDER}/*.sql)
list(SORT files)
set(arrays "")
set(rows "")
foreach(file ${files})
  get_filename_component(stem ${file} NAME_WE)
  if(NOT stem MATCHES "^([0-9][0-9][0-9][0-9])_([a-z0-9_]+)$")
    message(FATAL_ERROR "${file}: a migration is named NNNN_name.sql")
  endif()
  set(digits ${CMAKE_MATCH_1})
  set(name ${CMAKE_MATCH_2})
  string(REGEX REPLACE "^0+" "" number ${digits})
  file(READ ${file} hex HEX)
  # 16 bytes a line; the closing brace ends the last one.
  string(REGEX REPLACE "(................................)" "\\1\n" hex "${hex}")
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" "'\\\\x\\1'," bytes "${hex}")
  string(APPEND arrays "constexpr char kText${number}[] = {\n${bytes}'\\0'};\n\n")
  string(APPEND rows "    {${number}, \"${name}\", kText${number}},\n")
endforeach()
set(text "// Written by cmake/EmbedMigrations.cmake from migrations/*.sql.
#include <array>

#include \"storage/migrator.h\"

namespace stepwell {
namespace {

${arrays}constexpr Migration kMigrations[] = {
${rows}};

}  // namespace

std::span<const Migration> EmbeddedMigrations() { return kMigrations; }

}  // namespace stepwell
")
file(WRITE ${OUTPUT}.new "${text}")
file(RENAME ${OUTPUT}.new ${OUTPUT})
