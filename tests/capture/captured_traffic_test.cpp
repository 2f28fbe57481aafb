#include "traces/capture/captured_traffic.h"

#include <gmock/gmock.h>

#include "tests/capture/capture_import.h"
#include "tests/capture/capture_records.h"

namespace weft {
namespace {

using capture::TestProcess;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using testing::kAllReduce;

class CapturedTraffic : public testing::CaptureImport {
 protected:
  TestProcess process(std::int32_t rank = 0, double ahead = 0) {
    return TestProcess(folder.file("p" + std::to_string(rank) + ".weftcap"), ahead);
  }
  // Something from 0 to 100 us.
  static void run(TestProcess& process) {
    process.session();
    process.launch("a", 0, 5, 100, 7, 1);
  }
  static std::vector<std::int64_t> in_us(const std::vector<Time>& times) {
    std::vector<std::int64_t> out;
    for (const Time time : times) out.push_back(time.count() / 1'000'000'000);
    return out;
  }
};

TEST_F(CapturedTraffic, IsColumnsOfWhatWasMeasured) {
  {
    TestProcess p = process();
    run(p);
    p.traffic(10, 20, 1000, 2000);
    p.traffic(20, 35, 3000, 0);
    p.end();
  }
  const TraceTraffic traffic = import().ranks[0].traffic;
  EXPECT_THAT(in_us(traffic.start), ElementsAre(10, 20));
  EXPECT_THAT(in_us(traffic.duration), ElementsAre(10, 15));
  EXPECT_THAT(traffic[TrafficCounter::hbm_read_bytes], ElementsAre(1000, 3000));
  EXPECT_THAT(traffic[TrafficCounter::hbm_written_bytes], ElementsAre(2000, 0));
  EXPECT_THAT(traffic[TrafficCounter::nvlink_sent_bytes], IsEmpty());
  EXPECT_THAT(notes, IsEmpty());
}

TEST_F(CapturedTraffic, IdleTimeBeforeAndBehindIsLeftOut) {
  {
    TestProcess p = process();
    run(p);
    p.traffic(-5, 1, 1, 1);
    p.traffic(1, 99, 2, 2);
    p.traffic(99, 101, 3, 3);
    p.end();
  }
  EXPECT_THAT(import().ranks[0].traffic[TrafficCounter::hbm_read_bytes], ElementsAre(2));
}

// The GPU's clock is fitted to the host's again and again.
TEST_F(CapturedTraffic, SamplesThatOverlapBeginWhereTheOneBeforeEnded) {
  {
    TestProcess p = process();
    run(p);
    p.traffic(10, 20, 1, 1);
    p.traffic(18, 30, 2, 2);
    p.traffic(25, 29, 3, 3);  // within
    p.traffic(30, 30, 4, 4);  // of no length
    p.end();
  }
  const TraceTraffic traffic = import().ranks[0].traffic;
  EXPECT_THAT(in_us(traffic.start), ElementsAre(10, 20));
  EXPECT_THAT(in_us(traffic.duration), ElementsAre(10, 10));
}

TEST_F(CapturedTraffic, SamplesWithoutAValueThatOthersHaveAreLeftOut) {
  {
    TestProcess p = process();
    run(p);
    p.traffic(10, 20, 1, 1);
    p.traffic(20, 30, 2, 2, 1);
    p.traffic(30, 40, ~std::uint64_t{0}, 3);  // damage
    p.traffic(40, 50, 4, 4, ~0u);             // of a later version
    p.end();
  }
  // The last says more than this version knows, so that it has columns which no other has.
  const TraceTraffic traffic = import().ranks[0].traffic;
  EXPECT_THAT(traffic[TrafficCounter::hbm_read_bytes], ElementsAre(4));
}

TEST_F(CapturedTraffic, IsThatOfTheRanksOwnGpu) {
  {
    TestProcess p = process();
    p.session();
    p.launch("a", 0, 5, 100, 7, 1);
    p.kernel("b", 5, 100, 7, 2, 0, 1);
    p.traffic(10, 20, 1, 1, 3, 0);
    p.traffic(10, 20, 2, 2, 3, 1);
    p.end();
  }
  const Trace trace = import();
  ASSERT_EQ(trace.ranks.size(), 2u);
  EXPECT_THAT(trace.ranks[0].traffic[TrafficCounter::hbm_read_bytes], ElementsAre(1));
  EXPECT_THAT(trace.ranks[1].traffic[TrafficCounter::hbm_read_bytes], ElementsAre(2));
}

// 300 us ahead is what the second host's clock is, and all that it says moves.
TEST_F(CapturedTraffic, MovesWithTheClockOfItsRank) {
  for (std::int32_t rank = 0; rank < 2; ++rank) {
    TestProcess p = process(rank, rank == 0 ? 0 : 300);
    p.session(rank, 2);
    p.communicator(9, 2, static_cast<std::uint32_t>(rank));
    p.launch(kAllReduce, 0, 5, 100, 7, 1);
    p.collective(9, "AllReduce", 100, 1);
    p.traffic(40, 50, 1, 1);
    p.end();
  }
  const Trace trace = import();
  EXPECT_EQ(trace.ranks[0].traffic.start, trace.ranks[1].traffic.start);
  EXPECT_EQ(trace.ranks[0].ops[0].start, trace.ranks[1].ops[0].start);
  EXPECT_THAT(in_us(trace.ranks[0].traffic.start), ElementsAre(40));
}

}  // namespace
}  // namespace weft
