#include "traces/measured_demand.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

namespace weft {
namespace {

// The replay that measures finds in caches what its passes before left there, so below the largest L2 (B200: 126 MB)
// HBM's bytes tell nothing of what a kernel touches.
constexpr double kLargestCache = 128e6;
// No tensor needs to be larger for no cache to hold it.
constexpr double kLargestTensor = 4e9;

using Uses = std::vector<TensorUse>;

double slices(const TensorUse& use, double blocks) {
  const double all = std::ceil(blocks / use.divisor);
  return use.modulo == 0 ? all : std::min<double>(all, use.modulo);
}

double touched(const Uses& uses, double blocks) {
  return std::accumulate(uses.begin(), uses.end(), 0.0, [&](double sum, const TensorUse& use) {
    return sum + static_cast<double>(use.bytes_per_block) * blocks;
  });
}

double footprint(const Uses& uses, double blocks) {
  std::set<std::uint32_t> seen;
  double sum = 0;
  for (const TensorUse& use : uses)
    if (seen.insert(use.tensor.value).second) sum += static_cast<double>(use.bytes_per_block) * slices(use, blocks);
  return sum;
}

// Blocks share slices until no more than `most` times as much is distinct.
void shrink(TensorUse& use, double blocks, double most) {
  const double now = slices(use, blocks);
  const double limit = std::min(now * most, kLargestTensor / static_cast<double>(use.bytes_per_block));
  if (limit < now) use.modulo = static_cast<std::uint32_t>(std::clamp(std::round(limit), 1.0, 0x1p31));
}

void scale(Uses& uses, double blocks, const std::optional<std::int64_t>& l2, const std::optional<std::int64_t>& hbm) {
  if (uses.empty() || (!l2 && !hbm)) return;
  const auto target = static_cast<double>(l2 ? *l2 : *hbm);
  if (target <= 0) {
    uses.clear();
    return;
  }
  const double factor = target / (l2 ? touched(uses, blocks) : footprint(uses, blocks));
  for (TensorUse& use : uses)
    use.bytes_per_block = static_cast<std::uint64_t>(
        std::clamp(std::round(static_cast<double>(use.bytes_per_block) * factor), 1.0, kLargestTensor));
}

}  // namespace

std::array<std::optional<double>, kPipeCount> pipe_operations(const KernelCounters& counters) {
  struct Part {
    KernelCounter counter;
    Pipe pipe;
    double share;
  };
  constexpr std::array kParts{Part{KernelCounter::tensor_fp16_ops, Pipe::tensor_fp16, 1},
                              Part{KernelCounter::tensor_8bit_ops, Pipe::tensor_fp16, 0.5},
                              Part{KernelCounter::tensor_4bit_ops, Pipe::tensor_fp16, 0.25},
                              Part{KernelCounter::tensor_tf32_ops, Pipe::tensor_tf32, 1},
                              Part{KernelCounter::fp64_ops, Pipe::fp64, 1},
                              Part{KernelCounter::fp32_ops, Pipe::fp32, 1},
                              Part{KernelCounter::fp16_ops, Pipe::fp32, 0.5}};
  std::array<std::optional<double>, kPipeCount> out{};
  for (const Part& part : kParts) {
    if (!counters[part.counter]) continue;
    std::optional<double>& sum = out[static_cast<std::size_t>(part.pipe)];
    sum = sum.value_or(0) + part.share * static_cast<double>(*counters[part.counter]);
  }
  return out;
}

std::optional<double> measured_bytes(const KernelCounters& counters) {
  const auto sum = [&](KernelCounter read, KernelCounter written) -> std::optional<double> {
    if (!counters[read] && !counters[written]) return std::nullopt;
    return static_cast<double>(counters[read].value_or(0)) + static_cast<double>(counters[written].value_or(0));
  };
  const auto l2 = sum(KernelCounter::l2_read_bytes, KernelCounter::l2_written_bytes);
  return l2 ? l2 : sum(KernelCounter::hbm_read_bytes, KernelCounter::hbm_written_bytes);
}

void apply_counters(const KernelCounters& counters, KernelNode& node, std::vector<Bytes>& tensors) {
  const auto operations = pipe_operations(counters);
  for (std::size_t pipe = 0; pipe < kPipeCount; ++pipe)
    if (operations[pipe]) node.flops[pipe] = *operations[pipe];
  if (!measured_bytes(counters)) return;
  const auto blocks = static_cast<double>(node.shape.blocks());
  const auto& hbm_read = counters[KernelCounter::hbm_read_bytes];
  scale(node.reads, blocks, counters[KernelCounter::l2_read_bytes], hbm_read);
  scale(node.writes, blocks, counters[KernelCounter::l2_written_bytes], counters[KernelCounter::hbm_written_bytes]);
  const double most =
      hbm_read ? std::max(static_cast<double>(*hbm_read), kLargestCache) / footprint(node.reads, blocks) : 1;
  for (TensorUse& use : node.reads) shrink(use, blocks, most);
  for (TensorUse& use : node.writes) shrink(use, blocks, 1);
  std::fill(tensors.begin(), tensors.end(), Bytes(1));
  for (const Uses* uses : {&node.reads, &node.writes})
    for (const TensorUse& use : *uses) {
      const double bytes = static_cast<double>(use.bytes_per_block) * slices(use, blocks);
      tensors[use.tensor.value] = std::max(tensors[use.tensor.value], Bytes(static_cast<std::int64_t>(bytes)));
    }
  node.origin = DemandOrigin::counters;
}

}  // namespace weft
