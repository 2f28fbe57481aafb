#include <cstdio>
#include <nlohmann/json.hpp>
#include <optional>

#include "bench/gpu/plan/statistics.h"
#include "bench/gpu/suites/drain.h"
#include "bench/gpu/suites/kernel_recorder.h"
#include "bench/gpu/suites/victim_bench.h"

namespace weft::gpu_probe {
namespace {

using nlohmann::json;

constexpr std::size_t kLaunches = 5;

json kernel_json(const KernelRecord& k, std::size_t op, double alone_us) {
  return {{"name", k.name},
          {"operator", op},
          {"grid", k.grid},
          {"block", k.block},
          {"cluster", k.cluster},
          {"registers", k.registers},
          {"shared_memory_bytes", k.shared_memory_bytes},
          {"alone_us", alone_us}};
}

// Kernels of one step, in order, without memsets; each launch of the step makes as many.
json kernels_of_step(VictimRun& victim, std::size_t step, KernelRecorder& recorder, cudaStream_t stream) {
  static_cast<void>(recorder.take());
  for (std::size_t i = 0; i < kLaunches; ++i) victim.launch_step(step, stream);
  std::vector<KernelRecord> records = recorder.take();
  std::erase_if(records, [](const KernelRecord& record) { return record.name == "Memset"; });
  const std::size_t kernels = records.size() / kLaunches;
  json out = json::array();
  for (std::size_t k = 0; k < kernels; ++k) {
    std::vector<double> us;
    for (std::size_t i = 0; i < kLaunches; ++i) us.push_back(records[i * kernels + k].us());
    out.push_back(kernel_json(records[k], step, summarize(us).median));
  }
  return out;
}

}  // namespace

void run_describe(Session& session) {
  std::optional<KernelRecorder> recorder;
  try {
    recorder.emplace(session.options.libraries);
  } catch (const std::runtime_error& error) {
    std::fprintf(stderr, "kernels are not described: %s\n", error.what());
    return;
  }
  {
    VictimBench bench(session);
    for (const Victim& victim : victims()) {
      if (!session.options.selection.takes(victim)) continue;
      if (session.is_over()) return;
      const json keys{{"name", victim.name}};
      if (const json* known = session.results.find("victims", keys); known != nullptr && known->contains("kernels"))
        continue;
      const auto run = bench.prepare(victim);
      if (!run) continue;
      json kernels = json::array();
      for (std::size_t step = 0; step < run->steps(); ++step) {
        for (json& kernel : kernels_of_step(*run, step, *recorder, session.gpu.compute()))
          kernels.push_back(std::move(kernel));
      }
      json item = description(victim);
      item["kernels"] = kernels;
      session.results.put("victims", keys, item);
    }
  }
  record_drain(session, *recorder);
}

}  // namespace weft::gpu_probe
