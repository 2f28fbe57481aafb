// What kernels of sends and receives do: with whom each rank exchanges what, and so which kind of collective it is.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "traces/trace.h"

namespace weft {

// One ncclSend or ncclRecv.
struct PeerTransfer {
  bool sends = true;
  std::uint32_t peer = 0;  // a rank of the run
  std::optional<std::int64_t> elements;
};

// All those of one kernel of a rank.
struct PeerKernel {
  std::uint32_t op = 0;
  std::vector<PeerTransfer> transfers;
};

// Of what it sends, or if that is nothing what it receives; nullopt where one of them is not known.
[[nodiscard]] std::optional<std::int64_t> exchanged_elements(const std::vector<PeerTransfer>& transfers);

// As which collective one rank's kernel counts, whose other sources are in `collective` (its group, and as kind
// all_to_all), where nothing is known of other ranks:
// - to one other rank or from it: send_receive of the two; both, and as much: a shift of the two;
// - to one rank and as much from another one that is as many places before it in the group: a shift of the group;
// - else as it is, an all_to_all of the group, or of two ranks with one another.
// `world`: ranks of the run; a group of as many without a list has all of them.
void tell_exchange(std::uint32_t rank, std::uint32_t world, const std::vector<PeerTransfer>& transfers,
                   TraceCollective& collective);

// Where several ranks were recorded: the n-th send of a rank to another one in a group and an iteration is the n-th
// that this receives from it there. Kernels of three and more ranks that so hang together are one collective of these
// ranks: a shift where each sends and receives as much to and from as many places on, which goes round or has a first
// and a last rank (the stages of a pipeline), else an all_to_all. Left as they are: kernels of which one meets ranks
// that were not recorded or numbers that differ, and those of which a rank has several. `kernels` by index of rank.
void join_exchanges(const std::vector<std::vector<PeerKernel>>& kernels, Trace& trace);

}  // namespace weft
