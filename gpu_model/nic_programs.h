// What the NIC does for a group of warps that sends to other nodes: piece after piece from the connection's staging
// FIFO, with the carrier, to the receiver's, once a proxy thread of the library has told it to.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "gpu_model/gpu_spec.h"
#include "gpu_model/phase.h"
#include "gpu_model/schedule_layout.h"

namespace weft {

// Of a group of warps: 63 GB/s of PCIe 5.0 x16 for a microsecond. UNSOURCED: the microsecond, a read's round trip.
inline constexpr std::uint32_t kNicLinesInFlight = 512;
inline constexpr std::uint32_t kNicLinesPerRound = 16;  // only the grain at which what was read is sent

// What a piece waits for on its way through the staging FIFO, beside the NIC: it is written, its flag is seen, it is
// read, three passes through the L2.
inline SubCycle staging_time(const GpuSpec& gpu) { return 3 * cycles(std::int64_t{gpu.l2.hit_latency_cycles}); }

// What a GPU's share of its node's NICs takes for a line; 0: it has none.
inline SubCycle nic_line_time(const GpuSpec& gpu, double nic_GBps) {
  if (nic_GBps <= 0) return 0;
  return cycles(kLineBytes * static_cast<double>(gpu.clock.count()) / (nic_GBps * 1e9));
}

// Groups of warps that send to other nodes by the rank's NIC, of this block on all ranks of its node. The layout
// outlives them.
[[nodiscard]] std::vector<WarpGroup> carried_groups(const ScheduleLayout& layout, std::uint32_t rank,
                                                    std::uint32_t block);
// What the NIC of `carrier` takes of what a group sends.
[[nodiscard]] std::unique_ptr<PhaseCursor> nic_phases(const WarpGroup& warps, std::uint32_t carrier);

}  // namespace weft
