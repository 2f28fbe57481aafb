#include "gpu_model/message_programs.h"

#include "gpu_model/engine_phases.h"

namespace weft {

std::shared_ptr<const BlockPrograms> message_programs(const MessagePlace& place) {
  const auto share = [place](std::uint32_t block, std::uint32_t index, Phase& phase) {
    if (index > 0) return false;
    const std::int64_t count = (place.bytes + kLineBytes - 1) / kLineBytes;
    const LineRange part = LineRange{0, count}.part(block, place.channels);
    if (part.count == 0) return false;
    const std::int64_t at = part.first * kLineBytes;
    const std::int64_t bytes = part.count * kLineBytes;
    phase.load(lines(place.send_address + at, bytes));
    phase.store(lines(place.receive_address + at, bytes, Target::tree, place.group));
    set_rounds(phase, place.lines_per_round, place.warps);
    return true;
  };
  return std::make_shared<PhaseFunction>(place.channels, place.warps * place.lines_per_round, share);
}

}  // namespace weft
