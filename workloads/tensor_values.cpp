#include "workloads/tensor_values.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>

#include "sim/error.h"

namespace weft {

namespace {

TensorId storage_of(const Graph& graph, TensorId id) { return graph.tensors[id.value].view_of.value_or(id); }

bool uses(const Graph& graph, const Node& node, TensorId tensor) {
  const auto same = [&](TensorId used) { return storage_of(graph, used) == storage_of(graph, tensor); };
  const auto any = [&](const std::vector<TensorUse>& all) {
    return std::any_of(all.begin(), all.end(), [&](const TensorUse& use) { return same(use.tensor); });
  };
  return any(node.kernel.reads) || any(node.kernel.writes) ||
         (node.collective.source && same(node.collective.source->tensor)) ||
         (node.collective.target && same(node.collective.target->tensor));
}

struct Member {
  const CollectiveNode* node = nullptr;
  TensorValues* values = nullptr;

  [[nodiscard]] const float* source() const {
    return values->data(node->source->tensor) + node->source->offset / sizeof(float);
  }
  [[nodiscard]] float* target() const {
    return values->data(node->target->tensor) + node->target->offset / sizeof(float);
  }
};

// What each rank gives, in the order of the group, to what each gets.
std::vector<std::vector<float>> carried(const CollectiveNode& node, const std::vector<std::vector<float>>& given) {
  const std::size_t ranks = given.size();
  const std::size_t count = given.front().size();
  std::vector<std::vector<float>> got(ranks);
  std::vector<float> sum(count, 0.0F);
  std::vector<float> all;
  for (const auto& part : given) {
    WEFT_CHECK(part.size() == count, "ranks that give differently much");
    for (std::size_t i = 0; i < count; ++i) sum[i] += part[i];
    all.insert(all.end(), part.begin(), part.end());
  }
  const auto share = static_cast<std::ptrdiff_t>(count / ranks);
  for (std::size_t r = 0; r < ranks; ++r) {
    const auto own = static_cast<std::ptrdiff_t>(r) * share;
    switch (node.kind) {
      case CollectiveKind::all_reduce:
        got[r] = sum;
        break;
      case CollectiveKind::all_gather:
        got[r] = all;
        break;
      case CollectiveKind::reduce_scatter:
        got[r].assign(sum.begin() + own, sum.begin() + own + share);
        break;
      case CollectiveKind::all_to_all:
        for (const auto& part : given) got[r].insert(got[r].end(), part.begin() + own, part.begin() + own + share);
        break;
      case CollectiveKind::shift:
        got[r] = given[(r + ranks - node.distance) % ranks];
        break;
      default:
        throw InternalError(fmt::format("no values for {}", to_string(node.kind)));
    }
  }
  return got;
}

void exchange(const std::vector<Member>& members) {
  std::vector<std::vector<float>> given;
  for (const Member& member : members) {
    const float* from = member.source();
    given.emplace_back(from, from + member.node->source->bytes / sizeof(float));
  }
  const auto got = carried(*members.front().node, given);
  for (std::size_t r = 0; r < members.size(); ++r) {
    WEFT_CHECK(got[r].size() * sizeof(float) == members[r].node->target->bytes, "a target of another size");
    std::copy(got[r].begin(), got[r].end(), members[r].target());
  }
}

void fill_given(std::uint32_t rank, const Graph& graph, TensorValues& values, const FillTensor& fill) {
  std::vector<bool> seen(graph.tensors.size(), false);
  const auto visit = [&](TensorId tensor, bool written) {
    if (seen[tensor.value]) return;
    seen[tensor.value] = true;
    const Tensor& described = graph.tensors[tensor.value];
    if (!written || described.memory_class == MemoryClass::parameters) {
      fill(rank, described, values.data(tensor), values.elements(tensor));
    }
  };
  for (const Node& node : graph.nodes) {
    for (const TensorUse& use : node.kernel.reads) visit(use.tensor, false);
    if (node.collective.source) visit(node.collective.source->tensor, false);
    for (const TensorUse& use : node.kernel.writes) visit(use.tensor, true);
    if (node.collective.target) visit(node.collective.target->tensor, true);
  }
}

}  // namespace

TensorValues::TensorValues(const Graph& graph) : graph_(&graph), plan_(plan_addresses(graph)) {
  // What nobody wrote shows.
  memory_.assign((plan_.end - kFirstAddress) / sizeof(float), std::numeric_limits<float>::quiet_NaN());
}

float* TensorValues::data(TensorId tensor) {
  WEFT_CHECK(computing_ == nullptr || uses(*graph_, *computing_, tensor),
             fmt::format("'{}' is no operand of '{}'", graph_->tensors[tensor.value].name,
                         computing_ == nullptr ? "" : computing_->name));
  WEFT_CHECK(plan_.addresses[tensor.value] >= kFirstAddress, graph_->tensors[tensor.value].name);
  return memory_.data() + (plan_.addresses[tensor.value] - kFirstAddress) / sizeof(float);
}

std::int64_t TensorValues::elements(TensorId tensor) const {
  return graph_->tensors[tensor.value].bytes.count() / static_cast<std::int64_t>(sizeof(float));
}

void TensorValues::compute(const Node& node) {
  WEFT_CHECK(static_cast<bool>(node.compute), fmt::format("'{}' does not say what it computes", node.name));
  computing_ = &node;
  node.compute(*this);
  computing_ = nullptr;
}

void carry_out(RankValues& ranks, const FillTensor& fill, const SeeNode& finished) {
  const std::size_t count = ranks.graphs.size();
  ranks.values.clear();
  for (std::uint32_t r = 0; r < count; ++r) {
    ranks.values.emplace_back(ranks.graphs[r]);
    fill_given(r, ranks.graphs[r], ranks.values[r], fill);
  }
  std::vector<std::size_t> next(count, 0);
  const auto waits_at = [&](std::uint32_t r) -> const Node* {
    return next[r] < ranks.graphs[r].nodes.size() ? &ranks.graphs[r].nodes[next[r]] : nullptr;
  };
  for (bool moved = true; moved;) {
    moved = false;
    for (std::uint32_t r = 0; r < count; ++r) {
      for (const Node* node = waits_at(r); node != nullptr && node->kind == NodeKind::kernel; node = waits_at(r)) {
        ranks.values[r].compute(*node);
        finished(r, *node, ranks.values[r]);
        ++next[r];
        moved = true;
      }
      const Node* node = waits_at(r);
      if (node == nullptr) continue;
      const std::vector<std::uint32_t>& group = node->collective.group_ranks;
      std::vector<Member> members;
      for (const std::uint32_t g : group) {
        const Node* other = waits_at(g);
        if (other == nullptr || other->collective.group_ranks != group || other->name != node->name) break;
        members.push_back({&other->collective, &ranks.values[g]});
      }
      if (members.size() != group.size()) continue;
      exchange(members);
      for (const std::uint32_t g : group) {
        finished(g, *waits_at(g), ranks.values[g]);
        ++next[g];
      }
      moved = true;
    }
  }
  for (std::uint32_t r = 0; r < count; ++r) {
    if (const Node* node = waits_at(r))
      throw InternalError(fmt::format("rank {} waits in '{}' for ever", r, node->name));
  }
}

}  // namespace weft
