#include "cli/sampled/symmetry.h"

#include <fmt/format.h>

#include <map>
#include <set>
#include <tuple>

#include "gpu_model/calibration.h"
#include "gpu_model/folded_programs.h"

namespace weft {

namespace {

bool same(const CollectiveDemand& a, const CollectiveDemand& b) {
  return a.kind == b.kind && a.bytes == b.bytes && a.type == b.type && a.group == b.group && a.root == b.root &&
         a.sequence == b.sequence && a.send_address == b.send_address && a.receive_address == b.receive_address;
}

bool same(const ProgramOp& a, const ProgramOp& b) {
  return a.kind == b.kind && a.stream == b.stream && a.waits == b.waits && a.host_delay == b.host_delay &&
         a.start_delay == b.start_delay && same_demand(a.kernel, b.kernel) && same(a.collective, b.collective) &&
         a.copy.bytes == b.copy.bytes && a.copy.to_device == b.copy.to_device && a.copy.address == b.copy.address;
}

// Shares are multiples of one of these, so that they begin with a line: 1920 where lines hold 120 B of data.
constexpr std::int64_t kChunkUnits[] = {128, 1920, 512, 1024, 2048, 4096, 8192, 16384, 32768, 65536};

// Messages of the same bytes or a few more of which all ranks may have the same share, the nearest first: each rank has
// the same part on all channels, or on as many channels as are filled.
std::set<std::int64_t> even_messages(std::int64_t bytes, std::int64_t ranks, std::int64_t channels) {
  const auto round_up = [](std::int64_t n, std::int64_t grain) { return (n + grain - 1) / grain * grain; };
  std::set<std::int64_t> found{bytes};
  for (const std::int64_t unit : kChunkUnits) {
    found.insert(round_up(bytes, unit * ranks * channels));
    const std::int64_t chunk = round_up((bytes + ranks * channels - 1) / (ranks * channels), unit);
    found.insert(round_up(bytes, chunk * ranks));
  }
  return found;
}

// A message of a few bytes more that all ranks have the same share of; none: not found.
std::optional<std::int64_t> evened(const RunConfig& config, const ProgramOp& op) {
  std::vector<Program> one(op.collective.group.size());
  for (Program& program : one) {
    program.priorities = {0};
    ProgramOp& only = program.ops.emplace_back(op);
    only.waits.clear();
    only.stream = StreamId{0};
    only.collective.sequence = 0;
  }
  const auto plan_of = [&](std::int64_t bytes, const auto& use) {
    for (Program& program : one) program.ops.front().collective.bytes = Bytes(bytes);
    const Scripts scripts(config, one);
    return use(scripts.collectives().front().plan);
  };
  const std::int64_t bytes = op.collective.bytes.count();
  const std::uint32_t channels = plan_of(bytes, [](const CollectivePlan& plan) { return std::max(1U, plan.channels); });
  for (const std::int64_t even : even_messages(bytes, static_cast<std::int64_t>(one.size()), channels)) {
    const bool folds = plan_of(even, [&](const CollectivePlan& plan) {
      return !plan.ranks.empty() && fold_ranks(plan.ranks, op.collective.group).has_value();
    });
    if (folds) return even;
  }
  return std::nullopt;
}

}  // namespace

std::string why_programs_differ(const std::vector<Program>& programs) {
  const Program& first = programs.front();
  for (std::size_t g = 1; g < programs.size(); ++g) {
    const Program& other = programs[g];
    if (other.ops.size() != first.ops.size() || other.priorities != first.priorities) {
      return fmt::format("GPU {} has other operations than GPU 0", g);
    }
    for (std::size_t i = 0; i < first.ops.size(); ++i) {
      if (!same(first.ops[i], other.ops[i])) {
        return fmt::format("operation {} ({}) of GPU {} is not that of GPU 0", i, other.ops[i].name, g);
      }
    }
  }
  return "";
}

FoldedMachine::FoldedMachine(const RunConfig& config, const std::vector<Program>& programs) : config_(config) {
  config_.collective.even_chunks = true;
  const NetworkSpec& network = config_.system.network;
  if (programs.size() < 2) {
    why_not_ = "there is only one GPU";
  } else if (network.topology != TopologyKind::switched || network.tree.radix != 0 || network.cluster) {
    why_not_ = "the network is not one level of switches";
  } else if (!network.faults.empty()) {
    why_not_ = "links are faulty";
  } else if (config.collective.mover != Mover::compute_units) {
    why_not_ = "engines move the data";
  } else {
    programs_ = programs;
    round_messages();
    if (!why_not_.empty()) return;
    scripts_.emplace(config_, programs_);
    fold_collectives();
  }
}

void FoldedMachine::round_messages() {
  std::map<std::tuple<CollectiveKind, std::int64_t, DataType>, std::optional<std::int64_t>> known;
  for (std::size_t i = 0; i < programs_.front().ops.size(); ++i) {
    const ProgramOp& op = programs_.front().ops[i];
    if (op.kind != ProgramOpKind::collective) continue;
    if (op.collective.group.size() != programs_.size()) {
      why_not_ = fmt::format("{} is of some GPUs only", op.name);
      return;
    }
    const auto key = std::tuple(op.collective.kind, op.collective.bytes.count(), op.collective.type);
    auto at = known.find(key);
    if (at == known.end()) at = known.emplace(key, evened(config_, op)).first;
    if (!at->second) {
      why_not_ = fmt::format("the ranks of {} do different things", op.name);
      return;
    }
    for (Program& program : programs_) program.ops[i].collective.bytes = Bytes(*at->second);
  }
}

void FoldedMachine::fold_collectives() {
  folded_ = scripts_->work(0).scripts;
  for (const Scripts::Collective& collective : scripts_->collectives()) {
    const ProgramOp& op = programs_.front().ops[collective.members.front().second.value];
    const auto number = static_cast<std::uint16_t>(multicast_groups_.size());
    auto rank = collective.plan.multicasts.size() > 1 ? std::nullopt
                                                      : fold_ranks(collective.plan.ranks, op.collective.group, number);
    if (!rank) {
      why_not_ = fmt::format("the ranks of {} do different things", op.name);
      return;
    }
    kernels_.push_back(std::move(rank->kernel));
    folded_[collective.members.front().second.value] = &kernels_.back();
    // Groups of its own for each collective, since what the others' multicasts are depends on its chunks.
    if (rank->multicasts.empty()) rank->multicasts.emplace_back();
    for (const MulticastImages& images : rank->multicasts) {
      multicast_groups_.push_back({op.collective.group.members(), op.collective.type, {images}});
    }
  }
}

GpuWork FoldedMachine::work() const {
  GpuWork work = scripts_->work(0);
  work.scripts = folded_;
  return work;
}

}  // namespace weft
