#include "client/recorder/src/trace_note.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <vector>

#include "client/recorder/src/spool_format.h"
#include "stepwell/recorder.h"
#include "tests/unit/recorder/files/in_child.h"
#include "tests/unit/recorder/files/recorder_fixture.h"
#include "tests/unit/recorder/files/spool_files.h"

namespace stepwell::recorder {
namespace {

TEST_F(RecorderTest, LeavesWordOfATraceThatIsToBeUploaded) {
  ExpectInChild([this] {
    EXPECT_EQ(stepwell_upload_trace("/data/a.json", 0, 0, 7, 0), 0) << "nothing was ever opened";
    ASSERT_EQ(Open(), STEPWELL_RECORDING) << stepwell_message();
    EXPECT_EQ(stepwell_upload_trace("a.json", 0, 0, 7, 0), 0) << "not absolute";
    EXPECT_EQ(stepwell_upload_trace(nullptr, 0, 0, 7, 0), 0);
    (void)stepwell_close(0);
    EXPECT_EQ(stepwell_upload_trace("/data/\"a\".json", 2, -1, 7, 1), 1) << "of the last one";
  });
  std::vector<std::filesystem::path> notes;
  for (const auto& note :
       std::filesystem::directory_iterator(directory_.path() + "/f1/" + spool::kTraceFolder)) {
    notes.push_back(note.path());
  }
  ASSERT_EQ(notes.size(), 1u);
  EXPECT_EQ(notes[0].extension(), spool::kTraceNoteEnding);
  EXPECT_EQ(ReadText(notes[0]),
            "{\"path\": \"/data/\\\"a\\\".json\", \"epoch\": 2, \"first_batch\": -1, "
            "\"last_batch\": 7, \"removes_file\": true, \"writer\": " +
                ReadText(WriterPath() / spool::kWriterFile) + "}\n");
}

}  // namespace
}  // namespace stepwell::recorder
