#include "network/binary_tree.h"

#include <gtest/gtest.h>

#include <utility>

#include "network/schedule_generators.h"

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

TEST(BinaryTree, AlikeTreesMakeEachRankALeafOfOneAndAnInnerNodeOfTheOther) {
  EXPECT_FALSE(has_alike_trees(2));
  EXPECT_FALSE(has_alike_trees(5));
  for (const std::uint32_t ranks : {4U, 6U, 8U, 128U}) {
    ASSERT_TRUE(has_alike_trees(ranks));
    for (std::uint32_t rank = 0; rank < ranks; ++rank) {
      const TreeNode first = alike_tree(ranks, rank, false);
      const TreeNode second = alike_tree(ranks, rank, true);
      EXPECT_EQ(first.child_count + second.child_count, 2U);
      EXPECT_NE(first.endless(), second.endless());
      for (const bool turned : {false, true}) {
        const TreeNode node = turned ? second : first;
        EXPECT_EQ(node.endless(), node.child_count == 2);
        for (std::uint32_t c = 0; c < node.child_count; ++c) {
          const TreeNode child = alike_tree(ranks, node.children.at(c), turned);
          EXPECT_EQ(child.parent, rank);
          EXPECT_EQ(child.endless(), c == TreeNode::kEndlessChild);
        }
        // The next rank does the same in the other tree.
        const TreeNode next = alike_tree(ranks, (rank + 1) % ranks, !turned);
        EXPECT_EQ(next.parent, (node.parent.value() + 1) % ranks);
      }
    }
  }
  // Of 16 ranks, leaves are four levels below the root: eight messages, of which three are simulated.
  EXPECT_EQ(alike_tree(16, 1, false).hops_up() + alike_tree(16, 1, false).hops_down(), 5U);
}

// NCCL src/enqueue.cc, with a chain of 7 behind each of two nodes: a depth of 8.
TEST(BinaryTree, PiecesOfTreesGetSmallerForTheirDepth) {
  ScheduleRequest r{.ranks = 16, .channels = 16, .piece_bytes = 512 << 10, .pieces_per_chunk = 1, .ranks_per_node = 8};
  const auto pieces = [&](std::int64_t bytes_of_channel, TreePieces tree_pieces) {
    r.bytes = bytes_of_channel * r.channels;
    r.tree_pieces = tree_pieces;
    return make_double_binary_tree(r)->steps(0, 0, 0);
  };
  EXPECT_EQ(pieces(1 << 20, TreePieces::whole), 2U);
  EXPECT_EQ(pieces(128 << 10, TreePieces::by_depth), 4U);   // of 32 KiB, fewer than 8
  EXPECT_EQ(pieces(1 << 20, TreePieces::by_depth), 16U);    // of 64 KiB, fewer than 8 a level
  EXPECT_EQ(pieces(4 << 20, TreePieces::by_depth), 32U);    // of 128 KiB, 4 a level
  EXPECT_EQ(pieces(16 << 20, TreePieces::by_depth), 64U);   // of 256 KiB, 8 a level
  EXPECT_EQ(pieces(64 << 20, TreePieces::by_depth), 128U);  // of 512 KiB
}

// NCCL src/enqueue.cc: 2.8 steps, so 22.4 pieces a channel as long as they take more than 128 KiB of a buffer, then 5.6
// until they take 32 KiB. A piece of 76800 B there is 72000 of data.
TEST(BinaryTree, PiecesOfTreesGetSmallerForNodesAndTheirRanks) {
  constexpr std::int64_t kSlot = 614400 / 128 * 120;
  ScheduleRequest r{.ranks = 16, .channels = 16, .piece_bytes = kSlot, .pieces_per_chunk = 1, .ranks_per_node = 8};
  r.tree_pieces = TreePieces::by_nodes;
  const auto whole_lines = [](std::int64_t bytes) { return bytes / 128 * 128; };
  const auto first_piece = [&](std::int64_t bytes) {
    r.bytes = bytes;
    return make_double_binary_tree(r)->step(0, 0, 0, 0).bytes;
  };
  EXPECT_EQ(first_piece(1 << 20), whole_lines(kSlot / 32));
  EXPECT_EQ(first_piece(4 << 20), whole_lines(kSlot / 16));
  EXPECT_EQ(first_piece(8 << 20), whole_lines(kSlot / 8));
  EXPECT_EQ(first_piece(64 << 20), whole_lines(kSlot / 4));
  EXPECT_EQ(first_piece(256 << 20), kSlot);
  r.ranks_per_node = 1;  // 5.1 steps of 16 nodes: 326 pieces, then 82
  EXPECT_EQ(first_piece(64 << 20), whole_lines(kSlot / 16));
}

}  // namespace
}  // namespace weft
