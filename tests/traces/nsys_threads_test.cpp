#include <gmock/gmock.h>

#include "tests/traces/nsys_export.h"
#include "tests/traces/temporary_file.h"
#include "traces/nsys/nsys_import.h"

namespace weft {
namespace {

TEST(NsysThreads, AutogradsIsBackwardWithoutRanges) {
  const testing::TemporaryFolder folder;
  {
    testing::NsysExport e(folder.file("a.sqlite"));
    e.thread("pt_autograd_0", 2);
    e.launch("gemm", 0, 10, 20, 7, 1);
    e.launch("gemm_backward", 5, 30, 40, 7, 2, 2);
    e.launch("adam", 20, 50, 60, 7, 3);
  }
  std::vector<std::string> notes;
  std::vector<TrainingPhase> phases;
  for (const TraceOp& op : import_nsys({folder.file("a.sqlite")}, notes).ranks.at(0).ops) phases.push_back(op.phase);
  EXPECT_THAT(phases,
              ::testing::ElementsAre(TrainingPhase::forward, TrainingPhase::backward, TrainingPhase::optimizer));
}

}  // namespace
}  // namespace weft
