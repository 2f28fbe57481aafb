#include "traces/kineto_rank.h"

#include <algorithm>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "sim/error.h"
#include "traces/execution_join.h"
#include "traces/kineto_names.h"
#include "traces/kineto_waits.h"

namespace weft {
namespace {

constexpr std::int64_t kFsPerNs = 1'000'000;

class RankBuilder {
 public:
  RankBuilder(const KinetoFile& file, std::int64_t device, const ExecutionJoin* execution)
      : file_(file), device_(device), execution_(execution), origin_(earliest_time(file)), host_(file) {}

  TraceRank build(std::uint32_t number) {
    TraceRank rank;
    rank.rank = number;
    for (const KinetoDevice& d : file_.devices) {
      // ROCm numbers devices of the profile by node, behind the CPUs, so the number may not be among the properties.
      if (d.id != device_ && !(rank.device.empty() && d.id == 0)) continue;
      rank.device = d.name;
      rank.compute_units = d.compute_units;
      rank.memory_bytes = d.memory_bytes;
    }
    collect();
    fill_waits(host_, file_.clock_tolerance, ops_);
    if (execution_ && !host_.has_event_ids()) add_data_waits(*execution_, host_, file_.clock_tolerance, ops_);
    drop_empty_host_waits();
    make_iterations(rank);
    rank.ops.reserve(ops_.size());
    for (const KinetoOp& op : ops_) {
      number_ = static_cast<std::uint32_t>(rank.ops.size());
      rank.ops.push_back(trace_op(op));
    }
    return rank;
  }
  [[nodiscard]] std::vector<PeerKernel> exchanges() && { return std::move(exchanges_); }

