// Bandwidths of the L2 and of the HBM that the GPU probe measured (suite `machine`), and what a system's model has: the
// same tensors, streams and blocks.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <fstream>
#include <random>

#include "bench/gpu/model/simulate_cache.h"
#include "cli/config/system_of.h"
#include "gpu_model/kernels_in_a_row.h"
#include "sim/config_file.h"
#include "sim/error.h"

namespace weft {
namespace {

constexpr std::uint64_t kBase = std::uint64_t{1} << 28;
constexpr std::uint64_t kTurnBytes = 512 * 16;  // what a block of 512 threads takes of a tensor at a time
constexpr std::uint32_t kTurnsAtATime = 4;
constexpr std::uint64_t kMostL2Bytes = std::uint64_t{24} << 20;  // of all tensors
// Of a tensor: a quarter of the probe's, to be done sooner.
constexpr std::uint64_t kMostBytes = std::uint64_t{256} << 20;

struct Case {
  std::string level;
  std::uint32_t reads = 0, writes = 0;
  std::uint32_t blocks = 0;  // each has a unit, as far as there are
  std::uint64_t tensor_bytes = 0;
  double measured_GBps = 0;
};

// Each block goes over a part of each tensor, `repeats` times.
KernelDemand streams_of(const Case& c, std::uint64_t tensor_bytes, std::uint32_t repeats, std::uint32_t units) {
  KernelDemand demand;
  demand.shape.grid = {c.blocks * repeats, 1, 1};
  demand.shape.block = {512, 1, 1};
  demand.shape.registers_per_thread = 32;
  // No more blocks at once than the probe has.
  demand.shape.shared_memory_bytes = c.blocks <= units ? 200 << 10 : c.blocks <= 2 * units ? 100 << 10 : 50 << 10;
  const std::uint64_t part = tensor_bytes / c.blocks / kLineBytes * kLineBytes;
  demand.iterations = static_cast<std::uint32_t>(std::max<std::uint64_t>(1, part / kTurnBytes));
  demand.stages = kTurnsAtATime;
  for (std::uint32_t t = 0; t < c.reads + c.writes; ++t) {
    (t < c.reads ? demand.reads : demand.writes)
        .push_back({.base = kBase + t * (tensor_bytes + 4096), .bytes_per_block = part, .modulo = c.blocks});
  }
  return demand;
}

// A GPU of so few units, where no more have work.
GpuSpec with_units(GpuSpec spec, std::uint32_t units) {
  if (units >= spec.compute_units) return spec;
  spec.compute_units = units;
  spec.gpcs = 1;
  spec.gpc_units.clear();
  spec.gpc_bytes_per_cycle = 0;  // these blocks come to all GPCs
  return spec;
}

// Of the second of two equal kernels: the first one leaves the L2 as it will be found.
double seconds_of(const GpuSpec& spec, const KernelDemand& demand) {
  return to_seconds(time_of_last(spec, {demand, demand}));
}

double simulated_GBps(const GpuSpec& whole, const Case& c) {
  const GpuSpec spec = with_units(whole, c.blocks);
  const bool in_l2 = c.level == "L2";
  // Blocks that go on take any unit, so both halves of an L2 get copies of all: less, so that they have room.
  const std::uint64_t most =
      in_l2 ? kMostL2Bytes / (c.reads + c.writes) : std::min(kMostBytes, c.blocks * kMostBytes / 16);
  const std::uint64_t bytes = std::min(c.tensor_bytes, most);
  const std::uint32_t repeats = in_l2 ? std::clamp<std::uint32_t>(c.blocks / 8, 4, 24) : 1;
  const KernelDemand demand = streams_of(c, bytes, repeats, whole.compute_units);
  const double moved = static_cast<double>(c.reads + c.writes) * static_cast<double>(bytes / c.blocks / kLineBytes) *
                       kLineBytes * c.blocks * repeats;
  return moved / seconds_of(spec, demand) * 1e-9;
}

std::vector<Case> cases_of(const Json& probe) {
  std::vector<Case> cases;
  const Json& memory = probe.at("memory");
  for (const Json& item : memory.at("bandwidth")) {
    if (item.at("level") == "L1" || (item.at("level") == "L2" && item.at("tensor_bytes") == 4 << 20)) continue;
    const std::string operation = item.at("operation");
    const std::uint32_t reads = operation == "triad" ? 2 : 1;
    cases.push_back({.level = item.at("level"),
                     .reads = operation == "write" ? 0 : reads,
                     .writes = operation == "read" ? 0U : 1U,
                     .blocks = item.at("blocks"),
                     .tensor_bytes = item.at("tensor_bytes"),
                     .measured_GBps = item.at("GBps")});
  }
  if (!memory.contains("mixes")) return cases;
  for (const Json& item : memory.at("mixes")) {
    if (item.at("cluster") != 1) continue;  // places within a GPC: the model has no port of a GPC
    const std::uint32_t reads = item.at("reads"), writes = item.at("writes");
    const bool in_l2 = item.at("level") == "L2";
    cases.push_back({.level = in_l2 ? "L2" : "HBM",
                     .reads = reads,
                     .writes = writes,
                     .blocks = item.at("blocks"),
                     .tensor_bytes = (in_l2 ? std::uint64_t{16} << 20 : std::uint64_t{3} << 30) / (reads + writes),
                     .measured_GBps = item.at("GBps")});
  }
  return cases;
}

// Random pieces of memory at once through the L2, without units: what the HBM makes of them.
double pieces_GBps(const GpuSpec& spec, bool writes, std::uint32_t piece_bytes) {
  L2Cache l2(spec.l2, spec.hbm, spec.clock);
  constexpr std::uint32_t kPieces = 1 << 22;
  const std::uint32_t lines = std::max<std::uint32_t>(piece_bytes / kLineBytes, 1);
  const auto sectors = static_cast<std::uint32_t>((1U << std::min<std::uint32_t>(piece_bytes / kSectorBytes, 4)) - 1);
  std::mt19937 random(7);
  const std::uint64_t all = std::uint64_t{1} << 23;  // lines: 1 GiB
  const std::uint32_t count = std::min<std::uint32_t>(kPieces, static_cast<std::uint32_t>(kMostBytes / piece_bytes));
  // As many as the units can have under way ask at a time.
  const std::uint32_t window = spec.compute_units * spec.compute_unit.max_outstanding_lines / lines;
  std::vector<SubCycle> done(window, 0);
  SubCycle now = 0, end = 0, from = 0;
  for (std::uint32_t i = 0; i < count; ++i) {
    if (i == count / 2) from = end;  // the L2 is full by now
    now = std::max(now, done[i % window]);
    const auto first = static_cast<LineAddress>(random() % (all / lines) * lines);
    const L2Cache::Lines asked{.first = first, .count = lines, .first_sectors = sectors, .last_sectors = sectors};
    const L2Cache::Access access = writes ? l2.write(asked, now) : l2.read(asked, now);
    done[i % window] = access.done;
    end = std::max(end, access.done);
  }
  const double bytes = static_cast<double>(piece_bytes) * (count - count / 2);
  return bytes / to_seconds(ClockDomain(spec.clock).to_time(end - from)) * 1e-9;
}

void print_pieces(const Json& probe, const GpuSpec& spec) {
  if (!probe.at("memory").contains("pieces")) return;
  for (const Json& item : probe.at("memory").at("pieces")) {
    const std::uint32_t bytes = item.at("piece_bytes");
    if (bytes > 4096) continue;
    const double simulated = pieces_GBps(spec, item.at("operation") == "write", bytes);
    const double measured = item.at("GBps");
    fmt::print("pieces {:>5} B {:<5} {:7.0f} {:7.0f} {:+6.1f} %\n", bytes, std::string(item.at("operation")), measured,
               simulated, 100 * (simulated / measured - 1));
  }
}

// An elementwise kernel: parts of `part` bytes of each tensor, a block each.
double elementwise_GBps(const GpuSpec& spec, std::uint32_t reads, std::uint32_t writes, std::uint32_t threads,
                        std::uint64_t part) {
  KernelDemand demand;
  const auto blocks = static_cast<std::uint32_t>((std::uint64_t{128} << 20) / part);
  demand.shape.grid = {blocks, 1, 1};
  demand.shape.block = {threads, 1, 1};
  demand.shape.registers_per_thread = 32;
  demand.iterations = static_cast<std::uint32_t>(std::max<std::uint64_t>(1, part / (std::uint64_t{threads} * 16)));
  for (std::uint32_t t = 0; t < reads + writes; ++t) {
    (t < reads ? demand.reads : demand.writes)
        .push_back({.base = kBase + t * (blocks * part + 4096), .bytes_per_block = part});
  }
  return static_cast<double>((reads + writes) * blocks * part) / seconds_of(spec, demand) * 1e-9;
}

void print_elementwise(const Json& probe, const GpuSpec& spec) {
  for (const Json& victim : probe.at("victims")) {
    if (victim.at("name") != "add_fp32_64M") continue;
    const double measured = 3.0 * (std::uint64_t{256} << 20) / victim.at("alone_us").at("median").get<double>() * 1e-3;
    for (const auto& [threads, part] : {std::pair{128U, 2048U}, {256U, 8192U}, {512U, 32768U}, {512U, 131072U}}) {
      const double simulated = elementwise_GBps(spec, 2, 1, threads, part);
      fmt::print("add, {:>6} B a block {:9.0f} {:9.0f} {:+6.1f} %\n", part, measured, simulated,
                 100 * (simulated / measured - 1));
    }
  }
}

int main_of(int argc, char** argv) {
  CLI::App app("Bandwidths of the L2 and the HBM, measured by weft_gpu_probe and simulated");
  std::string file, system = "hgx-h200";
  std::vector<std::string> sets;
  std::uint32_t least_blocks = 1;
  app.add_option("FILE", file, "Results of weft_gpu_probe")->required();
  app.add_option("--system", system, "A system's name")->capture_default_str();
  app.add_option("--set", sets, "Override a value, e.g. gpu.hbm.activation_ns=2.5");
  app.add_option("--least-blocks", least_blocks, "Leave out what fewer blocks do")->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  std::ifstream in(file);
  if (!in) throw MissingInput(file);
  const Json probe = Json::parse(in);
  Json document{{"system", system}};
  for (const std::string& set : sets) apply_set(document, set, "--set");
  JsonReader top(document, "configuration");
  const GpuSpec spec = system_of(top).gpu;
  if (probe.contains("cache") && probe.at("cache").contains("adds")) print_cache(probe, spec);
  if (!probe.at("memory").contains("bandwidth")) return 0;  // suite `machine` was not run
  fmt::print("level reads writes blocks  measured simulated GB/s\n");
  for (const Case& c : cases_of(probe)) {
    if (c.blocks < least_blocks) continue;
    const double simulated = simulated_GBps(spec, c);
    fmt::print("{:<4} {:>5} {:>6} {:>6} {:9.0f} {:9.0f} {:+6.1f} %\n", c.level, c.reads, c.writes, c.blocks,
               c.measured_GBps, simulated, 100 * (simulated / c.measured_GBps - 1));
    std::fflush(stdout);
  }
  print_elementwise(probe, spec);
  print_pieces(probe, spec);
  return 0;
}

}  // namespace
}  // namespace weft

// SystemC's library asks for it where nothing of it is left out.
extern "C" int sc_main(int /*argc*/, char* /*argv*/[]) { return 0; }

int main(int argc, char** argv) {
  try {
    return weft::main_of(argc, argv);
  } catch (const std::exception& error) {
    fmt::print(stderr, "weft_simulate_machine: {}\n", error.what());
    return 1;
  }
}
