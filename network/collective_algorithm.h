// The algorithms for collectives, by name, and the schedules they make.
#pragma once

#include <array>
#include <memory>
#include <optional>

#include "network/collective_schedule.h"
#include "network/collective_spec.h"

namespace weft {

enum class CollectiveAlgorithm { ring, tree, double_binary_tree, halving_doubling, direct, hierarchical };
inline constexpr std::array kCollectiveAlgorithms{
    CollectiveAlgorithm::ring,   CollectiveAlgorithm::tree,         CollectiveAlgorithm::double_binary_tree,
    CollectiveAlgorithm::direct, CollectiveAlgorithm::hierarchical, CollectiveAlgorithm::halving_doubling};
[[nodiscard]] const char* to_string(CollectiveAlgorithm algorithm);

[[nodiscard]] bool supports(CollectiveAlgorithm algorithm, CollectiveKind kind);

// The schedule of what a configuration asks for; none: automatic, in_switch and in_network.
[[nodiscard]] std::optional<CollectiveAlgorithm> schedule_of(AllReduceAlgorithm algorithm);

// The same, but the usual one where that does not have the collective.
[[nodiscard]] CollectiveAlgorithm schedule_for(AllReduceAlgorithm algorithm, CollectiveKind kind);

// Whether a configuration may ask for the pair.
[[nodiscard]] bool does(AllReduceAlgorithm algorithm, CollectiveKind kind);

// Whether switches do it for buffers that they do not know, by copies to those that they do: NCCL has NVLS for these
// (src/device/generate.py). A barrier has no buffers.
[[nodiscard]] bool is_staged_in_switch(CollectiveKind kind);

// What a library without a choice would take: a ring where there is one, else what there is.
[[nodiscard]] CollectiveAlgorithm usual_algorithm(CollectiveKind kind);

// all_to_all, gather, scatter: sends and receives between more than pairs.
[[nodiscard]] bool is_exchange(CollectiveKind kind);

// Whether `direct` has a thread block for each peer, as RCCL's programs, and not one for all.
[[nodiscard]] bool has_block_a_peer(CollectiveKind kind, std::uint32_t ranks, std::uint32_t channels);

// Throws InputError for a pair that does not exist, fewer than two ranks (send_receive: not exactly two), a root
// outside the group, and nodes that do not divide the ranks.
[[nodiscard]] std::unique_ptr<CollectiveSchedule> make_schedule(CollectiveAlgorithm algorithm,
                                                                const ScheduleRequest& request);

}  // namespace weft
