#include "traces/embedding_lookup.h"

#include <algorithm>
#include <cmath>

namespace weft {
namespace {

// find_long_segments gives rows with more occurrences than this to thread blocks, the others to warps
// (max_segment_length_per_warp, which FBGEMM's callers set to this).
constexpr double kMostOfAWarp = 32;
// Launches for as many rows as there could be: kMaxThreads indices for each block of the kernel for long segments.
constexpr std::uint64_t kIndicesOfABlock = 1024;
// Loads that a kernel makes one after another for each of a table's rows, besides those of the gradient: the number of
// the run, its bounds, the first occurrence, its table's offsets, then the occurrences, their columns, the place of the
// row's weights, and what the optimizer keeps (embedding_backward_split_kernel_{cta,warp}_template.cu).
constexpr double kChain = 8;
// Rows begin and end at multiples of 16 B (Vec4T): on average so much of their sectors of 32 B is not theirs.
constexpr double kRestOfSectors = 16;

bool vector_of(const OperatorInput& input, std::uint32_t element_bytes) {
  return input.element_bytes == element_bytes && input.sizes.size() == 1 && input.sizes[0] > 0;
}

bool by_blocks(std::string_view kernel) { return kernel.find("_kernel_cta_per_row") != std::string_view::npos; }
bool by_warps(std::string_view kernel) { return kernel.find("_kernel_warp_per_row") != std::string_view::npos; }

bool updates_embeddings(std::string_view kernel) {
  return kernel.find("embedding_backward") != std::string_view::npos && (by_blocks(kernel) || by_warps(kernel));
}

}  // namespace

std::optional<EmbeddingLookup> embedding_lookup(const OperatorCall& call) {
  if (call.name.find("embedding_codegen_lookup_") == std::string::npos) return std::nullopt;
  EmbeddingLookup lookup;
  // Tables come first (on the host, the device, in unified memory, cached), each as one vector; of the numbers of 64
  // bits only `indices` is followed by another vector of such, `offsets`, which has one more than there are bags.
  for (std::size_t i = 0; i < std::min<std::size_t>(call.inputs.size(), 4); ++i)
    if (call.inputs[i].sizes.size() == 1)
      lookup.weights = std::max(lookup.weights, static_cast<std::uint64_t>(elements(call.inputs[i])));
  for (std::size_t i = 0; i + 1 < call.inputs.size(); ++i) {
    if (!vector_of(call.inputs[i], 8) || !vector_of(call.inputs[i + 1], 8)) continue;
    lookup.indices = static_cast<std::uint64_t>(call.inputs[i].sizes[0]);
    lookup.bags = static_cast<std::uint64_t>(call.inputs[i + 1].sizes[0] - 1);
    break;
  }
  if (lookup.indices == 0 || lookup.bags == 0 || lookup.weights == 0) return std::nullopt;
  return lookup;
}

std::optional<EmbeddingUpdate> embedding_update(std::string_view kernel, const LaunchShape& shape,
                                                const OperatorCall* backward,
                                                std::span<const EmbeddingLookup> lookups) {
  if (!updates_embeddings(kernel) || backward == nullptr || backward->inputs.empty() ||
      backward->inputs[0].sizes.size() != 2)
    return std::nullopt;
  const OperatorInput& gradient = backward->inputs[0];  // samples x the rows of all tables, one after another
  const std::int64_t samples = gradient.sizes[0];
  const std::uint64_t a_block = by_blocks(kernel) ? kIndicesOfABlock : std::max<std::uint64_t>(shape.block[1], 1);
  const auto fits = [&](const EmbeddingLookup& lookup) {
    return samples > 0 && lookup.bags % static_cast<std::uint64_t>(samples) == 0 &&
           (lookup.indices + a_block - 1) / a_block == shape.blocks();
  };
  const auto found = std::find_if(lookups.begin(), lookups.end(), fits);
  if (found == lookups.end()) return std::nullopt;
  const auto indices = static_cast<double>(found->indices);
  const double tables = static_cast<double>(found->bags) / static_cast<double>(samples);
  const double columns = static_cast<double>(gradient.sizes[1]) / tables;  // of a row, on average
  if (columns < 1) return std::nullopt;
  const double element = gradient.element_bytes != 0 ? gradient.element_bytes : 4;
  // How often each row occurs is not recorded: as if all did equally often, as far as there are so many.
  const double rows = std::clamp(static_cast<double>(found->weights) / columns, 1.0, indices);
  EmbeddingUpdate update;
  if ((indices / rows > kMostOfAWarp) != by_blocks(kernel)) return update;
  update.gathered = indices * (columns * element + kRestOfSectors);
  update.updated = rows * columns * element;
  const double warps = std::max<double>(shape.block[1], 1);
  const double together = by_blocks(kernel) ? 1 : warps;  // rows of a block at the same time
  const double of_a_row = kChain + indices / rows * together / warps;
  update.one_by_one = of_a_row * rows / (static_cast<double>(shape.blocks()) * together);
  const auto blocks = static_cast<double>(shape.blocks());
  update.blocks_of_a_table = static_cast<std::uint32_t>(std::clamp(std::ceil(blocks / tables), 1.0, 1e9));
  update.tables = static_cast<std::uint64_t>(std::ceil(blocks / update.blocks_of_a_table));
  return update;
}

}  // namespace weft
