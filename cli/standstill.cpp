#include "cli/standstill.h"

#include <fmt/format.h>

namespace weft {

std::string why_at_a_standstill(const Machine& machine, const std::vector<Program>& programs) {
  if (std::string packets = machine.deadlock(); !packets.empty()) return packets;
  for (std::size_t g = 0; g < machine.gpus(); ++g) {
    const std::optional<UnplacedBlocks> waiting = machine.gpu(g).unplaced();
    if (!waiting) continue;
    return fmt::format(
        "{} of the {} thread blocks of collective {} find no place on the compute units of GPU {}, and "
        "those that have one wait for them",
        waiting->blocks, waiting->of, programs[g].ops[waiting->op.value].name, g);
  }
  return "";
}

}  // namespace weft
