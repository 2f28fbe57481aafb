// What one simulation found, before it is written: the content of result.json, kernels.csv and the timeline.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/json_reader.h"
#include "sim/program.h"

namespace weft {

struct IterationTimes {
  double time_s = 0;
  std::optional<double> forward_s, backward_s, backward_isolated_s, backward_slowdown;
  double communication_s = 0, communication_exposed_s = 0, communication_overlapped_s = 0;
  std::optional<double> optimizer_s;
  double idle_s = 0;
};

struct SlowdownByCause {
  double compute_units = 0, hbm = 0, cache = 0, links = 0;
};  // seconds of added backward time

struct CollectiveResult {
  std::string name, kind, algorithm, protocol;
  std::uint32_t channels = 0;
  std::int64_t bytes = 0;
  std::uint32_t ranks = 0;
  double start_s = 0, end_s = 0, algbw_GBps = 0, busbw_GBps = 0;
  double waiting_s = 0;  // from the first rank's kernel to the last one's
};

// Blocks beside the workload, on one GPU.
struct BesideResult {
  std::string work;
  std::uint32_t blocks = 0;
  std::int64_t loaded_bytes = 0, stored_bytes = 0;
  double loaded_GBps = 0, stored_GBps = 0;  // until the workload was through
};

// Where gpu.power is modelled.
struct PowerResult {
  double energy_J = 0, mean_W = 0, highest_W = 0;  // the highest of whole windows
  double mean_clock_MHz = 0, lowest_clock_MHz = 0;
};

struct GpuResult {
  std::uint32_t id = 0;
  std::optional<std::int64_t> peak_memory_bytes;
  std::array<std::optional<std::int64_t>, kMemoryClassCount> memory;
  std::optional<bool> fits;
  std::int64_t hbm_read_bytes = 0, hbm_write_bytes = 0, hbm_communication_bytes = 0;
  std::int64_t chunks_summed = 0, chunks_sent_again = 0;  // by routers, for this GPU
  double compute_unit_seconds_compute = 0, compute_unit_seconds_communication = 0, busy_fraction = 0;
  std::vector<BesideResult> beside = {};
  std::optional<PowerResult> power = std::nullopt;
};

struct LinkResult {
  std::string name;
  std::int64_t bytes = 0;       // payload
  std::int64_t wire_bytes = 0;  // headers included
  double busy_fraction = 0, peak_fraction = 0;
  double stall_s = 0;  // idle while a packet waited to be sent
  std::int64_t queue_high_water_packets = 0;
};

struct SwitchResult {
  std::string name;
  std::int64_t reduced_bytes = 0, multicast_bytes = 0, table_high_water_bytes = 0;
  double table_stall_s = 0;
  std::vector<double> port_stall_s = {};  // by physical port; empty: no reducer
  std::int64_t table_entries_opened = 0, table_refused = 0, wasted_replies = 0, table_evictions = 0, table_timeouts = 0;
  double table_mean_entries = 0;  // over the run, of all ports
  double table_residence_s = 0;   // of an entry, on average
  double adder_busy_fraction = 0;
  // Of routers that sum chunks.
  std::int64_t slots_high_water = 0, stalled_packets = 0, duplicates = 0, lost_packets = 0;
};

struct EngineResult {
  double wall_s = 0;
  std::uint32_t threads = 1;
  std::int64_t memory_transactions = 0, packets = 0;
  double simulated_s = 0, skipped_fraction = 0, sampling_error_estimate = 0;
  std::int64_t peak_rss_bytes = 0;
};

// Functional mode: how good the results of all ranks are, against exact sums (network/sum_check.h).
struct FunctionalResult {
  std::string type, accumulator;  // what each addition is rounded to
  std::string order;              // of additions in a switch; empty: none added
  // Elements of results that differ: where all ranks have the same, of one.
  std::int64_t elements = 0, not_finite = 0, correctly_rounded = 0, wrong = 0;
  std::optional<bool> same_on_all_ranks;  // to the bit; absent where ranks have different parts
  double max_absolute_error = 0, max_relative_error = 0, max_error_ulps = 0, max_bound_share = 0;
  std::string digest;  // SHA-256 of all results, rank by rank
};

// One operation that ran on a GPU: a row of kernels.csv and a slice of the timeline.
struct OperationRecord {
  std::uint32_t gpu = 0, stream = 0, op = 0, iteration = 0;
  std::string name;
  TrainingPhase phase = TrainingPhase::other;
  bool communication = false;
  double start_s = 0, end_s = 0;
  double early_s = 0;                // of one GPU that stands for others: in the mean they are through so much earlier
  std::optional<double> isolated_s;  // the kernel by itself on an idle GPU
  std::optional<double> undisturbed_s;               // the kernel in the same program, but without any communication
  SlowdownByCause causes;                            // of (end - start) - undisturbed, summing to it
  double beside_waiting_s = 0, beside_moving_s = 0;  // of a kernel's time, beside collectives that only wait, or move
};

// A value over time for the timeline's counter tracks: its mean over each period, of memory its value where that is
// highest.
enum class CounterKind { hbm, memory, link, power, clock };
struct CounterTrack {
  std::string name, unit;
  double period_s = 0;
  std::vector<double> values;
  std::optional<std::uint32_t> gpu;  // the GPU it belongs to; absent: the whole system
  CounterKind kind = CounterKind::hbm;
  std::optional<double> limit = std::nullopt;  // what the hardware has of it
};

struct OutOfMemory {
  std::uint32_t gpu = 0;
  std::string at;  // the operation
  std::int64_t bytes_over = 0;
  std::vector<std::pair<std::string, std::int64_t>> largest_holders;
};

struct RunResult {
  Json config;
  std::string config_sha256;
  std::optional<std::string> trace_sha256;  // of the trace that was replayed, unpacked
  std::string status = "ok";                // "ok" | "out_of_memory" | "deadlock"
  std::optional<OutOfMemory> out_of_memory;
  IterationTimes iteration;
  std::vector<double> per_iteration_s;
  std::optional<SlowdownByCause> slowdown_by_cause;
  SlowdownByCause slowdown_waiting;  // of that, beside collectives that waited for a rank
  std::optional<double> samples_per_s, tokens_per_s, scaling_efficiency;
  std::vector<CollectiveResult> collectives;
  std::vector<GpuResult> gpus;
  std::vector<LinkResult> links;
  std::vector<SwitchResult> switches;
  std::optional<FunctionalResult> functional;
  EngineResult engine;
  std::vector<OperationRecord> operations;
  std::vector<CounterTrack> counters;
  std::vector<std::string> notes;  // for people: what was guessed, what fell back
};

}  // namespace weft
