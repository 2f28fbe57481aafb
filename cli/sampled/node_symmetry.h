// What of a network lets few GPUs stand for all.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "gpu_model/folded_programs.h"
#include "network/network_spec.h"

namespace weft {

// One node whose GPUs, or routers of theirs, have links to each other: those of one that stands for all come back to
// it.
[[nodiscard]] bool links_come_back(const NetworkSpec& network);

// Why no GPU stands for another one whatever they do, in words; empty: some may.
[[nodiscard]] std::string why_places_differ(const NetworkSpec& network, std::uint32_t gpus);

// Ways to look for, those with the fewest GPUs first. All collectives of a program fold by ways of one entry.
[[nodiscard]] std::vector<std::vector<RankSymmetry>> symmetries(const NetworkSpec& network, std::uint32_t gpus);

// Why what ranks do between nodes, or branches of a tree, or by their links, is not the same for all, in words; empty:
// it is.
[[nodiscard]] std::string why_nodes_differ(const NetworkSpec& network, const RankSymmetry& by,
                                           const FoldedRanks& folded);

// Where links come back, acknowledgements come by that of their data: why they would not share it, in words; empty: in
// all, each link has those of as much.
[[nodiscard]] std::string why_links_differ(const NetworkSpec& network, const FoldedRanks& folded);

// Whether the nodes of a cluster, those of a rail, meet at one leaf switch. Else neighbours at the edge of a leaf reach
// each other by a spine, which folding leaves out.
[[nodiscard]] bool nodes_share_leaf(const NetworkSpec& network, std::uint32_t gpus);

}  // namespace weft
