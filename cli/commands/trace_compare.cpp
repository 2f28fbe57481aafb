#include "cli/commands/trace_compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <tuple>

#include "sim/error.h"
#include "traces/launch_position.h"

namespace weft {

namespace {

constexpr double kLongKernelUs = 20;  // as `weft trace info`: below it, launch noise is larger than the effect
constexpr double kSlowed = 1.02;      // what counts as slowed, docs/validation.md

Time time_of(double seconds) { return nanoseconds(seconds * 1e9); }
Interval interval_of(const OperationRecord& row) { return {time_of(row.start_s), time_of(row.end_s)}; }
double seconds_of(const std::optional<Time>& t) { return to_seconds(t.value()); }

class Comparison {
 public:
  Comparison(const TraceRank& rank, const std::vector<OperationRecord>& rows, std::uint32_t gpu, std::string source)
      : rank_(rank), source_(std::move(source)), simulated_(rank.ops.size(), nullptr) {
    for (const OperationRecord& row : rows) {
      if (row.gpu != gpu) continue;
      iterations_ = std::max(iterations_, row.iteration + 1);
      if (row.communication) collectives_.push_back(interval_of(row));
      rows_.push_back(&row);
    }
    if (rows_.empty()) throw InputError(source_, "", fmt::format("expected operations of GPU {}, got none", gpu));
    std::sort(rows_.begin(), rows_.end(), [](const auto* a, const auto* b) { return a->op < b->op; });
    collectives_ = union_of(std::move(collectives_));
    join();
  }

  Json run() {
    Json positions = Json::array();
    for (const LaunchPosition& position : launch_positions(rank_)) {
      if (rank_.ops[position.ops.front()].kind == TraceOpKind::kernel) add(position, positions);
    }
    Json out;
    out["recorded"] = {{"slowdown", ratio(recorded_)}, {"positions", recorded_.count}, {"hidden", recorded_hidden()}};
    out["simulated"] = {{"slowdown", ratio(both_simulated_.with(only_simulated_))},
                        {"positions", both_simulated_.count + only_simulated_.count},
                        {"hidden", simulated_hidden()}};
    out["compared"] = {{"positions", both_recorded_.count},
                       {"recorded_slowdown", ratio(both_recorded_)},
                       {"simulated_slowdown", ratio(both_simulated_)},
                       {"mean_error", mean(error_)},
                       {"slowed_or_not_right", slowed_alike_}};
    out["iterations"] = iterations_;
    out["positions"] = std::move(positions);
    return out;
  }

 private:
  struct Sum {
    double alone = 0;
    double beside = 0;
    std::uint32_t count = 0;
    void add(double a, double b) {
      alone += a;
      beside += b;
      ++count;
    }
    [[nodiscard]] Sum with(const Sum& o) const { return {alone + o.alone, beside + o.beside, count + o.count}; }
  };

  static Json ratio(const Sum& sum) { return sum.alone > 0 ? Json(sum.beside / sum.alone) : Json(); }
  [[nodiscard]] Json mean(double error) const {
    return both_recorded_.count > 0 ? Json(error / both_recorded_.count) : Json();
  }

