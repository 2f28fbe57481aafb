#include "workloads/data_parallel.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "sim/error.h"
#include "workloads/address_plan.h"
#include "workloads/gradient_buckets.h"
#include "workloads/graph_builder.h"

namespace weft {
namespace {

struct PlacedBucket {
  Bytes bytes;
  OpId last;
  GpuGroup group;
  std::uint64_t address = 0;
};

void place_buckets(const Graph& graph, const DataParallelSpec& spec, const AddressPlan& plan, bool distributed,
                   const GpuGroup& group, std::vector<PlacedBucket>& placed) {
  if (group.size() < 2) return;
  std::map<TensorId, TensorId> gradient;
  for (std::uint32_t i = 0; i < graph.tensors.size(); ++i) {
    if (graph.tensors[i].gradient_of) gradient[*graph.tensors[i].gradient_of] = TensorId{i};
  }
  for (const GradientBucket& bucket : assign_buckets(graph, spec.first_bucket, spec.bucket, distributed)) {
    std::uint64_t next = plan.addresses[gradient.at(bucket.parameters.front()).value];
    placed.push_back({bucket.bytes, bucket.last, group, next});
    for (const TensorId parameter : bucket.parameters) {
      const TensorId id = gradient.at(parameter);
      const std::uint64_t address = plan.addresses[id.value];
      if (address < next || address - next >= DeviceAllocator::kGranularity) {
        throw InputError(graph.name, fmt::format("/tensors/{}", id.value),
                         fmt::format("expected the gradients of a bucket one after another in memory, got '{}' apart",
                                     graph.tensors[id.value].name));
      }
      next = address + static_cast<std::uint64_t>(graph.tensors[id.value].bytes.count());
    }
  }
}

// Writes the program of one GPU.
class ProgramWriter {
 public:
  ProgramWriter(const Graph& graph, const DataParallelSpec& spec, const GradientGroups& groups)
      : graph_(graph), spec_(spec), plan_(plan_addresses(graph)) {
    place_buckets(graph, spec, plan_, false, groups.same, buckets_);
    place_buckets(graph, spec, plan_, true, groups.distributed, buckets_);
    std::stable_sort(buckets_.begin(), buckets_.end(),
                     [](const PlacedBucket& a, const PlacedBucket& b) { return a.last < b.last; });
    std::size_t after_gradients = 0;
    for (const PlacedBucket& bucket : buckets_) {
      after_gradients = std::max<std::size_t>(after_gradients, bucket.last.value + std::size_t{1});
    }
    join_ = after_gradients;
    while (join_ < graph.nodes.size() && graph.nodes[join_].phase == TrainingPhase::backward) ++join_;
  }

  Program write() {
    const bool in_sample = std::any_of(graph_.nodes.begin(), graph_.nodes.end(), is_collective);
    program_.priorities.assign(in_sample && spec_.overlap ? 3 : (buckets_.empty() ? 1 : 2),
                               spec_.high_priority ? 1 : 0);
    program_.priorities[kComputeStream.value] = 0;
    program_.iterations = spec_.iterations;
    program_.samples_per_iteration = graph_.samples_per_iteration;
    program_.tokens_per_iteration = graph_.tokens_per_iteration;
    for (std::uint32_t iteration = 0; iteration < spec_.iterations; ++iteration) write_iteration(iteration);
    return std::move(program_);
  }

 private:
  // An operation of its own.
  static bool is_collective(const Node& node) { return node.kind == NodeKind::collective && !node.collective.fused; }

  void write_iteration(std::uint32_t iteration) {
    std::vector<OpId> op_of(graph_.nodes.size());
    auto event = plan_.events.begin();
    std::size_t next_bucket = 0;
    for (std::size_t i = 0; i < graph_.nodes.size(); ++i) {
      if (i == join_ && !spec_.overlap) all_reduce_all(op_of, iteration);
      const Node& node = graph_.nodes[i];
      if (node.collective.fused) {
        op_of[i] = op_of[i - 1];
        for (; event != plan_.events.end() && event->node == i; ++event) record(*event, op_of[i], iteration);
        fuse(node, program_.ops.edit()[op_of[i].value]);
        continue;
      }
      op_of[i] = next_op();
      for (; event != plan_.events.end() && event->node == i; ++event) record(*event, op_of[i], iteration);
      ProgramOp op = place(node, plan_);
      op.iteration = iteration;
      op.stream = kComputeStream;
      if (node.kind == NodeKind::host_wait) {
        for (const OpId dependency : node.dependencies) op.waits.push_back(op_of[dependency.value]);
      }
      if (node.kind == NodeKind::collective) {
        join_sample(node, op);
        if (spec_.overlap) op.stream = kSampleStream;
      }
      wait_across_streams(node, op_of, op);
      if (i == join_ || i == 0) {
        op.waits.insert(op.waits.end(), reducing_.begin(), reducing_.end());
        reducing_.clear();
      }
      program_.ops.push_back(std::move(op));
      for (; spec_.overlap && next_bucket < buckets_.size() && buckets_[next_bucket].last.value == i; ++next_bucket) {
        all_reduce(buckets_[next_bucket], op_of[i], iteration);
      }
    }
    if (join_ == graph_.nodes.size() && !spec_.overlap) all_reduce_all(op_of, iteration);
    // What is freed after the last operation is gone when the next iteration starts.
    if (iteration + 1 < spec_.iterations) {
      for (; event != plan_.events.end(); ++event) record(*event, next_op(), iteration);
    }
  }

