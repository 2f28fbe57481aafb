// How the communication library drives a collective: NCCL's channels, buffers and protocol steps. Plain data; the
// defaults of a GPU generation stand in configs/systems with their sources.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/units.h"

namespace weft {

// Those of CollectiveAlgorithm, the switch's, and that of routers between nodes that sum (network_reduce).
enum class AllReduceAlgorithm {
  automatic,
  ring,
  in_switch,
  in_network,
  tree,
  double_binary_tree,
  halving_doubling,
  direct,
  hierarchical
};

// How a piece gets from one GPU to the next (NCCL src/device/prims_simple.h, prims_ll.h, prims_ll128.h). Simple: data,
// a fence, a flag. LL: 8 B of data beside 8 B of flag. LL128: 120 B of data and 8 B of flag in a line. The latter two
// need no fence, and who waits for data polls the data.
enum class CollectiveProtocol { automatic, simple, ll, ll128 };
[[nodiscard]] const char* to_string(CollectiveProtocol protocol);

struct RingSpec {
  std::uint32_t channels = 0;           // thread blocks of the collective
  std::uint32_t threads = 512;          // of a block that move data
  std::int64_t buffer_bytes = 4 << 20;  // NCCL_BUFFSIZE, of a channel
  std::uint32_t buffer_steps = 8;       // NCCL_STEPS
  std::uint32_t chunk_steps = 4;        // ALLREDUCE_CHUNKSTEPS
  std::uint32_t slice_steps = 2;        // ALLREDUCE_SLICESTEPS
  bool receiver_reads = false;          // A100; else the sender writes
  bool channel_shares = false;          // a share of the message for each channel: NCCL from 2.19 on
};

// On registered buffers, how an all-reduce meets in the switch: a rank loads sums of its part and stores them to all,
// or all ranks store what they have to one address and the switch sends the sums to all.
enum class InSwitchForm : std::uint8_t { pull, push };

struct InSwitchSpec {
  std::uint32_t channels = 16;
  bool registered = false;                        // user buffers known to the switch: no staging copies
  std::uint32_t reduce_warps = 5;                 // of a block
  std::uint32_t copy_warps = 6;                   // each for staging in and out
  std::uint32_t bytes_in_flight_per_warp = 2048;  // of a warp's unrolled iteration and source
  Time start_latency;                             // beyond base_latency
  Time poll;                                      // of all ranks' counters, by a load that the switch reduces
  std::uint32_t registered_channels = 4;          // of a collective on registered buffers
  InSwitchForm form = InSwitchForm::pull;
  // On registered buffers: a message goes in waves of `wave_bytes`, of which a GPU has at most `waves` under way, so
  // that the requests of all GPUs for one region come together (Klenk et al., ISCA 2020). 0 waves: in NCCL's loops.
  std::uint32_t waves = 0;
  std::int64_t wave_bytes = 64 << 10;
};

// What the library's tuner believes of the machine (NCCL src/graph/tuning.cc and topo.h). GB/s of 10^9. Its limit of
// LL was measured: see CollectiveSpec::flagged_GBps.
struct TunerSpec {
  double link_GBps = 0;               // of one link, each way; 0: 0.8 of its rate
  double ll_max_GBps = 141;           // bus bandwidth of LL at most, on one node
  double ll_max_two_nodes_GBps = 39;  // which does not ask for the GPUs, but for the host: these are Intel's
  double ll_max_nodes_GBps = 20.4;    // of three nodes and more
  double ll128_channel_GBps = 36.7;   // bus bandwidth of LL128 of a channel; 0: the library does not use LL128 here
  double in_switch_efficiency = 0.85;
  // Bandwidths that its search tries for one head of in_switch, of which each rank is one. Empty: any.
  std::vector<double> in_switch_head_GBps;
  // All pairs (direct), which RCCL takes by tables of its own (tools/msccl-algorithms) instead of a prediction: for an
  // all_reduce of so many ranks and sizes. No ranks: never.
  struct Direct {
    std::uint32_t ranks = 0;
    std::int64_t min_bytes = 0;
    std::int64_t simple_from_bytes = 0;  // below: LL
    std::int64_t max_bytes = 0;
    std::uint32_t channels = 0;
  };
  Direct direct;
};

// What the library's host threads add to each piece that goes to another node: they see that it is ready, tell the
// NIC, flush what came, and tell the GPU there (NCCL src/proxy.cc, src/transport/net.cc). By protocol.
struct ProxySpec {
  Time ll, ll128, simple;
};

// Channels of what is made of sends and receives (NCCL src/graph/paths.cc, ncclTopoComputeP2pChannels).
struct SendSpec {
  std::uint32_t channels = 0;          // of all; 0: as rings have, rounded up to a power of two
  std::uint32_t channels_to_peer = 0;  // at most, on one node; 0: two for each link of a GPU, rounded up likewise
  // What a step of the buffer carries with Simple; 0: all that goes in. NCCL 2.10 has a quarter of it (src/proxy.cc,
  // ncclProxyComputeP2p).
  std::int64_t chunk_bytes = 0;
};

struct CollectiveSpec {
  RingSpec ring;
  SendSpec sends;
  InSwitchSpec in_switch;
  TunerSpec tuner;
  std::uint32_t registers_per_thread = 96;
  std::uint32_t shared_memory_bytes = 0;          // of a block
  std::uint32_t bytes_in_flight_per_warp = 2048;  // of all but in_switch
  double flagged_GBps = 0;  // what a block of LL or LL128 moves at most, flags included; 0: as the tuner has it of LL
  Time base_latency;        // start of a collective kernel to its first load: argument and channel set-up
  Time fence;               // a system-wide fence, beyond the acknowledgement of the block's own stores
  ProxySpec proxy;
  bool pxn = true;  // what is made of sends and receives leaves by the NIC of the receiver's rail, with another GPU
};

}  // namespace weft
