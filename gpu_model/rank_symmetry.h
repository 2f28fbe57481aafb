// Ways in which the ranks of a collective are alike: for each rank a renaming of all ranks and thread blocks that turns
// the rank which stands for it into it, and one that changes nothing else of who talks to whom. The renamings of one
// way are a group, so what a rank gets from others is known from what it does itself.
#pragma once

#include <cstdint>
#include <memory>
#include <numeric>
#include <vector>

#include "network/ring_orders.h"

namespace weft {

struct RankSymmetry {
  std::uint32_t ranks = 0;
  std::uint32_t per_node = 0;  // all of one node: as many as ranks
  // So many from member to member of a group: 1, or per_node where it has one rank of each node, at the first place.
  std::uint32_t apart = 1;
  // The first so many ranks stand for all: one, or those of the first nodes.
  std::uint32_t standing = 1;
  // Rings that go through every second node backwards, block b in order b % per_node (network/group_rings.h): who
  // leaves a node by one ring enters it by another, so a place in a node is worth another one on another block.
  bool alternating = false;
  // Two trees, block b in tree b % 2, over two nodes, each the root of one and the leaf of the other, or of more in
  // which all are alike (network/binary_tree.h, alike_tree): the next node does the same in the other tree. They join
  // all places, each with its like (NVLSTree), or that of b / 2 % per_node only (double binary tree).
  bool two_trees = false;
  bool trees_of_places = false;
  // Of GPUs with a link to each other one: block b goes round in order b % cycles() of these, and who is so many places
  // further on is renamed to whoever is on that block. Null: in that of their numbers, on all blocks.
  std::shared_ptr<const RingOrders> rings = nullptr;
};

// Members of a group: those that stand for others, and neighbours in and between nodes.
inline std::vector<std::uint32_t> few_of(const RankSymmetry& by) {
  std::vector<std::uint32_t> few(by.standing);
  std::iota(few.begin(), few.end(), 0U);
  for (const std::uint32_t rank : {1U, by.per_node - 1, by.per_node, by.ranks - 1}) {
    if (rank < by.ranks && rank / by.apart > few.back()) few.push_back(rank / by.apart);
  }
  return few;
}

// Of one rank.
class Renaming {
 public:
  // `of_block`: what is renamed is what this one does; by most symmetries all blocks do alike.
  Renaming(const RankSymmetry& by, std::uint32_t rank, std::uint32_t of_block = 0)
      : by_(by),
        of_block_(of_block),
        nodes_(by.ranks / by.per_node),
        node_(rank / by.per_node),
        place_(by.standing == 1 ? rank % by.per_node : 0) {
    if (by.standing > 1) node_ -= node_ % (by.standing / by.per_node);
    backwards_ = by.alternating && node_ % 2 == 1;
    if (by.rings) place_ = by.rings->distance(of_block, 0, rank);
  }

  [[nodiscard]] std::uint32_t rank(std::uint32_t r) const {
    if (by_.rings) return by_.rings->after(of_block_, r, place_);
    const std::uint32_t node = (r / by_.per_node + node_) % nodes_;
    const std::uint32_t place = backwards_ ? place_ + by_.per_node - r % by_.per_node : r % by_.per_node + place_;
    return node * by_.per_node + place % by_.per_node;
  }
  [[nodiscard]] std::uint32_t block(std::uint32_t b) const {
    if (by_.two_trees) return turn_trees(b, place_);
    if (!by_.alternating) return b;
    const std::uint32_t order = b % by_.per_node;
    const std::uint32_t renamed = backwards_ ? place_ + 2 * by_.per_node - order - 1 : order + place_;
    return b - order + renamed % by_.per_node;
  }
  // Which rank and block are called so.
  [[nodiscard]] std::uint32_t rank_before(std::uint32_t r) const {
    if (by_.rings) return by_.rings->after(of_block_, r, by_.ranks - place_);
    const std::uint32_t node = (r / by_.per_node + nodes_ - node_) % nodes_;
    const std::uint32_t back =
        backwards_ ? place_ + by_.per_node - r % by_.per_node : r % by_.per_node + by_.per_node - place_;
    return node * by_.per_node + back % by_.per_node;
  }
  [[nodiscard]] std::uint32_t block_before(std::uint32_t b) const {
    if (by_.two_trees) return turn_trees(b, by_.per_node - place_);
    if (!by_.alternating || backwards_) return block(b);  // who turns round twice is where he was
    const std::uint32_t order = b % by_.per_node;
    return b - order + (order + by_.per_node - place_) % by_.per_node;
  }

 private:
  // By so many places, and on another node to the other tree.
  [[nodiscard]] std::uint32_t turn_trees(std::uint32_t b, std::uint32_t places) const {
    if (!by_.trees_of_places) return b - b % 2 + (b + node_) % 2;
    const std::uint32_t joined = (b / 2 + places) % by_.per_node;
    return b - b % (2 * by_.per_node) + 2 * joined + (b + node_) % 2;
  }

  RankSymmetry by_;
  std::uint32_t of_block_;
  std::uint32_t nodes_, node_, place_;
  bool backwards_ = false;
};

}  // namespace weft
