#include "cli/commands/kernel_info.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <vector>

#include "gpu_model/calibration.h"
#include "gpu_model/kernel_program.h"

namespace weft {

namespace {

constexpr std::array<const char*, kSlotCount> kSlotNames{"issue", "tensor", "fp32", "fp64", "sfu", "flags"};

// What keeps a further block from a unit that holds `blocks`.
const char* limit(const ComputeUnitSpec& unit, const BlockNeeds& needs, std::uint32_t blocks) {
  if (needs.threads * (blocks + 1) > unit.max_threads) return "threads";
  if (needs.registers * (blocks + 1) > unit.registers) return "registers";
  if (needs.shared_memory * (blocks + 1) > unit.shared_memory_bytes) return "shared memory";
  return "block slots";
}

double in_cycles(SubCycle t) { return static_cast<double>(t) / static_cast<double>(kCycle); }

template <class Streams>
Json streams_json(const Streams& streams, std::uint32_t count) {
  Json out = Json::array();
  for (std::uint32_t s = 0; s < count; ++s) {
    out.push_back({{"lines", streams[s].lines}, {"l1", streams[s].through_l1}, {"atomic", streams[s].atomic}});
  }
  return out;
}

Json phase_json(const Phase& phase) {
  Json out;
  out["rounds"] = phase.rounds;
  out["rounds_in_flight"] = std::min(phase.stages, phase.rounds);
  out["barrier"] = phase.barrier;
  out["loads"] = streams_json(phase.loads, phase.load_count);
  out["stores"] = streams_json(phase.stores, phase.store_count);
  Json& slots = out["cycles_per_round"] = Json::object();
  for (std::size_t slot = 0; slot < kSlotCount; ++slot) {
    const bool busiest = slot == static_cast<std::size_t>(phase.busiest);
    const SubCycle time = busiest ? phase.compute : phase.beside[slot];
    if (time > 0) slots[kSlotNames[slot]] = in_cycles(time);
  }
  out["busiest"] = phase.compute > 0 ? Json(kSlotNames[static_cast<std::size_t>(phase.busiest)]) : Json();
  return out;
}

Json kernel_json(const ProgramOp& op, const GpuSpec& gpu) {
  const KernelProgram program(op.kernel, gpu, op.name);
  const LaunchShape& shape = op.kernel.shape;
  const std::uint32_t on_a_unit = blocks_per_unit(gpu.compute_unit, program.needs());
  const std::uint64_t at_once = std::uint64_t{on_a_unit} * gpu.compute_units;
  Json out;
  out["name"] = op.name;
  out["launches"] = 1;
  out["grid"] = shape.grid;
  out["block"] = shape.block;
  out["registers_per_thread"] = shape.registers_per_thread;
  out["shared_memory_bytes"] = shape.shared_memory_bytes;
  out["blocks"] = program.blocks();
  out["cluster_blocks"] = program.cluster_blocks();
  out["warps"] = program.warps();
  out["blocks_per_unit"] = on_a_unit;
  out["limited_by"] = limit(gpu.compute_unit, program.needs(), on_a_unit);
  out["waves"] = (program.blocks() + at_once - 1) / at_once;
  out["lines_in_flight"] = program.lines_in_flight();
  for (std::uint32_t p = 0; p < program.phases(); ++p) out["phases"].push_back(phase_json(program.phase(0, p)));
  return out;
}

std::string size_text(const Json& size) {
  std::string out;
  for (const Json& n : size) out += (out.empty() ? "" : "x") + n.dump();
  return out;
}

std::string lines_text(const Json& streams) {
  std::string out;
  for (const Json& stream : streams) {
    out += fmt::format("{}{}{}", out.empty() ? "" : " + ", stream["lines"].dump(),
                       stream["atomic"].get<bool>() ? " atomic"
                       : stream["l1"].get<bool>()   ? " by L1"
                                                    : "");
  }
  return out + " lines";
}

std::string phase_text(const Json& phase) {
  std::string out = fmt::format("{} round{}", phase["rounds"].dump(), phase["rounds"] == 1 ? "" : "s");
  if (phase["rounds"] > 1) out += fmt::format(", {} in flight", phase["rounds_in_flight"].dump());
  if (phase["barrier"].get<bool>()) out += ", barriers between them";
  if (!phase["loads"].empty()) out += "; loads " + lines_text(phase["loads"]);
  std::string slots;
  for (const auto& [slot, cycles] : phase["cycles_per_round"].items()) {
    slots += fmt::format("{}{} {:.1f}", slots.empty() ? "" : ", ", slot, cycles.get<double>());
  }
  if (!slots.empty()) out += "; computes, cycles a round: " + slots;
  if (!phase["stores"].empty()) out += "; stores " + lines_text(phase["stores"]);
  return out;
}

}  // namespace

Json kernel_info_json(const Program& program, const GpuSpec& gpu, const std::string& name) {
  Json kernels = Json::array();
  std::map<KernelSignature, std::size_t> known;
  for (const ProgramOp& op : program.ops) {
    if (op.kind != ProgramOpKind::kernel || op.name.find(name) == std::string::npos) continue;
    const auto [at, is_new] = known.emplace(kernel_signature(op), kernels.size());
    if (is_new) {
      kernels.push_back(kernel_json(op, gpu));
    } else {
      Json& launches = kernels[at->second]["launches"];
      launches = launches.get<std::int64_t>() + 1;
    }
  }
  Json out;
  out["gpu"] = gpu.name;
  out["kernels"] = std::move(kernels);
  return out;
}

std::string kernel_info_text(const Json& info) {
  std::string out;
  for (const Json& kernel : info["kernels"]) {
    const auto text = [&](const char* key) { return kernel[key].dump(); };
    out += fmt::format("{} ({} launch{})\n", kernel["name"].get<std::string>(), text("launches"),
                       kernel["launches"] == 1 ? "" : "es");
    out += fmt::format("  grid {}, block {}: {} blocks of {} warps, {} registers a thread, {} B of shared memory{}\n",
                       size_text(kernel["grid"]), size_text(kernel["block"]), text("blocks"), text("warps"),
                       text("registers_per_thread"), text("shared_memory_bytes"),
                       kernel["cluster_blocks"] == 1 ? "" : ", clusters of " + text("cluster_blocks"));
    out += fmt::format("  {} on a unit ({}), {} wave{}; {} lines in flight a block\n", text("blocks_per_unit"),
                       kernel["limited_by"].get<std::string>(), text("waves"), kernel["waves"] == 1 ? "" : "s",
                       text("lines_in_flight"));
    for (const Json& phase : kernel["phases"]) out += "  " + phase_text(phase) + "\n";
  }
  return out;
}

}  // namespace weft
