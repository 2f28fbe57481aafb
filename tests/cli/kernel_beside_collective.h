// A kernel beside a collective on some small GPUs.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cli/config/run_config.h"
#include "cli/config/system_of.h"
#include "cli/run/scripts.h"
#include "workloads/address_plan.h"

namespace weft {

inline constexpr std::uint32_t kUnits = 24;
inline constexpr std::int64_t kL2 = 50 << 20;

// H100s with few units; "switched", "ring", or "nodes" of one GPU each.
inline RunConfig small_config(std::uint32_t gpus, const char* topology, std::int64_t l2_bytes = kL2) {
  Json system{
      {"base", "hgx-h100"}, {"gpu", {{"compute_units", kUnits}, {"l2", {{"bytes", l2_bytes}}}}}, {"max_gpus", gpus}};
  if (std::string(topology) == "ring") {
    system["switch_reduce"] = nullptr;
    system["network"] = {{"topology", "ring"}};
  }
  if (std::string(topology) == "nodes") {
    system["base"] = "hgx-h100-cluster";
    system["network"] = {{"cluster", {{"gpus_per_node", 1}, {"nics_per_node", 1}}}};
  }
  RunConfig config = read_run_config(
      Json{{"system", system}, {"gpus", gpus}, {"workload", {{"collective", "all_reduce"}, {"bytes", 4096}}}},
      "test.json");
  config.collective.channels = 1;
  return config;
}

// Blocks of which one fills a unit: they read, and compute for `us`.
inline KernelDemand blocks_of(std::uint32_t blocks, double us, std::uint64_t bytes) {
  KernelDemand demand;
  demand.shape.grid = {blocks, 1, 1};
  demand.shape.block = {1024, 1, 1};
  demand.shape.registers_per_thread = 64;
  demand.reads = {{.base = std::uint64_t{1} << 30, .bytes_per_block = bytes}};
  demand.iterations = 4;
  demand.extra_cycles_per_block = us * 1830;
  return demand;
}

// A kernel and a collective, each in a stream of its own, on all GPUs.
inline std::vector<Program> programs_beside(const RunConfig& config, const KernelDemand& kernel, CollectiveKind kind,
                                            std::int64_t bytes) {
  Program program;
  program.priorities = {0, 1};
  ProgramOp op;
  op.kernel = kernel;
  op.stream = StreamId{0};
  program.ops.push_back(op);
  op = ProgramOp();
  op.kind = ProgramOpKind::collective;
  op.stream = StreamId{1};
  op.collective = {.kind = kind,
                   .bytes = Bytes(bytes),
                   .group = GpuGroup::first(config.gpus),
                   .send_address = kFirstAddress,
                   .receive_address = kFirstAddress + static_cast<std::uint64_t>(bytes)};
  program.ops.push_back(op);
  return std::vector<Program>(config.gpus, program);
}

}  // namespace weft