  // The n-th operation of a stream in an iteration here is the n-th there; streams are numbered in the order of the
  // recorded numbers.
  void join() {
    std::map<std::uint32_t, std::uint32_t> streams;
    for (const TraceOp& op : rank_.ops) {
      if (replayed(op)) streams[op.stream] = 0;
    }
    std::uint32_t next = 0;
    for (auto& [recorded, dense] : streams) dense = next++;
    using Place = std::tuple<std::uint32_t, std::uint32_t, bool>;  // iteration, stream, communication
    struct Queue {
      std::vector<const OperationRecord*> rows;
      std::size_t taken = 0;
      [[nodiscard]] const OperationRecord* next() const { return taken < rows.size() ? rows[taken] : nullptr; }
    };
    std::map<Place, Queue> queues;
    for (const OperationRecord* row : rows_)
      queues[{row->iteration, row->stream, row->communication}].rows.push_back(row);
    for (std::size_t i = 0; i < rank_.ops.size(); ++i) {
      const TraceOp& op = rank_.ops[i];
      if (!replayed(op)) continue;
      const bool communication = op.kind == TraceOpKind::collective;
      const std::uint32_t stream = streams.at(op.stream);
      Queue& queue = queues[{*op.iteration, stream, communication}];
      const OperationRecord* row = queue.next();
      if (row != nullptr && row->name == op.name) {
        ++queue.taken;
        if (!communication) simulated_[i] = row;
      } else if (!communication) {  // collectives of a group of one GPU are not replayed
        differs(op.name, row, queue.taken, *op.iteration, stream);
      }
    }
    for (const auto& [place, queue] : queues)
      if (queue.next() != nullptr) differs("none", queue.next(), queue.taken, std::get<0>(place), std::get<1>(place));
  }
  [[noreturn]] void differs(const std::string& recorded, const OperationRecord* simulated, std::size_t number,
                            std::uint32_t iteration, std::uint32_t stream) const {
    throw InputError(source_, "",
                     fmt::format("expected a run that replayed this trace, {} as operation {} of stream {} in "
                                 "iteration {}, got {}",
                                 recorded.substr(0, 60), number, stream, iteration,
                                 simulated == nullptr ? "none" : simulated->name.substr(0, 60)));
  }
  [[nodiscard]] bool replayed(const TraceOp& op) const {
    return op.iteration && *op.iteration < iterations_ && op.kind != TraceOpKind::host_wait;
  }

  void add(const LaunchPosition& position, Json& out) {
    if (!position.alone || to_microseconds(*position.alone) < kLongKernelUs) return;
    std::vector<Time> alone;
    std::vector<Time> beside;
    for (const std::uint32_t i : position.ops) {
      if (simulated_[i] == nullptr || !simulated_[i]->isolated_s) continue;
      const Interval ran = interval_of(*simulated_[i]);
      alone.push_back(time_of(*simulated_[i]->isolated_s));
      if (static_cast<double>(overlap(ran, collectives_).count()) >=
          0.9 * static_cast<double>((ran.end - ran.start).count()))
        beside.push_back(ran.end - ran.start);
    }
    if (position.overlapped) recorded_.add(seconds_of(position.alone), seconds_of(position.overlapped));
    if (!position.overlapped && beside.empty()) return;
    const TraceOp& op = rank_.ops[position.ops.front()];
    Json row;
    row["name"] = op.name;
    row["stream"] = op.stream;
    if (op.shape) row["grid"] = op.shape->grid;
    row["recorded_alone_s"] = seconds_of(position.alone);
    row["recorded_s"] = position.overlapped ? Json(seconds_of(position.overlapped)) : Json();
    row["simulated_alone_s"] = alone.empty() ? Json() : Json(to_seconds(median(alone)));
    row["simulated_s"] = beside.empty() ? Json() : Json(to_seconds(median(beside)));
    out.push_back(std::move(row));
    if (beside.empty()) return;
    const double simulated_alone = to_seconds(median(alone));
    const double simulated = to_seconds(median(beside));
    if (!position.overlapped) {
      only_simulated_.add(simulated_alone, simulated);
      return;
    }
    both_recorded_.add(seconds_of(position.alone), seconds_of(position.overlapped));
    both_simulated_.add(simulated_alone, simulated);
    const double recorded_ratio = seconds_of(position.overlapped) / seconds_of(position.alone);
    error_ += std::abs(simulated / simulated_alone - recorded_ratio);
    if ((recorded_ratio > kSlowed) == (simulated / simulated_alone > kSlowed)) ++slowed_alike_;
  }

