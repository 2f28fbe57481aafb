#include "cli/config/gpu_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <numeric>

#include "cli/config/engine_fields.h"
#include "cli/config/power_fields.h"
#include "gpu_model/l2_cache.h"
#include "gpu_model/warp_schedulers.h"

namespace weft {

namespace {

constexpr std::int64_t kLineBytes = 128;

template <class Fields>
void pipe_fields(Fields& f, std::array<double, kPipeCount>& values, double low, double high) {
  f.number("tensor_fp16", values[static_cast<std::size_t>(Pipe::tensor_fp16)], low, high);
  f.number("tensor_tf32", values[static_cast<std::size_t>(Pipe::tensor_tf32)], low, high);
  f.number("fp32", values[static_cast<std::size_t>(Pipe::fp32)], low, high);
  f.number("fp64", values[static_cast<std::size_t>(Pipe::fp64)], low, high, Presence::optional);
  f.number("sfu", values[static_cast<std::size_t>(Pipe::sfu)], low, high, Presence::optional);
}

template <class Fields>
void compute_unit_fields(Fields& f, ComputeUnitSpec& unit) {
  f.count("schedulers", unit.schedulers, 1, WarpSchedulers::kMost, Presence::optional);
  f.choice("scheduler_policy", unit.policy,
           {{WarpPolicy::greedy_then_oldest, "gto"}, {WarpPolicy::round_robin, "round_robin"}}, Presence::optional);
  f.count("barrier_cycles", unit.barrier_cycles, 0, 1 << 20, Presence::optional);
  f.count("max_threads", unit.max_threads, 32, 65536);
  f.count("max_blocks", unit.max_blocks, 1, 1024);
  f.count("registers", unit.registers, 1024, 1 << 24);
  f.count("shared_memory_bytes", unit.shared_memory_bytes, 0, 1 << 30);
  f.count("reserved_shared_memory_bytes", unit.reserved_shared_memory_bytes, 0, 1 << 20);
  if (Fields::kReads ? f.has("shared_memory_carveouts_KiB") : !unit.shared_memory_carveouts_KiB.empty()) {
    f.counts("shared_memory_carveouts_KiB", unit.shared_memory_carveouts_KiB, 0, 1 << 20, 64);
    auto& sizes = unit.shared_memory_carveouts_KiB;
    f.refuse_unless(std::ranges::is_sorted(sizes), "shared_memory_carveouts_KiB",
                    fmt::format("expected ascending sizes, got {}", fmt::join(sizes, ", ")));
    // Those of a chip: another amount of shared memory has none.
    if (Fields::kReads && std::uint64_t{sizes.back()} * 1024 != unit.shared_memory_bytes) sizes.clear();
  }
  f.object("flops_per_cycle", [&](auto& pipes) { pipe_fields(pipes, unit.flops_per_cycle, 0.001, 1e9); });
  f.object("pipe_efficiency", [&](auto& pipes) { pipe_fields(pipes, unit.pipe_efficiency, 0.001, 1); });
  f.object(
      "attention_efficiency",
      [&](auto& passes) {
        const auto pass = [&](const char* key, double& value) {
          passes.number(key, value, 0, 1, Presence::optional);
          passes.refuse_unless(value == 0 || value >= 0.001, key,
                               fmt::format("expected 0 or at least 0.001, got {}", value));
        };
        pass("forward", unit.attention_efficiency.forward);
        pass("backward", unit.attention_efficiency.backward);
      },
      Presence::optional);
  f.count("max_outstanding_lines", unit.max_outstanding_lines, 1, 1 << 20);
  f.count("max_outstanding_stores", unit.max_outstanding_stores, 0, 1 << 20, Presence::optional);
  f.number("l2_bytes_per_cycle", unit.l2_bytes_per_cycle, 1, 1 << 16);
  f.number("store_bytes_per_cycle", unit.store_bytes_per_cycle, 0, 1 << 16, Presence::optional);
  f.count("l1_bytes", unit.l1_bytes, 0, 1 << 30);
  f.count("l1_latency_cycles", unit.l1_latency_cycles, 1, 1 << 20);
  f.count("l1_bytes_per_cycle", unit.l1_bytes_per_cycle, 1, 1 << 16, Presence::optional);
  f.count("tlb_entries", unit.tlb_entries, 0, 16, Presence::optional);
}

template <class Fields>
void tlb_fields(Fields& f, TlbSpec& tlb) {
  f.count("unit_page_bytes", tlb.unit_page, 4096, std::int64_t{1} << 40);
  f.count("page_bytes", tlb.page, 4096, std::int64_t{1} << 40);
  f.count("entries", tlb.entries, 0, 1 << 24);
  f.count("latency_cycles", tlb.latency_cycles, 0, 1 << 20);
  f.count("walk_latency_cycles", tlb.walk_latency_cycles, 0, 1 << 20);
  f.count("walks", tlb.walks, 1, 1024);
  const auto power = [&](std::int64_t bytes) { return std::has_single_bit(static_cast<std::uint64_t>(bytes)); };
  f.refuse_unless(power(tlb.unit_page), "unit_page_bytes",
                  fmt::format("expected a power of two, got {}", tlb.unit_page));
  f.refuse_unless(power(tlb.page), "page_bytes", fmt::format("expected a power of two, got {}", tlb.page));
  f.refuse_unless(tlb.entries % 16 == 0, "entries", fmt::format("expected a multiple of 16, got {}", tlb.entries));
}

template <class Fields>
void l2_fields(Fields& f, L2Spec& l2) {
  f.count("bytes", l2.bytes, kLineBytes, std::int64_t{1} << 40);
  f.count("slices", l2.slices, 2, 256);
  f.count("ways", l2.ways, 2, 16);
  f.refuse_unless(std::has_single_bit(l2.ways), "ways", fmt::format("expected a power of two, got {}", l2.ways));
  f.number("bytes_per_cycle", l2.bytes_per_cycle, 1, 1 << 16);
  f.number("write_bytes_per_cycle", l2.write_bytes_per_cycle, 0, 1 << 16, Presence::optional);
  f.count("read_request_bytes", l2.read_request_bytes, 0, kLineBytes, Presence::optional);
  f.count("hit_latency_cycles", l2.hit_latency_cycles, 2, 1 << 20);
  f.count("far_latency_cycles", l2.far_latency_cycles, 0, 1 << 20);
  f.flag("far_copies", l2.far_copies, Presence::optional);
  f.refuse_unless(!l2.far_copies || l2.slices % 2 == 0, "far_copies",
                  "expected an even number of slices, got an odd one");
  f.flag("coalesces_reads", l2.coalesces_reads, Presence::optional);
  f.number("atomic_bytes_per_cycle", l2.atomic_bytes_per_cycle, 1, 1 << 16, Presence::optional);
  f.object(
      "tlb", [&](auto& tlb) { tlb_fields(tlb, l2.tlb); }, Presence::optional);
  const std::int64_t set_bytes = kLineBytes * l2.ways * l2.slices;
  f.refuse_unless(l2.bytes >= set_bytes && l2.bytes % set_bytes == 0, "bytes",
                  fmt::format("expected a multiple of slices * ways * 128 B = {}, got {}", set_bytes, l2.bytes));
}

template <class Fields>
void hbm_fields(Fields& f, HbmSpec& hbm) {
  f.size_GiB("memory_GiB", hbm.bytes, 1e-6, 1e6);
  f.count("channels", hbm.channels, 1, 65536);
  f.rate_GBps("bandwidth_GBps", hbm.bandwidth, kMinGBps, kMaxGBps);
  f.time_ns("latency_ns", hbm.latency, kMinTimeNs, kMaxTimeNs);
  f.count("banks", hbm.banks, 1, 4096);
  f.count("row_bytes", hbm.row_bytes, kLineBytes, 1 << 20);
  f.time_ns("row_cycle_ns", hbm.row_cycle, 0, kMaxTimeNs);
  f.time_ns("row_miss_ns", hbm.row_miss, 0, kMaxTimeNs);
  f.time_ns("activation_ns", hbm.activation, 0, kMaxTimeNs);
  f.time_ns("write_recovery_ns", hbm.write_recovery, 0, kMaxTimeNs);
  f.time_ns("turnaround_ns", hbm.turnaround, 0, kMaxTimeNs);
  f.count("write_batch", hbm.write_batch, 1, Hbm::kMostBatchLines);
  f.time_ns("refresh_interval_ns", hbm.refresh_interval, kMinTimeNs, kMaxTimeNs);
  f.time_ns("refresh_ns", hbm.refresh, 0, kMaxTimeNs);
  f.count("queue_lines", hbm.queue_lines, 1, Hbm::kMostQueuedLines);
  f.refuse_unless(
      hbm.refresh_interval > hbm.refresh + hbm.row_miss, "refresh_interval_ns",
      fmt::format("expected more than a refresh and a row miss, {:.1f}, got {:.1f}",
                  to_microseconds(hbm.refresh + hbm.row_miss) * 1e3, to_microseconds(hbm.refresh_interval) * 1e3));
  f.refuse_unless(hbm.row_bytes % kLineBytes == 0, "row_bytes",
                  fmt::format("expected a multiple of 128, got {}", hbm.row_bytes));
}

template <class Fields>
void all_fields(Fields& f, GpuSpec& gpu) {
  f.text("name", gpu.name);
  f.count("compute_units", gpu.compute_units, 1, 65536);
  f.count("gpcs", gpu.gpcs, 1, 65536, Presence::optional);
  if (Fields::kReads ? f.has("gpc_units") : !gpu.gpc_units.empty()) {
    f.counts("gpc_units", gpu.gpc_units, 1, 65536, 65536);
    // Those of a board: a GPU of more or fewer units has `gpcs` as even as can be.
    if (std::accumulate(gpu.gpc_units.begin(), gpu.gpc_units.end(), std::uint64_t{0}) == gpu.compute_units) {
      gpu.gpcs = static_cast<std::uint32_t>(gpu.gpc_units.size());
    } else {
      gpu.gpc_units.clear();
    }
  }
  f.number("gpc_bytes_per_cycle", gpu.gpc_bytes_per_cycle, 0, 1000000, Presence::optional);
  f.count("max_cluster_blocks", gpu.max_cluster_blocks, 1, 1024, Presence::optional);
  f.refuse_unless(gpu.gpcs <= gpu.compute_units, "gpcs",
                  fmt::format("expected at most the {} compute units, got {}", gpu.compute_units, gpu.gpcs));
  f.clock_MHz("clock_MHz", gpu.clock, 0.001, 1e6);
  f.object("compute_unit", [&](auto& unit) { compute_unit_fields(unit, gpu.compute_unit); });
  f.object("l2", [&](auto& l2) { l2_fields(l2, gpu.l2); });
  f.object("hbm", [&](auto& hbm) { hbm_fields(hbm, gpu.hbm); });
  f.object("launch", [&](auto& launch) {
    launch.time_ns("device_latency_ns", gpu.launch.device_latency, 0, kMaxTimeNs);
    launch.time_ns("host_issue_ns", gpu.launch.host_issue, 0, kMaxTimeNs);
    launch.time_ns("host_collective_issue_ns", gpu.launch.host_collective_issue, 0, kMaxTimeNs);
    launch.time_ns("host_to_device_ns", gpu.launch.host_to_device, 0, kMaxTimeNs);
    launch.time_ns("graph_node_ns", gpu.launch.graph_node, 0, kMaxTimeNs, Presence::optional);
    launch.count("queue_depth", gpu.launch.queue_depth, 0, 1'000'000, Presence::optional);
    launch.flag("blocks_in_order", gpu.launch.blocks_in_order, Presence::optional);
  });
  f.count("sync_domains", gpu.sync_domains, 0, 64, Presence::optional);
  f.rate_GBps("host_link_GBps", gpu.host_link, kMinGBps, kMaxGBps);
  if (Fields::kReads || gpu.power) {
    f.object(
        "power",
        [&](auto& power) {
          if (!gpu.power) gpu.power.emplace();
          power_fields(power, *gpu.power, gpu.clock);
        },
        Presence::optional);
  }
  if (Fields::kReads || gpu.engines) {
    f.object(
        "engines",
        [&](auto& engines) {
          if (!gpu.engines) gpu.engines.emplace();
          engine_fields(engines, *gpu.engines);
        },
        Presence::optional);
  }
  const std::int64_t set_bytes = std::int64_t{gpu.l2.slices} * gpu.l2.ways * kLineBytes;
  f.refuse_unless(gpu.l2.bytes >= set_bytes, "l2",
                  fmt::format("expected at least a set a slice, {} bytes, got {}", set_bytes, gpu.l2.bytes));
  const auto service = static_cast<std::uint32_t>(kLineBytes / std::min<double>(gpu.l2.bytes_per_cycle, kLineBytes));
  f.refuse_unless(gpu.l2.hit_latency_cycles > 2 * service + 2, "l2",
                  fmt::format("expected hit_latency_cycles above {}, twice a slice's time for a line, got {}",
                              2 * service + 2, gpu.l2.hit_latency_cycles));
  const Time burst = transfer_time(Bytes(kLineBytes), Bandwidth(gpu.hbm.bandwidth.count() / gpu.hbm.channels));
  const Time loaded = gpu.hbm.row_miss + burst + burst;  // twice: it is rounded to cycles
  f.refuse_unless(gpu.hbm.latency >= loaded, "hbm",
                  fmt::format("expected latency_ns of at least {:.1f}, a row miss and two bursts, got {:.1f}",
                              to_microseconds(loaded) * 1e3, to_microseconds(gpu.hbm.latency) * 1e3));
  f.refuse_unless(
      L2Cache::tags_reach(gpu.l2, gpu.hbm), "hbm",
      fmt::format("expected memory that the tags of the L2 model tell apart ({} lines a slice at most), got {}",
                  L2Cache::most_lines_per_slice(gpu.l2), gpu.hbm.bytes / kLineBytes / gpu.l2.slices));
  f.refuse_unless(gpu.l2.slices % gpu.hbm.channels == 0 ||
                      (gpu.hbm.channels % gpu.l2.slices == 0 && std::has_single_bit(gpu.hbm.channels / gpu.l2.slices)),
                  "hbm",
                  fmt::format("expected channels that divide the {} L2 slices, or that many times 2, 4, ..., got {}",
                              gpu.l2.slices, gpu.hbm.channels));
}

}  // namespace

void gpu_fields(FieldReader& fields, GpuSpec& gpu) { all_fields(fields, gpu); }
void gpu_fields(FieldWriter& fields, GpuSpec& gpu) { all_fields(fields, gpu); }

}  // namespace weft
