#include "workloads/graph.h"

#include <fmt/format.h>

#include <algorithm>

#include "sim/error.h"

namespace weft {
namespace {

struct Place {
  const std::string& source;
  std::string path;
  [[noreturn]] void fail(const std::string& message) const { throw InputError(source, path, message); }
};

void require_tensor(const Graph& graph, TensorId tensor, const Place& place) {
  if (tensor.value >= graph.tensors.size()) {
    place.fail(fmt::format("expected a tensor below {}, got {}", graph.tensors.size(), tensor.value));
  }
}

void validate_tensor(const Graph& graph, const Tensor& tensor, const Place& place) {
  if (tensor.bytes.count() < 0) place.fail(fmt::format("expected bytes of 0 or more, got {}", tensor.bytes.count()));
  if (tensor.gradient_of) require_tensor(graph, *tensor.gradient_of, place);
  if (!tensor.view_of) return;
  require_tensor(graph, *tensor.view_of, place);
  const Tensor& storage = graph.tensors[tensor.view_of->value];
  if (storage.view_of) place.fail("expected a view of a tensor with memory of its own, got a view of a view");
  const auto end = tensor.view_offset + static_cast<std::uint64_t>(tensor.bytes.count());
  if (end > static_cast<std::uint64_t>(storage.bytes.count())) {
    place.fail(fmt::format("expected a view inside the {} bytes of '{}', got one up to byte {}", storage.bytes.count(),
                           storage.name, end));
  }
}

void validate_use(const Graph& graph, const TensorUse& use, std::uint64_t blocks, const Place& place) {
  require_tensor(graph, use.tensor, place);
  if (use.divisor == 0) place.fail("expected a divisor of 1 or more, got 0");
  const Tensor& tensor = graph.tensors[use.tensor.value];
  const std::uint64_t end = use.offset + (highest_slice(use, blocks) + 1) * use.bytes_per_block;
  if (end > static_cast<std::uint64_t>(tensor.bytes.count())) {
    place.fail(fmt::format("expected accesses inside the {} bytes of tensor '{}', got one up to byte {}",
                           tensor.bytes.count(), tensor.name, end));
  }
}

void validate_kernel(const Graph& graph, const KernelNode& kernel, const Place& place) {
  if (kernel.shape.blocks() == 0 || kernel.shape.threads_per_block() == 0) {
    place.fail("expected a grid and blocks of at least one thread, got an empty launch");
  }
  if (kernel.iterations == 0 || kernel.stages == 0) place.fail("expected iterations and stages of 1 or more, got 0");
  if (std::any_of(kernel.flops.begin(), kernel.flops.end(), [](double flops) { return !(flops >= 0); })) {
    place.fail("expected operations of 0 or more, got a negative number");
  }
  for (const TensorUse& use : kernel.reads) validate_use(graph, use, kernel.parts(), place);
  for (const TensorUse& use : kernel.writes) validate_use(graph, use, kernel.parts(), place);
}

void validate_range(const Graph& graph, const std::optional<TensorRange>& range, const Place& place) {
  if (!range) return;
  require_tensor(graph, range->tensor, place);
  const Tensor& tensor = graph.tensors[range->tensor.value];
  if (range->offset + range->bytes > static_cast<std::uint64_t>(tensor.bytes.count())) {
    place.fail(fmt::format("expected a range inside the {} bytes of tensor '{}', got one up to byte {}",
                           tensor.bytes.count(), tensor.name, range->offset + range->bytes));
  }
}

}  // namespace

std::uint64_t highest_slice(const TensorUse& use, std::uint64_t blocks) {
  const std::uint64_t last = (blocks - 1) / use.divisor;
  return use.modulo == 0 ? last : std::min<std::uint64_t>(last, use.modulo - 1);
}

void validate(const Graph& graph, const std::string& source) {
  for (std::size_t i = 0; i < graph.tensors.size(); ++i) {
    validate_tensor(graph, graph.tensors[i], {source, fmt::format("/tensors/{}", i)});
  }
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    const Node& node = graph.nodes[i];
    const Place place{source, fmt::format("/nodes/{}", i)};
    for (const OpId dependency : node.dependencies) {
      if (dependency.value >= graph.nodes.size()) {
        place.fail(fmt::format("expected a dependency below {}, got {}", graph.nodes.size(), dependency.value));
      }
      if (dependency.value >= i) {
        place.fail(fmt::format("expected dependencies on earlier operations, got a cycle or a forward one: {} ('{}')",
                               dependency.value, graph.nodes[dependency.value].name));
      }
    }
    if (node.iteration >= graph.iterations) {
      place.fail(fmt::format("expected an iteration below {}, got {}", graph.iterations, node.iteration));
    }
    for (const TensorId tensor : node.gradients_ready) require_tensor(graph, tensor, place);
    if (node.kind == NodeKind::kernel) validate_kernel(graph, node.kernel, place);
    if (node.kind == NodeKind::collective && node.collective.bytes.count() < 0) {
      place.fail(fmt::format("expected bytes of 0 or more, got {}", node.collective.bytes.count()));
    }
    validate_range(graph, node.collective.source, place);
    validate_range(graph, node.collective.target, place);
    if (node.kind == NodeKind::copy && node.copy.bytes.count() < 0) {
      place.fail(fmt::format("expected bytes of 0 or more, got {}", node.copy.bytes.count()));
    }
  }
}

}  // namespace weft