  void join_sample(const Node& node, ProgramOp& op) {
    std::vector<GpuId> members;
    for (const std::uint32_t gpu : node.collective.group_ranks) members.push_back(GpuId{gpu});
    op.collective.group = group_of(members);
    op.collective.sequence = sequence_[op.collective.group]++;
  }

  // The kernel before it does it, too.
  void fuse(const Node& node, ProgramOp& kernel) {
    WEFT_CHECK(kernel.kind == ProgramOpKind::kernel, "a kernel stores what is summed");
    kernel.fused = true;
    kernel.name += fmt::format("+{}", to_string(node.collective.kind));
    kernel.collective = place(node, plan_).collective;
    join_sample(node, kernel);
  }

  // Groups share one list of members.
  const GpuGroup& group_of(const std::vector<GpuId>& members) {
    const auto known =
        std::find_if(groups_.begin(), groups_.end(), [&](const GpuGroup& group) { return group.members() == members; });
    return known != groups_.end() ? *known : groups_.emplace_back(members);
  }

  // The last operation of the other stream that this one needs: those before it have ended then.
  void wait_across_streams(const Node& node, const std::vector<OpId>& op_of, ProgramOp& op) const {
    if (!spec_.overlap || node.kind == NodeKind::host_wait) return;
    const bool here = is_collective(node);
    std::optional<OpId> last;
    for (const OpId dependency : node.dependencies) {
      if (is_collective(graph_.nodes[dependency.value]) != here) last = op_of[dependency.value];
    }
    if (last) op.waits.push_back(*last);
  }

  [[nodiscard]] OpId next_op() const { return OpId{static_cast<std::uint32_t>(program_.ops.size())}; }

  void record(const AddressPlan::Event& event, OpId op, std::uint32_t iteration) {
    if (event.persistent && iteration > 0) return;
    const Tensor& tensor = graph_.tensors[event.tensor.value];
    program_.memory.push_back({op, tensor.memory_class, event.bytes, tensor.name});
  }

  // After the backward pass. The host runs ahead of the GPU: to be issued late is not enough to start late.
  void all_reduce_all(const std::vector<OpId>& op_of, std::uint32_t iteration) {
    for (const PlacedBucket& bucket : buckets_) all_reduce(bucket, op_of[join_ - 1], iteration);
  }

  void all_reduce(const PlacedBucket& bucket, OpId ready, std::uint32_t iteration) {
    ProgramOp op;
    op.kind = ProgramOpKind::collective;
    op.name = "all_reduce";
    op.layer = fmt::format("bucket.{}", &bucket - buckets_.data());
    op.phase = TrainingPhase::backward;
    op.iteration = iteration;
    op.stream = kCommunicationStream;
    op.waits = {ready};
    op.collective.kind = CollectiveKind::all_reduce;
    op.collective.bytes = bucket.bytes;
    op.collective.type = DataType::fp32;
    op.collective.group = bucket.group;
    op.collective.sequence = sequence_[bucket.group]++;
    op.collective.send_address = bucket.address;
    op.collective.receive_address = bucket.address;
    reducing_.push_back(next_op());
    program_.ops.push_back(std::move(op));
  }

  const Graph& graph_;
  const DataParallelSpec& spec_;
  AddressPlan plan_;
  std::vector<PlacedBucket> buckets_;
  std::size_t join_ = 0;        // the node that needs all gradients reduced
  std::vector<OpId> reducing_;  // all-reduces nobody waits for yet
  std::vector<GpuGroup> groups_;
  std::map<GpuGroup, std::uint32_t> sequence_;
  Program program_;
};

void require_positive(std::int64_t value, const char* path) {
  if (value <= 0) throw InputError("", path, fmt::format("expected 1 or more, got {}", value));
}

void check(const Graph& graph, const DataParallelSpec& spec) {
  require_positive(spec.gpus, "/gpus");
  require_positive(spec.iterations, "/iterations");
  require_positive(spec.bucket.count(), "/scheme/bucket_MiB");
  require_positive(spec.first_bucket.count(), "/scheme/first_bucket_MiB");
  if (graph.iterations != 1) {
    throw InputError(graph.name, "/iterations", fmt::format("expected a graph of one step, got {}", graph.iterations));
  }
}

}  // namespace

std::vector<Program> data_parallel(const Graph& graph, const DataParallelSpec& spec) {
  check(graph, spec);
  // The others differ in nothing, because groups and addresses are the same on all.
  return std::vector<Program>(spec.gpus, ProgramWriter(graph, spec, {GpuGroup::first(spec.gpus), {}}).write());
}

Program sample_parallel(const Graph& graph, const DataParallelSpec& spec, const GradientGroups& groups) {
  check(graph, spec);
  return ProgramWriter(graph, spec, groups).write();
}

}  // namespace weft
