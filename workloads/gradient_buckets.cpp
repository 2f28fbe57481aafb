#include "workloads/gradient_buckets.h"

#include <fmt/format.h>

#include <map>

#include "sim/error.h"

namespace weft {

std::vector<GradientBucket> assign_buckets(const Graph& graph, Bytes first, Bytes limit, bool distributed) {
  std::map<TensorId, Bytes> gradient_bytes;
  for (const Tensor& tensor : graph.tensors) {
    if (tensor.gradient_of) gradient_bytes[*tensor.gradient_of] = tensor.bytes;
  }
  std::vector<GradientBucket> buckets;
  GradientBucket open;
  for (std::uint32_t node = 0; node < graph.nodes.size(); ++node) {
    for (const TensorId parameter : graph.nodes[node].gradients_ready) {
      const auto found = gradient_bytes.find(parameter);
      if (found == gradient_bytes.end()) {
        throw InputError(graph.name, fmt::format("/nodes/{}/gradients_ready", node),
                         fmt::format("expected a parameter with a gradient tensor, got '{}'",
                                     graph.tensors.at(parameter.value).name));
      }
      if (graph.tensors[parameter.value].distributed != distributed) continue;
      open.parameters.push_back(parameter);
      open.bytes += found->second;
      open.last = OpId{node};
      if (open.bytes >= (buckets.empty() ? first : limit)) {
        buckets.push_back(std::move(open));
        open = {};
      }
    }
  }
  if (!open.parameters.empty()) buckets.push_back(std::move(open));
  return buckets;
}

}  // namespace weft
