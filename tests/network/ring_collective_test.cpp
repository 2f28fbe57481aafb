// The ring as steps on demand against the lists it replaces: the same slices in the same order.
#include <gtest/gtest.h>

#include "network/collective_algorithm.h"
#include "network/ring_schedule.h"

namespace weft {
namespace {

TEST(RingCollective, StepsAreTheSlicesOfTheList) {
  RingSpec spec;
  spec.buffer_bytes = 32 << 10;
  for (const auto kind : {CollectiveKind::all_reduce, CollectiveKind::all_gather, CollectiveKind::reduce_scatter}) {
    for (const std::uint32_t ranks : {2U, 3U, 8U, 17U}) {
      for (const std::int64_t elements : {1, 32, 1024, 2501, 25'001, 65'536}) {
        const bool parts = kind != CollectiveKind::all_reduce;
        const std::int64_t whole = elements * 4 * (parts ? ranks : 1);
        ScheduleRequest request{.kind = kind,
                                .bytes = kind == CollectiveKind::all_gather ? elements * 4 : whole,
                                .ranks = ranks,
                                .channels = 3,
                                .piece_bytes = 8192};
        const auto schedule = make_schedule(CollectiveAlgorithm::ring, request);
        for (std::uint32_t rank = 0; rank < ranks; ++rank) {
          for (std::uint32_t block = 0; block < 3; ++block) {
            std::uint64_t index = 0;
            for (const RingSlice& slice : ring_schedule(kind, spec, whole, rank, ranks, block, 3)) {
              ScheduleStep step;
              while (step.idle()) {
                ASSERT_LT(index, schedule->steps(rank, block, 0));
                step = schedule->step(rank, block, 0, index++);
              }
              const std::int64_t own = parts ? slice.offset % (elements * 4) : slice.offset;
              ASSERT_EQ(step.bytes, slice.bytes);
              ASSERT_EQ(step.receive_count == 1, slice.receives);
              ASSERT_EQ(step.send_count == 1, slice.sends);
              ASSERT_EQ(step.source != ScheduleBuffer::none, slice.uses_input);
              ASSERT_EQ(step.destination != ScheduleBuffer::none, slice.keeps);
              if (slice.uses_input) {
                ASSERT_EQ(step.source_offset, kind == CollectiveKind::all_gather ? own : slice.offset);
              }
              if (slice.keeps) {
                ASSERT_EQ(step.destination_offset, kind == CollectiveKind::reduce_scatter ? own : slice.offset);
              }
            }
            for (; index < schedule->steps(rank, block, 0); ++index) {
              ASSERT_TRUE(schedule->step(rank, block, 0, index).idle());
            }
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace weft
