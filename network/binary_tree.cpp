#include "network/binary_tree.h"

#include <bit>

namespace weft {

namespace {

template <class Rename>
TreeNode renamed(TreeNode node, Rename&& rename) {
  if (node.parent) node.parent = rename(*node.parent);
  for (std::uint32_t c = 0; c < node.child_count; ++c) node.children.at(c) = rename(node.children.at(c));
  return node;
}

}  // namespace

TreeNode binary_tree(std::uint32_t ranks, std::uint32_t rank) {
  TreeNode node;
  const auto add_child = [&](std::uint32_t child) { node.children.at(node.child_count++) = child; };
  if (rank == 0) {
    if (ranks > 1) add_child(std::bit_ceil(ranks) / 2);
    return node;
  }
  const std::uint32_t lowest = rank & (~rank + 1);  // a node's level is its lowest bit
  const std::uint32_t above = (rank ^ lowest) | (lowest << 1U);
  node.parent = above < ranks ? above : rank ^ lowest;
  if (lowest == 1) return node;
  add_child(rank - lowest / 2);
  // The right child is the highest that exists.
  for (std::uint32_t bit = lowest / 2; bit > 0; bit /= 2) {
    if (rank + bit < ranks) {
      add_child(rank + bit);
      break;
    }
  }
  return node;
}

TreeNode second_binary_tree(std::uint32_t ranks, std::uint32_t rank) {
  if (ranks % 2 == 1) {
    return renamed(binary_tree(ranks, (rank + ranks - 1) % ranks), [&](std::uint32_t r) { return (r + 1) % ranks; });
  }
  return renamed(binary_tree(ranks, ranks - 1 - rank), [&](std::uint32_t r) { return ranks - 1 - r; });
}

bool has_alike_trees(std::uint32_t ranks) { return ranks >= 4 && ranks % 2 == 0; }

TreeNode alike_tree(std::uint32_t ranks, std::uint32_t rank, bool second) {
  const bool leaf = (rank + (second ? 1 : 0)) % 2 == 0;
  if (leaf) return {.parent = (rank + 1) % ranks};
  const auto levels = static_cast<std::uint32_t>(std::bit_width(ranks - 1));
  return {.parent = (rank + 2) % ranks,
          .child_count = 2,
          .children = {(rank + ranks - 1) % ranks, (rank + ranks - 2) % ranks},
          .levels = levels};
}

}  // namespace weft
