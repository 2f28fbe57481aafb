#include "cli/run/fused_outputs.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "cli/config/why_not_in_switch.h"
#include "sim/error.h"

namespace weft {

namespace {

struct Meeting {
  std::size_t first_group = 0;
  std::uint32_t flag = 0;
  std::size_t members = 0;
};

// The groups of a collective's sums: all get them, or each rank those of its part.
void add_groups(const CollectiveDemand& demand, std::vector<MulticastGroup>& groups) {
  if (demand.kind == CollectiveKind::all_reduce) {
    groups.push_back({demand.group.members(), demand.type});
    return;
  }
  for (const GpuId rank : demand.group) groups.push_back({demand.group.members(), demand.type, {}, rank});
}

PushedOutput output_of(const ProgramOp& op, const Meeting& meeting) {
  const CollectiveDemand& demand = op.collective;
  const auto writes = std::ranges::find(op.kernel.writes, demand.send_address, &Operand::base);
  WEFT_CHECK(writes != op.kernel.writes.end() && writes->divisor == 1 && writes->modulo == 0,
             "a fused kernel writes all of what is summed");
  PushedOutput output;
  output.address = demand.send_address;
  output.lines = static_cast<std::uint32_t>((demand.bytes.count() + kLineBytes - 1) / kLineBytes);
  output.parts = demand.kind == CollectiveKind::all_reduce ? 1 : static_cast<std::uint32_t>(demand.group.size());
  output.sums = static_cast<LineAddress>(demand.receive_address / kLineBytes);
  output.multicast_group = static_cast<std::uint16_t>(meeting.first_group);
  output.flag = meeting.flag;
  return output;
}

}  // namespace

FusedOutputs::FusedOutputs(const RunConfig& config, const std::vector<Program>& programs,
                           std::vector<MulticastGroup>& groups, std::uint32_t& flags) {
  std::map<std::pair<GpuGroup, std::uint32_t>, Meeting> meetings;
  std::map<std::tuple<GpuGroup, DataType, CollectiveKind>, std::size_t> known;  // first groups
  for (std::size_t gpu = 0; gpu < programs.size(); ++gpu) {
    const SharedList<ProgramOp>& ops = programs[gpu].ops;
    for (std::size_t i = 0; i < ops.size(); ++i) {
      if (!ops[i].fused) continue;
      const CollectiveDemand& demand = ops[i].collective;
      Meeting& meeting = meetings[{demand.group, demand.sequence}];
      if (meeting.members++ == 0) {
        const auto [place, fresh] = known.emplace(std::tuple(demand.group, demand.type, demand.kind), groups.size());
        if (const std::string why = why_not_fused(config, demand, place->second); !why.empty()) {
          throw InputError("", "/scheme/fused",
                           fmt::format("expected false, or sums that switches can do of {}: {}", ops[i].name, why));
        }
        if (fresh) add_groups(demand, groups);
        meeting.first_group = place->second;
        meeting.flag = flags++;
      }
      by_op_.resize(programs.size());
      by_op_[gpu].resize(ops.size(), nullptr);
      by_op_[gpu][i] = &outputs_.emplace_back(output_of(ops[i], meeting));
    }
  }
  for (const auto& [key, meeting] : meetings) {
    if (meeting.members != key.first.size()) {
      throw InputError(fmt::format("fused kernel {} of a group: expected all {} GPUs of it to take part, got {}",
                                   key.second, key.first.size(), meeting.members));
    }
  }
}

}  // namespace weft
