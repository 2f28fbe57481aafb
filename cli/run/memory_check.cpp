#include "cli/run/memory_check.h"

#include "cli/run/beside.h"
#include "gpu_model/collective_kernel.h"
#include "workloads/memory_plan.h"

namespace weft {

std::int64_t library_buffer_bytes(const RunConfig& config) {
  if (config.gpus < 2) return 0;
  const auto& cluster = config.system.network.cluster;
  const std::uint32_t per_node = cluster ? cluster->gpus_per_node : config.gpus;
  return communication_buffer_bytes(config.system.collectives, config.gpus, per_node,
                                    config.system.switch_reduce.has_value());
}

void check_memory(const RunConfig& config, const std::vector<Program>& programs, RunResult& result) {
  result.gpus.resize(programs.size());
  const std::int64_t buffers = library_buffer_bytes(config) + beside_bytes(config);
  for (std::uint32_t g = 0; g < programs.size(); ++g) {
    result.gpus[g].id = g;
    if (programs[g].memory.empty()) continue;
    const MemoryPeak peak = peak_memory(programs[g]);
    const std::int64_t total = peak.total.count() + buffers;
    GpuResult& row = result.gpus[g];
    row.peak_memory_bytes = total;
    for (std::size_t c = 0; c < kMemoryClassCount; ++c) row.memory[c] = peak.by_class[c].count();
    *row.memory[static_cast<std::size_t>(MemoryClass::communication)] += buffers;
    row.fits = total <= config.system.gpu.hbm.bytes;
    if (*row.fits || result.out_of_memory) continue;
    OutOfMemory verdict;
    verdict.gpu = g;
    verdict.at = programs[g].ops[peak.at.value].name;
    verdict.bytes_over = total - config.system.gpu.hbm.bytes;
    for (const auto& [what, bytes] : peak.largest) verdict.largest_holders.emplace_back(what, bytes.count());
    result.status = "out_of_memory";
    result.out_of_memory = std::move(verdict);
  }
}

}  // namespace weft
