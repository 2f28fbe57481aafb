// One factory an algorithm; make_schedule (collective_algorithm.h) is the door and checks the request. All compute a
// step in constant time and store nothing.
#pragma once

#include <memory>

#include "network/collective_schedule.h"

namespace weft {

// all_reduce, all_gather, reduce_scatter; broadcast and reduce as chains from and to the root.
[[nodiscard]] std::unique_ptr<CollectiveSchedule> make_ring(const ScheduleRequest& request);

// all_reduce, broadcast, reduce, barrier over NCCL's binary tree.
[[nodiscard]] std::unique_ptr<CollectiveSchedule> make_tree(const ScheduleRequest& request);

// all_reduce over NCCL's two complementary trees, even and odd channels one each; an odd number of channels is rounded
// up.
[[nodiscard]] std::unique_ptr<CollectiveSchedule> make_double_binary_tree(const ScheduleRequest& request);

// all_reduce, all_gather, reduce_scatter; barrier by dissemination.
[[nodiscard]] std::unique_ptr<CollectiveSchedule> make_halving_doubling(const ScheduleRequest& request);
[[nodiscard]] std::unique_ptr<CollectiveSchedule> make_dissemination_barrier(const ScheduleRequest& request);

// all_reduce, all_gather, reduce_scatter, send_receive, shift: each pair of ranks for itself.
[[nodiscard]] std::unique_ptr<CollectiveSchedule> make_direct(const ScheduleRequest& request);

// all_to_all, gather, scatter: the same, with some of the thread blocks for each pair.
[[nodiscard]] std::unique_ptr<CollectiveSchedule> make_exchange(const ScheduleRequest& request);

// all_reduce as `direct` does it where there are as many channels as ranks or more: a thread block for each peer.
[[nodiscard]] std::unique_ptr<CollectiveSchedule> make_all_pairs(const ScheduleRequest& request);

// all_reduce: reduce_scatter in the node, all_reduce between the ranks of the same place in their nodes, all_gather in
// the node.
[[nodiscard]] std::unique_ptr<CollectiveSchedule> make_hierarchical(const ScheduleRequest& request);

}  // namespace weft
