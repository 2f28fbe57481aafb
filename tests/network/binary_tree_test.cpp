#include "network/binary_tree.h"

#include <gtest/gtest.h>

#include <utility>

namespace weft {
namespace {

TEST(BinaryTree, SecondTreeTurnsLeavesIntoInnerNodes) {
  for (std::uint32_t ranks = 2; ranks <= 65; ++ranks) {
    std::uint32_t inner_twice = 0;
    for (std::uint32_t rank = 0; rank < ranks; ++rank) {
      const TreeNode first = binary_tree(ranks, rank);
      const TreeNode second = second_binary_tree(ranks, rank);
      for (const auto& [node, tree] : {std::pair{first, &binary_tree}, std::pair{second, &second_binary_tree}}) {
        for (std::uint32_t c = 0; c < node.child_count; ++c) EXPECT_EQ(tree(ranks, node.children.at(c)).parent, rank);
      }
      // One of the two children at most counts: a root with one child is nearly a leaf.
      if (first.child_count == 2 && second.child_count == 2) ++inner_twice;
    }
    EXPECT_EQ(inner_twice, 0U) << ranks;
  }
}

}  // namespace
}  // namespace weft