 private:
  Time time(std::int64_t ns) const {
    const std::int64_t relative = ns - origin_;
    if (relative > std::numeric_limits<std::int64_t>::max() / kFsPerNs)
      throw InputError(file_.name, "",
                       "expected a trace of at most 2.5 hours, got " + std::to_string(relative / 1'000'000'000) +
                           " s after the first event");
    return Time(relative * kFsPerNs);
  }

  [[nodiscard]] bool is_symmetric(const KinetoOp& op) const {
    return is_symmetric_memory_kernel(op.gpu->name) && op.call &&
           is_symmetric_memory(host_.context(op.call).collective);
  }

  void collect() {
    for (const KinetoEvent& e : file_.events) {
      if (!is_gpu(e.category) || e.device != device_) continue;
      KinetoOp op;
      op.gpu = &e;
      op.call = e.correlation >= 0 ? host_.call(e.correlation) : nullptr;
      op.start = e.start;
      op.end = e.end();
      op.issued = op.call ? std::min(op.call->start, op.start) : op.start;
      op.collective = e.category == KinetoCategory::kernel && (is_collective_kernel(e.name) || is_symmetric(op));
      ops_.push_back(std::move(op));
    }
    order_streams();
    for (KinetoOp& wait : host_waits(host_, ops_, file_.clock_tolerance)) ops_.push_back(std::move(wait));
    std::stable_sort(ops_.begin(), ops_.end(), [](const KinetoOp& a, const KinetoOp& b) {
      if (a.issued != b.issued) return a.issued < b.issued;
      if (a.waits_on_host() != b.waits_on_host()) return b.waits_on_host();
      return a.start < b.start;
    });
  }

  // A stream runs in order of issue, so what has no recorded launch was issued before all that starts later on its
  // stream. What starts before all recorded launches was launched before the recording began.
  void order_streams() {
    std::map<std::int64_t, std::vector<KinetoOp*>> streams;
    for (KinetoOp& op : ops_) streams[op.gpu->stream].push_back(&op);
    const bool any_launch =
        std::any_of(ops_.begin(), ops_.end(), [](const KinetoOp& op) { return op.call != nullptr; });
    for (auto& [id, list] : streams) {
      std::stable_sort(list.begin(), list.end(),
                       [](const KinetoOp* a, const KinetoOp* b) { return a->start < b->start; });
      std::int64_t bound = std::numeric_limits<std::int64_t>::max();
      for (auto op = list.rbegin(); op != list.rend(); ++op) {
        if (!(*op)->call) (*op)->issued = std::min((*op)->issued, bound);
        bound = std::min(bound, (*op)->issued);
      }
      end_before_the_next(list);
      for (const KinetoOp* op : list) {
        if (op->call) break;
        if (any_launch) left_over_.insert(op->gpu->number);
      }
    }
  }

  // Recorded operations of a stream may overlap: kernels that are launched before the one before has ended
  // (programmatic dependent launch of Hopper and later), and durations that are wrong (of ROCm's profiler). What a
  // stream gives to an operation ends when it goes on with the next one.
  void end_before_the_next(const std::vector<KinetoOp*>& stream) const {
    for (std::size_t i = 0; i + 1 < stream.size(); ++i) {
      const std::int64_t next = stream[i + 1]->start;
      if (stream[i]->end > next + file_.clock_tolerance && stream[i]->start < next) stream[i]->end = next;
    }
  }

  void drop_empty_host_waits() {
    std::vector<std::uint32_t> renumbered(ops_.size());
    std::vector<KinetoOp> kept;
    for (std::size_t i = 0; i < ops_.size(); ++i) {
      renumbered[i] = static_cast<std::uint32_t>(kept.size());
      if (!ops_[i].waits_on_host() || !ops_[i].waits.empty()) kept.push_back(std::move(ops_[i]));
    }
    for (KinetoOp& op : kept)
      for (std::uint32_t& wait : op.waits) wait = renumbered[wait];
    ops_ = std::move(kept);
  }

  [[nodiscard]] std::optional<std::size_t> step_of(const KinetoOp& op) const {
    const std::vector<KinetoIteration>& steps = host_.iterations();
    if (steps.empty()) return 0;
    if (op.gpu && left_over_.contains(op.gpu->number)) return std::nullopt;
    const auto next = std::upper_bound(steps.begin(), steps.end(), op.issued,
                                       [](std::int64_t t, const KinetoIteration& s) { return t < s.start; });
    if (next == steps.begin()) return std::nullopt;
    // Between two steps is the end of the earlier one; behind the last one is none.
    if (next == steps.end() && op.issued > steps.back().end) return std::nullopt;
    return static_cast<std::size_t>(next - steps.begin()) - 1;
  }

  // Steps without any operation on the GPU are left out: profilers close with one.
  void make_iterations(TraceRank& rank) {
    const std::vector<KinetoIteration>& steps = host_.iterations();
    iteration_of_.assign(ops_.size(), std::nullopt);
    std::vector<bool> used(std::max<std::size_t>(steps.size(), 1), false);
    for (std::size_t i = 0; i < ops_.size(); ++i) {
      const auto step = step_of(ops_[i]);
      if (step && ops_[i].gpu) used[*step] = true;
    }
    std::vector<std::optional<std::uint32_t>> numbers(used.size());
    for (std::size_t s = 0; s < used.size(); ++s) {
      if (!used[s]) continue;
      numbers[s] = static_cast<std::uint32_t>(rank.iterations.size());
      if (steps.empty()) {
        std::int64_t start = std::numeric_limits<std::int64_t>::max();
        std::int64_t end = 0;
        for (const KinetoOp& op : ops_) {
          start = std::min(start, op.issued);
          end = std::max(end, op.end);
        }
        rank.iterations.push_back({"all", time(start), time(end)});
      } else {
        rank.iterations.push_back({steps[s].name, time(steps[s].start), time(steps[s].end)});
      }
    }
    for (std::size_t i = 0; i < ops_.size(); ++i)
      if (const auto step = step_of(ops_[i])) iteration_of_[i] = numbers[*step];
  }

  TraceOp trace_op(const KinetoOp& op) {
    TraceOp out;
    const HostContext* context = op.call ? &host_.context(op.call) : nullptr;
    if (context) {
      out.op = context->op;
      out.layer = context->layer;
      out.phase = context->phase;
    }
    out.iteration = iteration_of_[number_];
    out.issued = time(op.issued);
    if (op.call && op.gpu) out.issue_duration = time(op.call->end()) - time(op.call->start);
    out.start = time(op.start);
    out.duration = time(op.end) - out.start;
    out.waits = op.waits;
    if (!op.gpu) {
      out.kind = TraceOpKind::host_wait;
      out.name = op.call->name;
      out.correlation = std::max<std::int64_t>(op.call->correlation, -1);
      return out;
    }
    out.name = op.gpu->name;
    out.correlation = std::max<std::int64_t>(op.gpu->correlation, -1);
    out.stream = static_cast<std::uint32_t>(op.gpu->stream);
    fill_kind(op, context, out);
    return out;
  }

  void fill_kind(const KinetoOp& op, const HostContext* context, TraceOp& out) {
    switch (op.gpu->category) {
      case KinetoCategory::copy:
        out.kind = TraceOpKind::copy;
        out.copy_direction = copy_direction(op.gpu->name, op.gpu->copy_kind);
        out.bytes = Bytes(std::max(op.gpu->bytes, op.call ? op.call->bytes : 0));
        return;
      case KinetoCategory::memset:
        out.kind = TraceOpKind::memset;
        out.bytes = Bytes(std::max(op.gpu->bytes, op.call ? op.call->bytes : 0));
        return;
      default:
        out.kind = op.collective ? TraceOpKind::collective : TraceOpKind::kernel;
        out.shape = shape(op);
        if (context && context->sized && !op.collective) out.launched_by = operator_call(*context->sized);
        if (op.collective) add_collective(*op.gpu, context, out);
    }
  }

  void add_collective(const KinetoEvent& kernel, const HostContext* context, TraceOp& out) {
    KinetoExchange found = kineto_collective(file_, kernel, context);
    out.collective = std::move(found.collective);
    if (!found.transfers.empty()) exchanges_.push_back({number_, std::move(found.transfers)});
  }

  // One for all calls with the same inputs.
  std::shared_ptr<const OperatorCall> operator_call(const KinetoEvent& op) {
    std::shared_ptr<const OperatorCall>& call = operator_calls_[{op.name, op.inputs}];
    if (!call) call = std::make_shared<const OperatorCall>(OperatorCall{std::string(op.name), *op.inputs});
    return call;
  }

  // AMD's kernels carry the launch call's arguments, or none where the call was not recorded.
  static std::optional<LaunchShape> shape(const KinetoOp& op) {
    const LaunchShape* recorded = op.gpu->shape ? op.gpu->shape : op.call ? op.call->shape : nullptr;
    if (!recorded || recorded->threads_per_block() == 0) return std::nullopt;
    std::optional<LaunchShape> shape = *recorded;
    if (op.call && host_call(op.call->name) == HostCall::launch_in_threads) {
      for (std::size_t i = 0; i < 3; ++i) shape->grid[i] = (shape->grid[i] + shape->block[i] - 1) / shape->block[i];
    }
    return shape->blocks() == 0 ? std::nullopt : shape;
  }

  const KinetoFile& file_;
  std::int64_t device_;
  const ExecutionJoin* execution_;
  std::int64_t origin_;
  KinetoHost host_;
  std::vector<KinetoOp> ops_;
  std::map<std::pair<std::string_view, const OperatorInputs*>, std::shared_ptr<const OperatorCall>> operator_calls_;
  std::set<std::size_t> left_over_;  // event numbers
  std::vector<std::optional<std::uint32_t>> iteration_of_;
  std::uint32_t number_ = 0;  // of the operation at hand, in the rank
  std::vector<PeerKernel> exchanges_;
};

}  // namespace

TraceRank kineto_rank(const KinetoFile& file, std::uint32_t rank, std::int64_t device, const ExecutionJoin* execution,
                      std::vector<PeerKernel>* exchanges) {
  RankBuilder builder(file, device, execution);
  TraceRank built = builder.build(rank);
  if (exchanges != nullptr) *exchanges = std::move(builder).exchanges();
  return built;
}

std::int64_t earliest_time(const KinetoFile& file) {
  std::int64_t earliest = std::numeric_limits<std::int64_t>::max();
  for (const KinetoEvent& e : file.events) earliest = std::min(earliest, e.start);
  return earliest;
}

}  // namespace weft
