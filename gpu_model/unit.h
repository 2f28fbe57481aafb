// One compute unit: what is free on it, its ports and pipes, its L1. The GPU moves it through time.
#pragma once

#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "gpu_model/clock_domain.h"
#include "gpu_model/gpu_spec.h"
#include "gpu_model/occupancy.h"
#include "gpu_model/store_credits.h"
#include "gpu_model/tlb.h"
#include "gpu_model/warp_schedulers.h"
#include "gpu_model/work_ahead.h"
#include "network/packet.h"

namespace weft {

// Tags of an L1 with 32 B sectors: what one kernel loaded, or reserved for what is on its way. Caches are not coherent
// across kernels, so a line counts for its kernel only.
class L1Tags {
 public:
  explicit L1Tags(std::uint32_t bytes) : sets_(bytes / (kLineBytes * kWays)) {}
  enum class Access : std::uint8_t { hit, on_its_way, miss };
  // A miss reserves the sectors; fill() is called when they have come.
  Access access(LineAddress line, std::uint32_t kernel, std::uint32_t sectors);
  void fill(LineAddress line, std::uint32_t kernel);

 private:
  static constexpr std::uint32_t kWays = 4;
  struct Entry {
    LineAddress line = 0;
    std::uint32_t kernel = ~std::uint32_t{0};
    std::uint8_t valid = 0;     // sectors
    std::uint8_t reserved = 0;  // sectors on their way
  };
  // The set of a line; a multiplicative hash, since a division costs more than all the rest.
  [[nodiscard]] Entry* set_of(LineAddress line) {
    const auto hash = static_cast<std::uint32_t>(line * 2654435769U);
    return &entries_[(std::uint64_t{hash} * sets_ >> 32) * kWays];
  }
  std::uint32_t sets_;
  std::vector<Entry> entries_;  // from the first access on: many units never see one
};

// Agents that wait for an outstanding request to come back, in order; linked through the agents.
struct WaitQueue {
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};
  std::uint32_t first = kNone;
  std::uint32_t last = kNone;
  [[nodiscard]] bool empty() const { return first == kNone; }
};

// What each memory transaction touches comes first, in two cache lines of the host.
struct alignas(64) Unit {
  static constexpr SubCycle kNever = std::numeric_limits<SubCycle>::max() / 2;
  static_assert(tick_at_or_after(kNever) > 0, "ticks of it do not overflow");

  // `schedulers` of one sub-partition make an engine, whose agents take turns.
  Unit(const ComputeUnitSpec& spec, const TlbSpec& pages, WarpSchedulers pipes, SubCycle request_time,
       SubCycle line_time, SubCycle store_time)
      : load_limit(spec.max_outstanding_lines),
        store_limit(spec.max_outstanding_stores > 0 ? spec.max_outstanding_stores : load_limit),
        load_request_time(request_time),
        port_line_time(line_time),
        port_store_time(store_time),
        tlb(spec.tlb_entries, pages.unit_page),
        slots(spec),
        schedulers(std::move(pipes)),
        l1(spec.l1_bytes > spec.shared_memory_bytes ? spec.l1_bytes - spec.shared_memory_bytes : 0) {}

  std::uint32_t load_limit;  // outstanding at a time
  std::uint32_t store_limit;
  std::uint32_t loads_out = 0;
  std::uint32_t stores_out = 0;
  std::uint32_t partition = 0;  // half of the chip
  SubCycle load_request_time;   // of the port for a load request
  SubCycle port_line_time;      // of the port for a line that comes,
  SubCycle port_store_time;     // and for one that goes
  SubCycle out_free = 0;        // the port towards L2
  SubCycle in_free = 0;         // and back
  WorkAhead in_ahead;
  WaitQueue load_waiters;
  WaitQueue store_waiters;
  SubCycle l1_free = 0;
  Tlb tlb;
  UnitSlots slots;
  WarpSchedulers schedulers;
  SubCycle scheduled = kNever;  // the first of the coming events at which it looks for who goes next
  L1Tags l1;
  // Loads of lines that are on their way to L1 for others: they come back with them.
  struct Merged {
    LineAddress line = 0;
    std::uint32_t agent = 0;
  };
  std::vector<Merged> merged;
  // An engine at the link ports reaches links and its SRAM without the crossbar; only memory traffic takes its port.
  bool at_link_port = false;
  std::uint32_t packet_lines = 1;  // of a write to another GPU
  SubCycle to_links = 0;
  SubCycle from_links = 0;
  std::uint32_t compute_blocks = 0;
  std::uint32_t communication_blocks = 0;
  std::uint32_t company = 0;  // blocks that came or left so far
  SubCycle accounted = 0;
  StoreCredits store_credits{0};   // of late stores, to a grain that the GPU knows
  bool looks_for_credits = false;  // an event will

  // When an event looks for places of stores, for those who wait; kNever if one is under way or none is noted.
  SubCycle next_look() {
    if (looks_for_credits || store_credits.empty()) return kNever;
    looks_for_credits = true;
    return store_credits.next();
  }
};

}  // namespace weft
