#include "cli/commands/trace_steps.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "cli/run/step_bounds.h"
#include "sim/error.h"
#include "traces/intervals.h"
#include "traces/late_starts.h"

namespace weft {

namespace {

// Of one GPU, in one recording or run.
struct Lane {
  std::vector<Interval> communication;
  std::vector<Interval> computation;  // and copies
};

// One side of the comparison.
struct Side {
  std::map<std::uint32_t, Lane> gpus;

  void add(std::uint32_t gpu, bool communication, Interval ran) {
    Lane& lane = gpus[gpu];
    (communication ? lane.communication : lane.computation).push_back(ran);
  }
  [[nodiscard]] Json communication(std::uint32_t gpu, std::size_t of_iterations) const {
    const Lane& lane = gpus.at(gpu);
    const std::vector<Interval> all = union_of(lane.communication);
    const Time hidden = overlap(all, union_of(lane.computation));
    const auto iterations = static_cast<double>(of_iterations);
    return {{"communication_s", to_seconds(length(all)) / iterations},
            {"communication_exposed_s", to_seconds(length(all) - hidden) / iterations}};
  }
};

// What bounds the iterations of recorded ranks together, since `first`: as StepBounds::add finds it of a run.
StepBounds recorded_bounds(const std::vector<const TraceRank*>& ranks, std::size_t iterations, Time first) {
  StepBounds bounds;
  bounds.host_end_s.resize(iterations);
  for (const TraceRank* rank : ranks) {
    const auto late = begun_late(*rank);
    const double begin = late ? to_seconds(rank->ops[*late].start - first) : 0;
    bounds.begin_s = std::min(bounds.begin_s.value_or(begin), begin);
    for (std::size_t i = 0; i < std::min(iterations, rank->iterations.size()); ++i)
      bounds.host_end_s[i] = std::max(bounds.host_end_s[i], to_seconds(rank->iterations[i].end - first));
  }
  bounds.end_s = bounds.host_end_s;
  return bounds;
}

}  // namespace

std::size_t replayed_rank(const Trace& trace, std::optional<std::uint32_t> chosen, std::uint32_t gpu,
                          const std::string& source) {
  if (!chosen && trace.ranks.size() == 1) return 0;
  for (std::size_t r = 0; chosen && r < trace.ranks.size(); ++r)
    if (trace.ranks[r].rank == *chosen) return r;
  if (!chosen && gpu < trace.ranks.size()) return gpu;
  throw InputError(source, "",
                   fmt::format("expected a run that replayed this trace, got {} {} and a trace of {} ranks",
                               chosen ? "rank" : "GPU", chosen.value_or(gpu), trace.ranks.size()));
}

Json compare_steps(const Trace& trace, std::optional<std::uint32_t> chosen, const std::vector<OperationRecord>& rows,
                   const std::vector<double>& simulated_s, const std::string& source) {
  const std::size_t iterations = simulated_s.size();
  Side simulated;
  for (const OperationRecord& row : rows)
    simulated.add(row.gpu, row.communication, {nanoseconds(row.start_s * 1e9), nanoseconds(row.end_s * 1e9)});
  std::map<std::uint32_t, std::size_t> ranks;  // by GPU
  Time first = Time::max();
  for (const auto& [gpu, lane] : simulated.gpus) {
    ranks[gpu] = replayed_rank(trace, chosen, gpu, source);
    const TraceRank& rank = trace.ranks[ranks[gpu]];
    if (!rank.iterations.empty()) first = std::min(first, rank.iterations.front().start);
  }
  Side recorded;
  std::vector<double> device_ends(iterations);
  std::vector<const TraceRank*> recorded_ranks;
  for (const auto& [gpu, rank] : ranks) {
    recorded.gpus[gpu];
    recorded_ranks.push_back(&trace.ranks[rank]);
    for (const TraceOp& op : trace.ranks[rank].ops) {
      if (!op.iteration || *op.iteration >= iterations || op.kind == TraceOpKind::host_wait) continue;
      const Interval ran{op.start - first, op.start + op.duration - first};
      recorded.add(gpu, op.kind == TraceOpKind::collective, ran);
      device_ends[*op.iteration] = std::max(device_ends[*op.iteration], to_seconds(ran.end));
    }
  }
  Json out;
  out["recorded_s"] = iteration_lengths(device_ends, recorded_bounds(recorded_ranks, iterations, first));
  out["simulated_s"] = simulated_s;
  out["gpus"] = Json::array();
  for (const auto& [gpu, rank] : ranks)
    out["gpus"].push_back({{"gpu", gpu},
                           {"rank", trace.ranks[rank].rank},
                           {"recorded", recorded.communication(gpu, iterations)},
                           {"simulated", simulated.communication(gpu, iterations)}});
  return out;
}

std::string steps_text(const Json& steps) {
  std::string out = fmt::format("{:>12} {:>12} {:>12} {:>8}\n", "iteration", "recorded ms", "simulated ms", "error");
  double recorded = 0;
  double simulated = 0;
  const auto line = [&](const std::string& name, double was, double is) {
    out += fmt::format("{:>12} {:>12.3f} {:>12.3f} {:>8}\n", name, 1e3 * was, 1e3 * is,
                       was > 0 ? fmt::format("{:+.1f} %", 100 * (is / was - 1)) : "-");
  };
  const std::size_t iterations = steps["recorded_s"].size();
  for (std::size_t i = 0; i < iterations; ++i) {
    const auto was = steps["recorded_s"][i].get<double>();
    const auto is = steps["simulated_s"][i].get<double>();
    recorded += was;
    simulated += is;
    line(std::to_string(i), was, is);
  }
  const auto count = static_cast<double>(iterations);
  if (iterations > 1) line("mean", recorded / count, simulated / count);
  for (const Json& gpu : steps["gpus"]) {
    const auto side = [&](const char* which, double time) {
      const Json& s = gpu[which];
      const auto all = s["communication_s"].get<double>();
      const auto exposed = s["communication_exposed_s"].get<double>();
      return fmt::format("{:.3f} ms, exposed {:.3f} ({:.1f} % of the iteration, {:.1f} % hidden)", 1e3 * all,
                         1e3 * exposed, time > 0 ? 100 * exposed * count / time : 0.0,
                         all > 0 ? 100 * (1 - exposed / all) : 0.0);
    };
    out += fmt::format("GPU {}, rank {}: communication recorded {}; simulated {}\n", gpu["gpu"].get<std::uint32_t>(),
                       gpu["rank"].get<std::uint32_t>(), side("recorded", recorded), side("simulated", simulated));
  }
  return out;
}

}  // namespace weft
