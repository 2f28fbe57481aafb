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
  // Of trees in which all ranks are alike (alike_tree): no rank is their root, so what the second child sends, and what
  // the parent sends down, goes round without an end; it is moved, and not waited for.
  static constexpr std::uint32_t kEndlessChild = 1;
  std::uint32_t levels = 0;  // an inner rank of these: so far are the leaves below the root that is not there
  [[nodiscard]] bool endless() const { return levels > 0; }
  // Messages that a piece takes up to the root and down again, without the first two up, at the end of which this
  // rank's is with its parent, and the last one down.
  [[nodiscard]] std::uint32_t hops_up() const { return levels - 1; }  // with the root's turning round
  [[nodiscard]] std::uint32_t hops_down() const { return levels - 2; }
};

// Rank 0 is the root, with one child.
[[nodiscard]] TreeNode binary_tree(std::uint32_t ranks, std::uint32_t rank);

// The second tree of a double binary tree, in which leaves of the first are inner nodes: the first one mirrored for an
// even number of ranks, shifted by one for an odd one.
[[nodiscard]] TreeNode second_binary_tree(std::uint32_t ranks, std::uint32_t rank);

// Of both trees of an even number of ranks, at least four, what most ranks do: leaf of one, and in the other an inner
// node with a leaf and an inner node below it, as far from the root as the furthest. Every second rank is a leaf, the
// one behind it its parent; `second` is the first tree shifted by one rank. One rank can stand for all (sampled).
[[nodiscard]] bool has_alike_trees(std::uint32_t ranks);
[[nodiscard]] TreeNode alike_tree(std::uint32_t ranks, std::uint32_t rank, bool second);

}  // namespace weft
