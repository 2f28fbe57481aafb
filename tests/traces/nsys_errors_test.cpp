// Exports that are damaged, or not as NVIDIA describes them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/traces/nsys_export.h"
#include "tests/traces/temporary_file.h"
#include "traces/nsys/nsys_import.h"

namespace weft {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::input_error;
using testing::NsysExport;
using testing::TemporaryFolder;

class NsysErrors : public ::testing::Test {
 protected:
  Trace import(const std::string& file = "a.sqlite") {
    std::vector<std::string> notes;
    return import_nsys({folder.file(file)}, notes);
  }

  TemporaryFolder folder;
};

TEST_F(NsysErrors, RefusesWhatIsNoExport) {
  EXPECT_THROW((void)import(), MissingInput);
  (void)folder.write("a.sqlite", "PK\003\004 a report of Nsight Systems is no database, long enough to be one");
  EXPECT_THAT(input_error([&] { (void)import(); }),
              AllOf(HasSubstr("a.sqlite"), HasSubstr("nsys export --type sqlite"), HasSubstr("not a database")));
  {
    NsysExport e(folder.file("b.sqlite"));
    e.range("forward", 0, 1);
  }
  EXPECT_THAT(input_error([&] { (void)import("b.sqlite"); }),
              AllOf(HasSubstr("expected an export of Nsight Systems with operations on a GPU"),
                    HasSubstr("got 3 tables: NVTX_EVENTS, StringIds")));
}

TEST_F(NsysErrors, NamesTheTableAndColumnThatIsWrong) {
  {
    NsysExport e(folder.file("a.sqlite"));
    e.launch("gemm", 0, 10, 20, 7, 1);
    e.sql("UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET gridX = 'many'");
  }
  EXPECT_THAT(input_error([&] { (void)import(); }),
              HasSubstr("CUPTI_ACTIVITY_KIND_KERNEL.gridX: expected a whole number, got many"));
  {
    NsysExport e(folder.file("b.sqlite"));
    e.launch("gemm", 0, 10, 20, 7, 1);
    e.sql("UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET blockY = -1");
  }
  EXPECT_THAT(input_error([&] { (void)import("b.sqlite"); }), HasSubstr("blockY: expected from 0 to 2147483647"));
  {
    NsysExport e(folder.file("c.sqlite"));
    e.launch("gemm", 0, 10, 20, 7, 1);
    e.sql("ALTER TABLE CUPTI_ACTIVITY_KIND_KERNEL DROP COLUMN streamId");
  }
  EXPECT_THAT(input_error([&] { (void)import("c.sqlite"); }),
              HasSubstr("CUPTI_ACTIVITY_KIND_KERNEL: expected a column streamId, got start, end, deviceId"));
}

TEST_F(NsysErrors, RefusesDamage) {
  {
    NsysExport e(folder.file("a.sqlite"));
    for (int i = 0; i < 200; ++i) e.launch("gemm", i * 10, i * 10 + 3, i * 10 + 8, 7, i + 1);
  }
  std::string content = testing::content_of(folder.file("a.sqlite"));
  for (std::size_t at = 3 * 4096; at < content.size(); at += 7) content[at] = static_cast<char>(at);
  (void)folder.write("a.sqlite", content);
  EXPECT_THAT(input_error([&] { (void)import(); }), HasSubstr("a.sqlite"));
}

}  // namespace
}  // namespace weft
