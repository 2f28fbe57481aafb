#include "cli/sampled/sampled_run.h"

#include <fmt/format.h>

#include "cli/sampled/node_symmetry.h"
#include "cli/sampled/program_likeness.h"
#include "cli/sampled/sampled_gather.h"
#include "cli/sampled/sampled_timeline.h"

namespace weft {

namespace {

// Nothing but collectives that take less to simulate than to sample: GPUs are through with them one after the other,
// and the library cuts them unevenly, of which one GPU for all knows nothing (docs/validation.md). Choices, fitted to
// nothing.
bool is_short(const std::vector<Program>& programs) {
  constexpr std::int64_t kBytesOfAll = 128 << 10;
  constexpr std::size_t kGpus = 64, kOperations = 64;
  const SharedList<ProgramOp>& ops = programs.front().ops;
  return programs.size() <= kGpus && ops.size() <= kOperations && std::ranges::all_of(ops, [](const ProgramOp& op) {
           if (op.kind == ProgramOpKind::kernel) return false;
           const auto members = static_cast<std::int64_t>(op.collective.group.size());
           return op.kind == ProgramOpKind::host_wait || op.collective.bytes.count() * members <= kBytesOfAll;
         });
}

}  // namespace

std::string why_not_sampled(const RunConfig& config, const std::vector<Program>& programs) {
  if (config.functional) return "values travel";
  if (!config.beside.empty()) return "blocks stand beside the workload";
  if (config.system.gpu.power) return "the clock follows the power";
  if (is_short(programs)) return "nothing but short collectives runs";
  return compare_programs(programs).why_not;
}

void simulate_sampled(const RunConfig& config, const std::vector<Program>& programs, const Scripts& scripts,
                      const std::vector<DemandFit>& fits,
                      const std::function<void(double, const std::string&)>& progress, RunResult& result) {
  const auto stage = [&](double from, double to, const char* name) -> std::function<void(double)> {
    if (!progress) return {};
    return [&progress, from, to, name](double share) { progress(from + (to - from) * share, name); };
  };
  RegimeMemory memory(regime_file());
  RegimeLab quiet_lab(config, programs, nullptr);
  SampledTimeline quiet(config, programs.front(), false, memory, quiet_lab);
  quiet.run(stage(0.2, 0.5, "without communication"));
  RegimeLab lab(config, programs, &scripts, &quiet_lab);
  SampledTimeline timeline(config, programs.front(), true, memory, lab);
  const auto one_by_one = [&] { return lab.why_not_folded() && !lab.why_not_folded()->empty() && programs.size() > 1; };
  timeline.run(!progress ? std::function<void(double)>() : [&](double share) {
    progress(0.5 + 0.5 * share, one_by_one() ? "simulating every GPU by itself" : "simulating");
  });
  gather_sampled(config, programs, scripts, fits, quiet, timeline, result);

  const double end = to_seconds(timeline.clock().to_time(timeline.end()));
  const double simulated = to_seconds(lab.simulated());
  result.engine.simulated_s = end;
  result.engine.memory_transactions += quiet_lab.memory_transactions() + lab.memory_transactions();
  result.engine.packets = lab.packets();
  result.engine.skipped_fraction = end > 0 ? std::max(0.0, 1 - simulated / end) : 0;
  result.engine.sampling_error_estimate = std::max(quiet.error_estimate(), timeline.error_estimate());
  result.notes.push_back(fmt::format("Sampled: {} stretches simulated in detail, {} times what is known was used.",
                                     memory.simulated(), memory.reused()));
  if (const std::int64_t paced = timeline.paced_stretches(); paced > 0) {
    result.notes.push_back(
        fmt::format("{} of the stretches with collectives were not simulated: their kernels, and such collectives, had "
                    "been seen beside each other before (WEFT_REGIMES), at this rate or at two around it.",
                    paced));
  }
  const std::optional<std::string> why = lab.why_not_folded();
  if (why && !why->empty() && programs.size() > 1) {
    result.notes.push_back(fmt::format("Every GPU was simulated by itself: {}.", *why));
  } else if (why && programs.size() > 1) {
    if (compare_programs(programs).at_other_addresses) {
      result.notes.emplace_back("GPUs keep their data in other buffers than GPU 0, which counts as if they did not.");
    }
    const NetworkSpec& network = config.system.network;
    const bool spines = network.cluster && !nodes_share_leaf(network, static_cast<std::uint32_t>(programs.size()));
    result.notes.push_back(fmt::format(
        "{} for all {}: their programs and their places in the network are "
        "the same. Messages are cut so that all have the same share.{}{}",
        lab.standing() == 1 ? "One GPU stands" : fmt::format("{} GPUs stand", lab.standing()), programs.size(),
        spines ? " Between leaf switches, ways by a spine count as those by a leaf." : "",
        lab.has_alike_trees() ? " In place of the library's trees over nodes go two in which all nodes are alike."
                              : ""));
  }
  if (why && programs.size() > 1 && lab.timed_kernels()) {
    result.notes.emplace_back(
        "Beside collectives, kernels of other GPUs than GPU 0, and of long messages all, take what they take alone, as "
        "many times longer as was measured of each. Long shifts with no other collective beside them take what they "
        "take by themselves.");
  }
}

}  // namespace weft
