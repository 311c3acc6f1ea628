# Writes a C++ table of the files below a folder, packed with gzip. Run as a script, at build time:
#   cmake -DFOLDER=... -DOUTPUT=... -P EmbedFiles.cmake
# The same bytes give the same table on any machine.
file(GLOB_RECURSE files RELATIVE ${FOLDER} ${FOLDER}/*)
list(SORT files)
set(arrays "")
set(rows "")
set(number 0)
foreach(file ${files})
  if(NOT file MATCHES "^[A-Za-z0-9_][A-Za-z0-9_./-]*$")
    message(FATAL_ERROR "${FOLDER}/${file}: a path has A-Z, a-z, 0-9, _, - and . alone")
  endif()
  math(EXPR number "${number} + 1")
  file(SHA256 ${FOLDER}/${file} hash)
  execute_process(COMMAND gzip -9 -n -c INPUT_FILE ${FOLDER}/${file} OUTPUT_FILE ${OUTPUT}.gz
                  RESULT_VARIABLE failed)
  if(failed)
    message(FATAL_ERROR "gzip ${file}: ${failed}")
  endif()
  file(READ ${OUTPUT}.gz hex HEX)
  # 16 bytes a line; the closing brace ends the last one.
  string(REGEX REPLACE "(................................)" "\\1\n" hex "${hex}")
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" "'\\\\x\\1'," bytes "${hex}")
  string(APPEND arrays "// ${file}\nconstexpr char kFile${number}[] = {\n${bytes}'\\0'};\n\n")
  string(APPEND rows "    {\"/${file}\", {kFile${number}, sizeof(kFile${number}) - 1}, \"${hash}\"},\n")
endforeach()
file(REMOVE ${OUTPUT}.gz)
set(text "// Written by cmake/EmbedFiles.cmake.
#include \"server/http/page_files.h\"

namespace stepwell {
namespace {

${arrays}constexpr PageFile kFiles[] = {
${rows}};

}  // namespace

std::span<const PageFile> EmbeddedPage() { return kFiles; }

}  // namespace stepwell
")
file(WRITE ${OUTPUT}.new "${text}")
file(RENAME ${OUTPUT}.new ${OUTPUT})
