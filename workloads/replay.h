// Replays recorded ranks: one on every GPU of a run, or each on its own, with the host's own time between launches.
#pragma once

#include <cstdint>
#include <vector>

#include "workloads/graph.h"

namespace weft {

struct ReplaySpec {
  std::uint32_t gpus = 1;
  std::uint32_t iterations = 0;  // the first n of the trace; 0: all
  double host_time_scale = 1;    // on the host's own time, 0 or more; 1: as recorded
  // By node: what a collective takes once all its ranks have come, as recorded ones ran. What a recorded collective
  // took longer, it waited for a late rank. Empty: no rank is late.
  std::vector<Time> collective_times;
  // What the simulated GPU takes to go on with the next operation of a stream: where a recorded one took longer alone
  // (Recorded::behind), it starts later by the rest.
  Time device_latency = Time(0);
  bool high_priority = false;  // streams of collectives before others, as recorded or not
};

// One program a GPU, from a graph whose nodes are all recorded, in the order in which the host issued them. Every GPU
// replays the same rank: what ranks did differently is not in the result.
//
// - Streams are renumbered from 0 in ascending order of their recorded numbers; Graph::urgent_streams go first.
// - Waits are the dependencies between streams, where both operations are replayed; those on a host_wait hold by
//   themselves, since nothing is issued before it ends.
// - host_delay is the time from the issue of the previous operation, or from the end of a host_wait, to the issue of
//   this one, times host_time_scale: what the host waited is left out, because the replay makes it wait anew. An
//   iteration starts at its recorded distance from the one before (Graph::iteration_starts); where that is unknown, it
//   is taken to start with the last event of the one before.
// - The first operation of a stream, unless it started when others had ended for which it waits, starts as long after
//   its issue as it did: the device was busy with what had been issued before the recording, which is not replayed.
// - An operation that came late to an idle device for no recorded reason (Recorded::late) comes as late again.
// - An operation that is behind another one on its stream starts as long after its end as it did alone, but no sooner
//   than the simulated GPU can.
// - A collective of the whole recorded world takes all GPUs of the run; with one GPU it is left out, its host time
//   kept. A smaller group needs a run of as many GPUs as recorded: GPU g then belongs to the group of its position in
//   the same pattern (ranks at a constant distance). Each collective of an iteration has a buffer of its own, in place.
// - The late rank is the last GPU of each group: it comes to a collective as much later than the others as the recorded
//   one waited, and is in step with them in all else.
// - Memory is unknown: tensors have addresses, but there are no memory events.
//
// Throws InputError when a node was not recorded, when the trace has fewer iterations, and for a group that does not
// exist: ranks outside the recorded world, or a pattern that does not divide it.
[[nodiscard]] std::vector<Program> replay(const Graph& graph, const ReplaySpec& spec);

// The same where all ranks of the recorded world are there, ascending: GPU g runs what ranks[g] did, kernels, host
// times and waits of its own. Collectives meet as meetings_of_ranks() says, so who is late is late by its own doing;
// ranks begin as far apart as they began. `spec` has no collective_times.
//
// Throws InputError also when ranks are missing, when they are not as many as spec.gpus or have different numbers of
// iterations, and when their collectives do not match.
[[nodiscard]] std::vector<Program> replay_ranks(const std::vector<Graph>& ranks, const ReplaySpec& spec);

}  // namespace weft
