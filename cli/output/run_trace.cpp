#include "cli/output/run_trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "cli/config/run_config.h"
#include "cli/output/kernels_csv_reader.h"
#include "cli/run/programs.h"
#include "sim/error.h"

namespace weft {
namespace {

Time time_of(double seconds) { return Time(std::llround(seconds * 1e15)); }

TraceCollective collective_of(const CollectiveDemand& demand) {
  TraceCollective out;
  out.kind = demand.kind;
  out.type = demand.type;
  out.elements = demand.bytes.count() / bytes_per_element(demand.type);
  for (const GpuId gpu : demand.group) out.group_ranks.push_back(gpu.value);
  out.group_size = static_cast<std::uint32_t>(out.group_ranks.size());
  out.distance = demand.distance;
  out.first = demand.kind == CollectiveKind::send_receive ? std::optional(demand.root) : demand.first;
  return out;
}

class RankMaker {
 public:
  RankMaker(const Program& program, const std::string& file) : program_(program), file_(file) {}

  void ran(const OperationRecord& row) {
    const bool known = row.op < program_.ops.size() && program_.ops[row.op].name == row.name;
    if (!known || !rows_.emplace(row.op, &row).second)
      throw InputError(file_, "",
                       fmt::format("expected the operations of the run's configuration, got {} as GPU {}'s number {}",
                                   row.name, row.gpu, row.op));
  }

  TraceRank make() {
    std::vector<Time> iteration_end(program_.iterations), host_end(program_.iterations);
    Time host;
    for (std::uint32_t i = 0; i < program_.ops.size(); ++i) {
      const ProgramOp& op = program_.ops[i];
      host += op.host_delay;
      TraceOp out = operation(op, host);
      if (op.kind == ProgramOpKind::host_wait) {
        // The host goes on when all that it waits for has ended.
        for (const std::uint32_t waited : out.waits)
          host = std::max(host, rank_.ops[waited].start + rank_.ops[waited].duration);
        out.duration = host - out.start;
      } else {
        const auto row = rows_.find(i);
        if (row == rows_.end())
          throw InputError(file_, "", fmt::format("expected a row for operation {} ({}), got none", i, op.name));
        out.start = time_of(row->second->start_s);
        out.duration = time_of(row->second->end_s) - out.start;
        out.issued = std::min(out.issued, out.start);
      }
      Time& end = iteration_end.at(op.iteration);
      end = std::max({end, out.issued, out.start + out.duration});
      host_end[op.iteration] = host;
      rank_.ops.push_back(std::move(out));
    }
    Time begin;
    for (std::size_t i = 0; i < iteration_end.size(); ++i) {
      if (!program_.step_ends.empty()) iteration_end[i] = host_end[i] + program_.step_ends[i].host;  // as recorded
      iteration_end[i] = std::max(iteration_end[i], begin);
      rank_.iterations.push_back({fmt::format("ProfilerStep#{}", i), begin, iteration_end[i]});
      begin = iteration_end[i];
    }
    // No operation was issued after those that follow it.
    for (std::size_t i = rank_.ops.size(); i-- > 1;)
      rank_.ops[i - 1].issued = std::min(rank_.ops[i - 1].issued, rank_.ops[i].issued);
    return std::move(rank_);
  }

  TraceRank& rank() { return rank_; }

 private:
  static TraceOp operation(const ProgramOp& op, Time host) {
    TraceOp out;
    out.name = op.name;
    out.layer = op.layer;
    out.phase = op.phase;
    out.iteration = op.iteration;
    out.issued = out.start = host;
    for (const OpId wait : op.waits) out.waits.push_back(wait.value);
    std::sort(out.waits.begin(), out.waits.end());
    out.waits.erase(std::unique(out.waits.begin(), out.waits.end()), out.waits.end());
    if (op.kind != ProgramOpKind::host_wait) out.stream = op.stream.value;
    switch (op.kind) {
      case ProgramOpKind::host_wait:
        out.kind = TraceOpKind::host_wait;
        break;
      case ProgramOpKind::collective:
        out.kind = TraceOpKind::collective;
        out.collective = collective_of(op.collective);
        break;
      case ProgramOpKind::copy:
        out.kind = TraceOpKind::copy;
        out.bytes = op.copy.bytes;
        out.copy_direction = op.copy.to_device ? "HtoD" : "DtoH";
        break;
      case ProgramOpKind::kernel:
        out.shape = op.kernel.shape;
        break;
    }
    return out;
  }

  const Program& program_;
  const std::string& file_;
  std::map<std::uint32_t, const OperationRecord*> rows_;  // by operation
  TraceRank rank_;
};

}  // namespace

Trace trace_of_run(const std::filesystem::path& folder) {
  const RunConfig config = read_run_config(folder / "config.json", {});
  std::vector<std::string> notes;
  const std::vector<Program> programs = make_programs(config, notes);
  const std::vector<OperationRecord> rows = read_kernels_csv(folder / "kernels.csv");
  const std::string file = (folder / "kernels.csv").string();
  std::vector<RankMaker> makers;
  for (const Program& program : programs) makers.emplace_back(program, file);
  for (const OperationRecord& row : rows) {
    if (row.gpu >= makers.size())
      throw InputError(file, "", fmt::format("expected {} GPUs, got number {}", makers.size(), row.gpu));
    makers[row.gpu].ran(row);
  }
  Trace trace;
  trace.source = "simulated by weft";
  trace.world_size = static_cast<std::uint32_t>(programs.size());
  for (std::uint32_t gpu = 0; gpu < programs.size(); ++gpu) {
    TraceRank& rank = trace.ranks.emplace_back(makers[gpu].make());
    rank.rank = gpu;
    rank.device = config.system.gpu.name;
    rank.compute_units = config.system.gpu.compute_units;
    rank.memory_bytes = config.system.gpu.hbm.bytes;
  }
  validate(trace, file);
  return trace;
}

}  // namespace weft
