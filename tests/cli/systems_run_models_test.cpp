// Blocks of the generated models' kernels fit compute units of all systems that ship.
#include <gtest/gtest.h>

#include <string>

#include "cli/config/run_config.h"
#include "cli/run/programs.h"
#include "gpu_model/kernel_program.h"
#include "gpu_model/occupancy.h"
#include "sim/config_file.h"

namespace weft {
namespace {

class SystemsThatShip : public testing::TestWithParam<std::string> {};

TEST_P(SystemsThatShip, RunModels) {
  for (const char* workload :
       {R"({"model": "resnet50", "batch": 2})", R"({"model": "bert-large", "batch": 1, "layers": 1})",
        R"({"model": "attention", "sequence": 512, "hidden": 512, "heads": 4, "causal": true})"}) {
    const RunConfig config = read_run_config(
        parse_json(R"({"system": ")" + GetParam() + R"(", "gpus": 1, "workload": )" + workload + "}", "test"),
        "test.json");
    std::vector<std::string> notes;
    const std::vector<Program> programs = make_programs(config, notes);
    for (const ProgramOp& op : programs.front().ops) {
      if (op.kind != ProgramOpKind::kernel) continue;
      const KernelProgram kernel(op.kernel, config.system.gpu, op.name);
      ASSERT_GT(blocks_per_unit(config.system.gpu.compute_unit, kernel.needs()), 0U) << workload << ": " << op.name;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Presets, SystemsThatShip,
                         testing::Values("dgx1-v100", "dgx2-v100", "dgx-a100", "hgx-h100", "hgx-h200", "hgx-b200",
                                         "mi300x", "gh200-quad", "klenk16", "r9nano"),
                         [](const auto& system) {
                           std::string name = system.param;
                           std::erase(name, '-');
                           return name;
                         });

}  // namespace
}  // namespace weft
