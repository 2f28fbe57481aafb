#include "traces/stream_priority.h"

#include <gmock/gmock.h>

namespace weft {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

// 8 waves of blocks of 1024 threads from 0 to 800 us, again every millisecond; beside each, another stream's kernel.
class Recorded {
 public:
  Recorded() {
    rank.device = "Tesla V100-SXM2-16GB";
    rank.compute_units = 80;
  }
  void step(double begins_us, TraceOpKind kind = TraceOpKind::collective) {
    const double from = 1000.0 * steps_++;
    add(TraceOpKind::kernel, 7, from, 800, 8 * 2 * 80);
    add(kind, 15, from + begins_us, 50, 2);
  }
  [[nodiscard]] std::vector<std::uint32_t> urgent() const { return urgent_streams(rank); }

  TraceRank rank;

 private:
  void add(TraceOpKind kind, std::uint32_t stream, double start_us, double us, std::uint32_t blocks) {
    TraceOp op;
    op.kind = kind;
    op.stream = stream;
    op.start = microseconds(start_us);
    op.duration = microseconds(us);
    op.shape.emplace();
    op.shape->grid = {blocks, 1, 1};
    op.shape->block = {1024, 1, 1};
    rank.ops.push_back(op);
  }
  int steps_ = 0;
};

TEST(StreamPriority, WhoBeginsWhileBlocksOfOthersWaitIsUrgent) {
  Recorded recorded;
  recorded.step(100);
  EXPECT_THAT(recorded.urgent(), IsEmpty());  // once may be chance
  recorded.step(400, TraceOpKind::kernel);
  recorded.step(750);  // with the last wave
  EXPECT_THAT(recorded.urgent(), ElementsAre(15));
}

TEST(StreamPriority, WhoMostlyWaitsForTheLastWaveIsNot) {
  Recorded recorded;
  recorded.step(100);
  recorded.step(200);
  for (int i = 0; i < 2; ++i) recorded.step(720);
  EXPECT_THAT(recorded.urgent(), IsEmpty());
}

TEST(StreamPriority, KernelsOfFewWavesTellNothing) {
  Recorded recorded;
  for (int i = 0; i < 4; ++i) recorded.step(100);
  EXPECT_THAT(recorded.urgent(), ElementsAre(15));
  for (TraceOp& op : recorded.rank.ops) op.shape->block = {256, 1, 1};
  EXPECT_THAT(recorded.urgent(), IsEmpty());
}

TEST(StreamPriority, OnAmdQueuesShareTheUnitsAnyway) {
  Recorded recorded;
  for (int i = 0; i < 4; ++i) recorded.step(100);
  recorded.rank.device = "AMD Instinct MI300X";
  EXPECT_THAT(recorded.urgent(), IsEmpty());
  recorded.rank.device.clear();
  recorded.rank.compute_units = 0;
  EXPECT_THAT(recorded.urgent(), IsEmpty());
}

}  // namespace
}  // namespace weft
