// NCCL's binary trees (src/graph/trees.cc): ranks as leaves and inner nodes in order, so that neighbours are near.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

namespace weft {

struct TreeNode {
  std::optional<std::uint32_t> parent;  // none: the root
  std::uint32_t child_count = 0;
  std::array<std::uint32_t, 3> children{};  // at most two in a binary tree
};

// Rank 0 is the root, with one child.
[[nodiscard]] TreeNode binary_tree(std::uint32_t ranks, std::uint32_t rank);

// The second tree of a double binary tree, in which leaves of the first are inner nodes: the first one mirrored for an
// even number of ranks, shifted by one for an odd one.
[[nodiscard]] TreeNode second_binary_tree(std::uint32_t ranks, std::uint32_t rank);

}  // namespace weft