  static Json hidden(const std::vector<Interval>& collectives, std::vector<Interval> kernels) {
    const Time all = length(collectives);
    if (all == Time()) return nullptr;
    return to_seconds(overlap(collectives, union_of(std::move(kernels)))) / to_seconds(all);
  }
  [[nodiscard]] Json recorded_hidden() const {
    std::vector<Interval> collectives;
    std::vector<Interval> kernels;
    for (const TraceOp& op : rank_.ops) {
      if (!replayed(op)) continue;
      if (op.kind == TraceOpKind::collective) collectives.push_back({op.start, op.start + op.duration});
      if (op.kind == TraceOpKind::kernel) kernels.push_back({op.start, op.start + op.duration});
    }
    return hidden(union_of(std::move(collectives)), std::move(kernels));
  }
  [[nodiscard]] Json simulated_hidden() const {
    std::vector<Interval> kernels;
    for (std::size_t i = 0; i < rank_.ops.size(); ++i) {
      if (simulated_[i] != nullptr && rank_.ops[i].kind == TraceOpKind::kernel)
        kernels.push_back(interval_of(*simulated_[i]));
    }
    return hidden(collectives_, std::move(kernels));
  }

  const TraceRank& rank_;
  std::string source_;
  std::uint32_t iterations_ = 0;
  std::vector<const OperationRecord*> rows_;       // by op
  std::vector<Interval> collectives_;              // simulated
  std::vector<const OperationRecord*> simulated_;  // by recorded op
  Sum recorded_;                                   // beside communication in the recording, wherever it was in the run
  Sum both_recorded_;                              // beside communication in both
  Sum both_simulated_;
  Sum only_simulated_;
  double error_ = 0;
  std::uint32_t slowed_alike_ = 0;
};

}  // namespace

Json compare_with_trace(const Trace& trace, std::size_t rank, const std::vector<OperationRecord>& rows,
                        std::uint32_t gpu, const std::string& source) {
  return Comparison(trace.ranks[rank], rows, gpu, source).run();
}

std::string trace_comparison_text(const Json& comparison) {
  const auto us = [](const Json& s) {
    return s.is_null() ? std::string("-") : fmt::format("{:.1f}", 1e6 * s.get<double>());
  };
  const auto number = [](const Json& v) {
    return v.is_null() ? std::string("-") : fmt::format("{:.3f}", v.get<double>());
  };
  const auto ratio = [](const Json& a, const Json& b) {
    return a.is_null() || b.is_null() ? std::string("-") : fmt::format("{:.2f}", b.get<double>() / a.get<double>());
  };
  std::string out = fmt::format("{:>10} {:>10} {:>6}   {:>10} {:>10} {:>6}   kernel, 20 us and more alone\n",
                                "recorded", "beside us", "ratio", "simulated", "beside us", "ratio");
  for (const Json& row : comparison["positions"]) {
    out += fmt::format(
        "{:>10} {:>10} {:>6}   {:>10} {:>10} {:>6}   {}\n", us(row["recorded_alone_s"]), us(row["recorded_s"]),
        ratio(row["recorded_alone_s"], row["recorded_s"]), us(row["simulated_alone_s"]), us(row["simulated_s"]),
        ratio(row["simulated_alone_s"], row["simulated_s"]), row["name"].get<std::string>().substr(0, 60));
  }
  for (const char* which : {"recorded", "simulated"}) {
    const Json& side = comparison[which];
    out += fmt::format("{}: slowdown beside communication {} over {} positions, communication hidden {}\n", which,
                       number(side["slowdown"]), side["positions"].get<std::uint32_t>(), number(side["hidden"]));
  }
  const Json& both = comparison["compared"];
  out += fmt::format(
      "beside communication in both, {} positions: recorded {}, simulated {}, mean error of a position {}, slowed or "
      "not right for {}\n",
      both["positions"].get<std::uint32_t>(), number(both["recorded_slowdown"]), number(both["simulated_slowdown"]),
      number(both["mean_error"]), both["slowed_or_not_right"].get<std::uint32_t>());
  return out;
}

}  // namespace weft
