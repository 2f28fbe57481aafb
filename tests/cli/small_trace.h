// A recording that replays in milliseconds.
#pragma once

#include "traces/trace.h"

namespace weft {

// One of two ranks: a kernel, and an all-reduce on another stream.
inline Trace small_trace() {
  Trace trace;
  trace.source = "test";
  trace.world_size = 2;
  TraceRank rank;
  rank.iterations = {{"step", Time(0), microseconds(100)}};
  TraceOp kernel;
  kernel.name = "elementwise_kernel";
  kernel.iteration = 0;
  kernel.stream = 7;
  kernel.start = microseconds(10);
  kernel.duration = microseconds(5);
  kernel.shape = LaunchShape{{256, 1, 1}, {256, 1, 1}, 32, 0};
  TraceOp collective;
  collective.kind = TraceOpKind::collective;
  collective.name = "ncclKernel_AllReduce";
  collective.iteration = 0;
  collective.stream = 20;
  collective.issued = microseconds(1);
  collective.start = microseconds(20);
  collective.duration = microseconds(30);
  collective.collective = TraceCollective{CollectiveKind::all_reduce, 65'536, DataType::fp32, 2, {0, 1}, "world"};
  collective.waits = {0};
  rank.ops = {kernel, collective};
  trace.ranks.push_back(rank);
  return trace;
}

}  // namespace weft
