// What a GPU is made of. Plain data, validated by the reader of system files; every number in configs/systems has its
// source beside it.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/program.h"

namespace weft {

// Who goes when several warps are ready: the same one as long as it can and then the oldest, or one after the other.
enum class WarpPolicy : std::uint8_t { greedy_then_oldest, round_robin };

// What the products of fused attention reach of the tensor pipes' peak while they multiply; 0: their pipe_efficiency.
struct AttentionEfficiency {
  double forward = 0, backward = 0;
};

struct ComputeUnitSpec {
  std::uint32_t schedulers =
      4;  // sub-partitions: each with a warp scheduler, an issue slot a cycle and part of the pipes
  WarpPolicy policy = WarpPolicy::greedy_then_oldest;
  std::uint32_t barrier_cycles = 0;  // from the last warp of a block at a barrier until they go on
  std::uint32_t max_threads = 2048;
  std::uint32_t max_blocks = 32;
  std::uint32_t registers = 65536;
  std::uint32_t shared_memory_bytes = 0;           // usable by blocks
  std::uint32_t reserved_shared_memory_bytes = 0;  // taken by the system for each block
  // How much of l1_bytes a unit can set apart as shared memory, ascending; the last is shared_memory_bytes. It is set
  // anew only where no block stands. None: all of it always is.
  std::vector<std::uint32_t> shared_memory_carveouts_KiB;
  std::array<double, kPipeCount> flops_per_cycle{0, 0, 0, 64, 16};  // dense, of one unit, by Pipe
  std::array<double, kPipeCount> pipe_efficiency{1, 1, 1, 1, 1};    // best measured / peak
  AttentionEfficiency attention_efficiency{};
  std::uint32_t max_outstanding_lines = 256;  // loads in flight: L1 misses (128 B lines)
  std::uint32_t max_outstanding_stores = 0;   // lines; 0: as many as loads
  double l2_bytes_per_cycle = 64;      // port between a unit and the crossbar, each way
  double store_bytes_per_cycle = 0;    // of it for stores; 0: as many
  std::uint32_t l1_bytes = 0;                 // L1 and shared memory together
  std::uint32_t l1_latency_cycles = 0;
  std::uint32_t l1_bytes_per_cycle = 128;  // of loads that look into L1, hits and misses
  std::uint32_t tlb_entries = 0;           // pages of TlbSpec::unit_page; 0: addresses need no translation
};

// Where units find translations that they do not hold themselves: one TLB of the GPU, then walks of the page table.
struct TlbSpec {
  std::int64_t unit_page = 2 << 20;  // bytes that an entry of a unit's TLB covers
  std::int64_t page = 32 << 20;      // and one of the GPU's
  std::uint32_t entries = 0;         // of the GPU's
  std::uint32_t latency_cycles = 0;  // what a miss of the unit adds that the GPU's TLB answers
  std::uint32_t walk_latency_cycles = 0;
  std::uint32_t walks = 8;  // at a time
};

struct L2Spec {
  std::int64_t bytes = 0;
  std::uint32_t slices = 0;
  std::uint32_t ways = 16;
  double bytes_per_cycle = 64;       // of one slice
  double write_bytes_per_cycle = 0;  // of its port for writes; 0: they share the one for reads
  std::uint32_t read_request_bytes = 0;     // of that port, where it is one of its own, for a request to read a line
  std::uint32_t hit_latency_cycles = 0;     // load to use, unloaded, through the crossbar
  // What an access adds that crosses to the other half of the chip: the first half of the units is near to the first
  // half of the slices. 0: one partition.
  std::uint32_t far_latency_cycles = 0;
  bool far_copies = false;                    // what units write in the other half takes a place in theirs, too
  bool coalesces_reads = false;               // requests for a line that another one waits for are served with it
  double atomic_bytes_per_cycle = 32;  // of one slice's atomic unit
  TlbSpec tlb{};                              // beside the L2
};

struct HbmSpec {
  std::int64_t bytes = 0;
  std::uint32_t channels = 0;  // each with its own bus
  Bandwidth bandwidth;         // pins, all channels
  Time latency;                // beyond an L2 hit, unloaded: another row open
  std::uint32_t banks = 16;    // of a channel
  std::uint32_t row_bytes = 1024;
  Time row_cycle;                  // tRC: activate to activate of one bank
  Time row_miss;                   // tRP + tRCD: what a row miss adds
  Time activation;                 // tFAW / 4, or tRRD: between activates of a channel
  Time write_recovery;             // from the last burst of a write to its bank's precharge
  Time turnaround;                 // bus idle between reads and writes, each way
  std::uint32_t write_batch = 32;  // writes drained together (lines, at most 64)
  Time refresh_interval;           // tREFI
  Time refresh;                    // tRFC, of all banks of a channel; 0: none
  std::uint32_t queue_lines = 64;  // requests a channel holds before its slices stall
};

struct LaunchSpec {
  Time device_latency;         // from the end of what it waited for to a kernel's first block, when already queued
  Time host_issue;             // host time for one launch call
  Time host_to_device;         // from the host's call to the device front end
  Time host_collective_issue;  // host time to issue a collective, for each GPU its process drives
  Time graph_node;             // as device_latency, of a kernel behind another one of its CUDA graph
  // Kernels of a stream that have not ended, at which the host waits for a place; 0: no bound. About 1000 were seen, in
  // each stream by itself (NVIDIA developer forum, topic 68937); in a recorded training (hta_v100_rank1of2) up to 1038
  // kernels wait to start in three steps of six, and up to 300 memsets and copies more.
  std::uint32_t queue_depth = 1024;
  // Whether a kernel's blocks wait until all blocks of those before it have got a place, by priority and then by age,
  // even where they would fit beside them: so on NVIDIA's (T. Amert et al., GPU Scheduling on the NVIDIA TX2: Hidden
  // Details Revealed, RTSS 2017, and I. Olmedo et al., Dissecting the CUDA scheduling hierarchy, RTAS 2020). Else
  // whoever fits may come in.
  bool blocks_in_order = false;
};

// How the host launches.
struct HostSpec {
  std::uint32_t gpus_per_process = 1;  // GPUs that share a host thread
  bool cuda_graph = false;             // what is issued between two host waits of an iteration is launched as one graph
};

// DMA engines that copy between GPUs. They cannot add.
struct CopyEngineSpec {
  std::uint32_t engines = 0;
  Bandwidth rate;                           // of one, each way
  Time start;                               // from a command whose turn has come to its first load
  std::uint32_t max_outstanding_lines = 0;  // of one: loads, and as many stores
  std::uint32_t packet_lines = 2;           // payload of a packet
  std::int64_t piece_bytes = 0;             // of a rank's part: what one command moves of an all-reduce
  std::uint32_t reduce_blocks = 0;          // thread blocks of the kernel that adds up a piece
};

// An engine at the link ports with memory and adders of its own (ACE: Rashidi et al., ISCA 2021).
struct EndpointEngineSpec {
  std::int64_t sram_bytes = 0;
  Bandwidth sram_rate;    // reads and writes together
  Bandwidth memory_rate;  // to L2 and HBM, each way
  Time sram_latency;
  Time start;                               // from the command of a collective to its first load
  std::uint32_t state_machines = 0;         // chunks in progress, as a collective's channels
  double adds_per_cycle = 0;                // FP32, of all adders, in cycles of the GPU's clock
  std::uint32_t max_outstanding_lines = 0;  // loads, and as many stores
  std::uint32_t packet_lines = 2;
};

// Adders at the HBM channels: a store that comes by a link may add to what stands there (T3: Pati et al., ASPLOS 2024).
struct NearMemorySpec {
  std::uint32_t update_cost = 2;  // of a channel's time, in writes of the same size
  std::uint32_t channels = 0;     // transfers that a collective keeps going
};

struct GpuEngines {
  CopyEngineSpec copy_engine;
  EndpointEngineSpec endpoint_engine;
  NearMemorySpec near_memory;
};

// What work takes of the power, and what is done when it is more than the GPU may take: the clock of units, L1,
// crossbar and L2 goes down, and their voltage with it; HBM, links and the host keep theirs (power_governor.h).
struct PowerSpec {
  double limit_W = 0;
  double idle_W = 0;  // whatever it does
  double unit_W = 0;  // of a unit that holds blocks, at GpuSpec::clock
  // Of all units' sub-partitions, kept busy without a gap at GpuSpec::clock, by Slot (phase.h).
  std::array<double, 6> slots_W{};
  double l2_pJ_per_byte = 0;  // of the lines that reach it
  double hbm_pJ_per_byte = 0;
  double link_pJ_per_byte = 0;  // of what comes by links: both ends
  Frequency lowest_clock;
  Frequency clock_step;
  double lowest_voltage = 1;  // at the lowest clock, as a share of that at GpuSpec::clock; linear in between
  Time window;                // over which power is averaged and for which a clock is chosen
};

// What communication gets a second time, for itself alone: experiments that show what sharing it costs.
struct PrivateParts {
  bool compute_units = false;
  bool cache = false;
  bool hbm = false;
  bool links = false;  // what it has under way to other GPUs is no business of a kernel's fence
};

struct GpuSpec {
  std::string name;
  std::uint32_t compute_units = 0;
  std::uint32_t gpcs = 1;  // groups of units, as even as pairs of units can be
  // Units of each GPC, where they are known; else empty. Yield makes them uneven, and pairs of units (TPCs) that are
  // left over are GPCs of their own: too small for clusters of more than two, and filled first.
  std::vector<std::uint32_t> gpc_units;
  double gpc_bytes_per_cycle = 0;  // that come into a GPC from L2; 0: not known, no bound
  std::uint32_t max_cluster_blocks = 1;   // 1: no clusters of blocks
  Frequency clock;
  ComputeUnitSpec compute_unit;
  L2Spec l2;
  HbmSpec hbm;
  LaunchSpec launch;
  // Memory synchronization domains: with one, the fence at a kernel's end waits for communication's loads from other
  // GPUs and stores to them, too; with more, the library runs in one of its own. 0: not known, as with several.
  std::uint32_t sync_domains = 0;
  Bandwidth host_link;                // PCIe or C2C, each way
  std::optional<PowerSpec> power;     // none: the clock stays
  std::optional<GpuEngines> engines;  // that can move collectives; compute units always can
  std::uint32_t grain = 1;            // lines of the memory that each line of the model stands for (coarse_gpu.h)
};

}  // namespace weft
