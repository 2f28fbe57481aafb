// NVLS. The all-reduce with staging: three groups of warps in each block form a pipeline over the loops of a channel.
// Stage-in copies the rank's data into a buffer the switch knows and signals all; reduce loads its own piece through
// the switch, summed, and stores it to all through the switch; stage-out copies the sums to the user's buffer and gives
// the slot free.
//
// Over several nodes (NCCL's NVLSTree, src/device/all_reduce.h): the ranks of one place in their nodes form a binary
// tree for each channel, even and odd channels the two of a double tree. Reduce adds what its children in other nodes
// sent to what the switch summed, and sends it to its parent; a fourth group, broadcast, stores what comes down to all
// of the node through the switch and passes it on to the children. The root's reduce does both. What goes to other
// nodes is taken from staging FIFOs by the NIC (nic_programs.h): two more groups, up and down.
//
// All-gather and reduce-scatter are halves of it: in_switch_gathers.h. On registered buffers, which the switch reaches
// itself, nothing is staged: in_switch_registered.h.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "gpu_model/phase.h"
#include "network/collective_spec.h"
#include "network/in_switch_schedule.h"

namespace weft {

struct InSwitchPlace {
  InSwitchSpec spec;
  std::vector<GpuId> group;            // ascending, `ranks` of each node
  std::uint32_t ranks = 0;             // of a node, or of a part of it where an entry does not count all of its GPUs
  std::uint32_t lines_per_round = 16;  // of warps that load or store through the switch
  std::uint32_t copy_lines_per_round = 16;           // of those that copy to and from staging buffers
  CollectiveKind kind = CollectiveKind::all_reduce;  // others: of one node; broadcast, reduce: on registered buffers
  std::uint32_t root = 0;
  std::int64_t bytes = 0;   // of the part that a rank moves by itself, or of the whole that all share
  bool registered = false;  // only of one node
  // They fill slots at the same time, so one counter is enough for all slots; and over nodes have trees in which all
  // nodes are alike, where there are any (network/binary_tree.h).
  bool alike_ranks = false;
  SubCycle node_latency = 0;           // of a message from one node to another
  SubCycle proxy_latency = 0;          // what host threads add to it
  SubCycle nic_line = 0;               // that a GPU's share of the NICs takes for a line
  bool values_travel = false;          // so a flag must not overtake its data
  std::uint32_t registered_warps = 0;  // of a block
  std::uint16_t multicast_group = 0;
  SubCycle fence = 0;
  double adds_per_cycle = 0;  // FP32, of a compute unit
  SubCycle poll = 0;  // of all ranks' counters by a multicast load, before a block reduces (NCCL: NvlsMinPolling)
  std::int64_t send_address = 0;
  std::int64_t receive_address = 0;
  std::int64_t buffer = 0;  // address of in_switch_buffer_bytes()
  std::uint32_t first_flag = 0;

  [[nodiscard]] std::uint32_t nodes() const { return static_cast<std::uint32_t>(group.size()) / ranks; }
  // A rank's part then lies at its place of the whole.
  [[nodiscard]] bool in_place() const { return send_address == receive_address; }
};

inline constexpr std::uint32_t kInSwitchSlots = 8;  // NCCL_STEPS chunks of a channel in flight

// Loop `index` of a channel uses these addresses in the staging buffer: of what the switch sums, and of what it has
// copied, a piece a rank.
struct StagingSlots {
  std::int64_t in = 0;
  std::int64_t out = 0;
};
[[nodiscard]] StagingSlots staging_slots(const InSwitchPlace& place, std::uint32_t channel, std::uint32_t index);
// The first counter of a channel.
[[nodiscard]] std::uint32_t in_switch_channel_flags(const InSwitchPlace& place, std::uint32_t channel);

// The largest parts of a node's `members`, all alike, that an entry can count; 0: there are none of at least two.
[[nodiscard]] std::uint32_t in_switch_part(std::uint32_t members, std::uint32_t fan_in);
[[nodiscard]] std::uint32_t in_switch_flags(const InSwitchPlace& place);
// Of `ranks` of each of `nodes`.
[[nodiscard]] std::int64_t in_switch_buffer_bytes(const InSwitchSpec& spec, std::uint32_t ranks, std::uint32_t nodes);
[[nodiscard]] std::uint32_t in_switch_threads(const InSwitchPlace& place);

// What the blocks of one rank of the group do.
[[nodiscard]] std::shared_ptr<const BlockPrograms> in_switch_programs(const InSwitchPlace& place, std::uint32_t rank);

}  // namespace weft
