#include "cli/sampled/group_places.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace weft {

namespace {

// What a group is of all GPUs, in nodes of `per_node`.
enum class GroupPlace { all, node, one_of_each_node, other };
GroupPlace place_of(const GpuGroup& group, std::size_t gpus, std::uint32_t per_node) {
  if (group.size() == gpus) return GroupPlace::all;
  const std::uint32_t first = group.front().value;
  if (first / per_node == group.back().value / per_node) return GroupPlace::node;
  if (group.size() != gpus / per_node) return GroupPlace::other;
  for (std::size_t i = 0; i < group.size(); ++i) {
    if (group.members()[i].value != i * per_node + first % per_node) return GroupPlace::other;
  }
  return GroupPlace::one_of_each_node;
}

}  // namespace

std::string why_groups_differ(const Program& front, const std::vector<Program>& programs, std::uint32_t per_node) {
  const SharedList<ProgramOp>& first = front.ops;
  for (std::size_t i = 0; i < first.size(); ++i) {
    if (first[i].kind != ProgramOpKind::collective) continue;
    const GroupPlace place = place_of(first[i].collective.group, programs.size(), per_node);
    if (place == GroupPlace::all) continue;
    const auto is_there = [&](const Program& program) {
      return place_of(program.ops[i].collective.group, programs.size(), per_node) == place;
    };
    if (place == GroupPlace::other || !std::ranges::all_of(programs, is_there)) {
      return fmt::format("{} is of some GPUs only, neither of one node nor of one place in all nodes", first[i].name);
    }
  }
  return "";
}

Program with_first_groups(Program program, std::size_t gpus, std::uint32_t per_node) {
  const auto is_of_some = [&](const ProgramOp& op) {
    return op.kind == ProgramOpKind::collective && place_of(op.collective.group, gpus, per_node) == GroupPlace::node;
  };
  if (std::ranges::none_of(program.ops, is_of_some)) return program;
  std::map<std::size_t, std::uint32_t> sequences;
  for (ProgramOp& op : program.ops.edit()) {
    if (!is_of_some(op)) continue;
    const std::size_t ranks = op.collective.group.size();
    op.collective.group = GpuGroup::first(static_cast<std::uint32_t>(ranks));
    op.collective.sequence = sequences[ranks]++;
  }
  return program;
}

}  // namespace weft
