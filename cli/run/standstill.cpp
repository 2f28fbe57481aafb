#include "cli/run/standstill.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

namespace weft {

namespace {

std::string waits_for_a_gpu(const Machine& machine, const std::vector<Program>& programs,
                            const std::vector<Scripts::Collective>& collectives) {
  const auto is_in = [&](const std::pair<std::uint32_t, OpId>& member) {
    const OpTimes& times = machine.gpu(member.first).times()[member.second.value];
    return times.start >= 0 && times.end < 0;
  };
  // By GPU, a collective that it is in and cannot end.
  std::map<std::uint32_t, std::string> in;
  for (const Scripts::Collective& collective : collectives) {
    for (const auto& member : collective.members) {
      if (is_in(member)) in.try_emplace(member.first, programs[member.first].ops[member.second.value].name);
    }
  }
  for (const Scripts::Collective& collective : collectives) {
    const auto& members = collective.members;
    const auto waiting = std::find_if(members.begin(), members.end(), is_in);
    const auto missing = std::find_if(members.begin(), members.end(), [&](const auto& member) {
      return machine.gpu(member.first).times()[member.second.value].start < 0;
    });
    if (waiting == members.end() || missing == members.end()) continue;
    const auto instead = in.find(missing->first);
    return fmt::format("GPU {} waits in collective {} for GPU {}, which {}", waiting->first,
                       programs[waiting->first].ops[waiting->second.value].name, missing->first,
                       instead == in.end() ? std::string("does not come to it")
                                           : fmt::format("waits in collective {}", instead->second));
  }
  return "";
}

}  // namespace

std::string why_at_a_standstill(const Machine& machine, const std::vector<Program>& programs,
                                const std::vector<Scripts::Collective>& collectives) {
  if (std::string packets = machine.deadlock(); !packets.empty()) return packets;
  for (std::size_t g = 0; g < machine.gpus(); ++g) {
    const std::optional<UnplacedBlocks> waiting = machine.gpu(g).unplaced();
    if (!waiting) continue;
    return fmt::format(
        "{} of the {} thread blocks of collective {} find no place on the compute units of GPU {}, and "
        "those that have one wait for them",
        waiting->blocks, waiting->of, programs[g].ops[waiting->op.value].name, g);
  }
  return waits_for_a_gpu(machine, programs, collectives);
}

}  // namespace weft
