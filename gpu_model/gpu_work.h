// What a GPU is given to run, and what it counts and books meanwhile.
#pragma once

#include <cstdint>
#include <vector>

#include "gpu_model/gpu_spec.h"
#include "gpu_model/phase.h"
#include "sim/program.h"
#include "sim/time_bins.h"

namespace weft {

struct HostState;
struct PushedOutput;
class GpuValues;

// What a GPU runs. Everything outlives the GPU.
struct GpuWork {
  const Program* program = nullptr;
  // By op: the part of a collective or copy; null for kernels.
  std::vector<const ScriptedKernel*> scripts;
  std::uint32_t flags = 0;  // counters that collectives meet at
  HostSpec host;
  PrivateParts private_parts;
  GpuValues* values = nullptr;      // where values travel; only collectives have them
  const HostState* from = nullptr;  // null: from the beginning
  // Kernels that run by themselves leave out blocks once they have settled (wave_skip.h); what that takes away from
  // the end of the run is Gpu::skipped().
  bool skip_waves = false;
  // By op, empty: none. A kernel with a time here takes that and nothing else of the GPU; a collective or copy ends so
  // much after its script.
  std::vector<SubCycle> lasts = {};
  // Kernels take the time that Gpu::set_end() says, and nothing of the GPU; those that push sums run.
  bool kernels_timed = false;
  // By op: so do collectives, if it says so when they start. Null: none.
  const std::vector<bool>* timed_collectives = nullptr;
  // By op, empty: none. What kernels push to switches, where the GPU has links; else they store it.
  std::vector<const PushedOutput*> pushes = {};
  // Blocks that stay from the beginning until all operations have ended, which then is counted at the flag.
  std::vector<const ScriptedKernel*> residents = {};
  std::uint32_t stop_flag = 0;
};

// What communication held a kernel up with, booked while it ran: subcycles.
struct KernelLedger {
  // Over all lines: from the unit to L2 and back, and what of it was for communication's requests.
  double latency = 0;
  double held_by_port = 0;  // the unit's, shared with a collective's block
  double held_by_cache = 0;
  double held_by_hbm = 0;
  // Of the last block to end, those before it in its place, and the stores after it: the chain that the kernel took.
  double stall = 0;          // for memory: nothing of the block in a pipe
  double held_by_pipe = 0;   // for rounds of communication there
  double slow_clock = 0;     // for a clock below the full one, in pipes
  double held_by_links = 0;  // at the kernel's end, for what communication has under way to others
  bool displaced = false;    // a block of a collective kept one from a unit
};

// How many phases a group of warps of a collective has been through.
struct CollectiveSteps {
  std::uint32_t agent = 0;
  double phases = 0;        // the one that it is in counts in part
  std::uint32_t phase = 0;  // that it is in,
  Time entered;             // since then
  std::uint64_t work = 0;   // what that one does (phase_repeats.h)
  bool waits = false;       // for a flag
};
// How far a kernel is.
struct KernelWork {
  std::uint32_t slot = 0;          // among those that run
  std::uint32_t sequence = 0;      // of its launch
  std::uint32_t rounds = 1;        // of a block
  std::uint64_t resident = 0;      // blocks that run
  std::uint64_t blocks_ahead = 0;  // that have no place yet
  double done = 0;                 // rounds
  double turn = 0;                 // rounds after which it is worth looking again
};

struct GpuStatistics {
  std::int64_t memory_transactions = 0;          // lines that reached L2, of local units and of links
  std::int64_t communication_fetched_bytes = 0;  // from HBM, for collectives
  std::int64_t delivered_bytes = 0;              // payload that came by links
  std::int64_t flags_posted = 0;                 // to one GPU; and those that came from one
  std::int64_t flags_come = 0;
  double unit_seconds_compute = 0;  // units that hold at least one block of a kernel, and none of a collective
  double unit_seconds_communication = 0;
};

// What a GPU took of power, and the clock it was left with.
struct PowerUse {
  double joules = 0;
  double mean_W = 0, highest_W = 0;  // the highest of whole windows
  double mean_clock_Hz = 0, lowest_clock_Hz = 0;
  double window_s = 0;
  std::vector<double> window_W, window_Hz;  // whole windows
};

// Bytes of the HBM; communication's are among those read and written.
struct HbmBytes {
  std::int64_t read = 0, written = 0, communication = 0;
};

// The same over time, of the first kMostGpus GPUs of a run: memory is bounded, however many there are.
struct HbmOverTime {
  static constexpr std::uint32_t kMostGpus = 64;
  TimeBins read, written, communication;
};

}  // namespace weft
