// A trace with an operation of each kind and every field in use.
#pragma once

#include "traces/trace.h"

namespace weft {

inline Trace trace_of_all() {
  Trace trace;
  trace.source = "a \"quoted\" näme.json";
  trace.world_size = 4;
  TraceRank rank;
  rank.rank = 1;
  rank.device = "NVIDIA A100";
  rank.compute_units = 108;
  rank.memory_bytes = 42'297'524'224;
  rank.clock_moved = Time(-7);
  rank.iterations = {{"ProfilerStep#4", Time(0), Time(5'000)},
                     {"ProfilerStep#5", Time(5'000), Time(9'007'199'254'740'993)}};
  rank.traffic.start = {Time(3), Time(20)};
  rank.traffic.duration = {Time(17), Time(9'007'199'254'740'993)};
  rank.traffic.bytes[0] = {9'007'199'254'740'993, 0};
  rank.traffic.bytes[3] = {1, 2};
  TraceOp kernel;
  kernel.name = "void kernel<float>(int)";
  kernel.op = "aten::conv2d";
  kernel.layer = "layer1";
  kernel.phase = TrainingPhase::forward;
  kernel.iteration = 0;
  kernel.stream = 7;
  kernel.correlation = 12;
  kernel.issued = Time(1);
  kernel.issue_duration = Time(2);
  kernel.start = Time(9'007'199'254'740'993);  // needs more digits than a double has
  kernel.duration = Time(17);
  KernelCounters counters;
  counters[KernelCounter::hbm_read_bytes] = 9'007'199'254'740'993;
  counters[KernelCounter::tensor_fp16_ops] = 0;
  kernel.counters = std::make_shared<const KernelCounters>(counters);
  kernel.shape = LaunchShape{{7, 8, 32}, {256, 1, 1}, 40, 4224, 8};
  kernel.launched_by =
      std::make_shared<OperatorCall>(OperatorCall{"aten::mm", {{4, {64, 256}}, {4, {256, 128}}, {0, {}}}});
  TraceOp copy;
  copy.kind = TraceOpKind::copy;
  copy.name = "Memcpy DtoD";
  copy.copy_direction = "DtoD";
  copy.bytes = Bytes(4096);
  copy.issued = Time(3);
  TraceOp collective;
  collective.kind = TraceOpKind::collective;
  collective.name = "ncclKernel";
  collective.issued = Time(4);
  collective.iteration = 1;
  collective.phase = TrainingPhase::backward;
  collective.collective = TraceCollective{CollectiveKind::all_reduce,
                                          25'557'032,
                                          DataType::bf16,
                                          2,
                                          {1, 3},
                                          "group 0",
                                          1,
                                          std::nullopt,
                                          "RING",
                                          "LL128",
                                          24};
  collective.waits = {0, 1};
  TraceOp old_collective = collective;
  old_collective.collective = TraceCollective{};
  old_collective.collective->kind = CollectiveKind::shift;
  old_collective.collective->distance = 3;
  old_collective.collective->first = 3;
  old_collective.waits = {2};
  TraceOp wait;
  wait.kind = TraceOpKind::host_wait;
  wait.name = "cudaDeviceSynchronize";
  wait.issued = Time(8);
  wait.waits = {0, 2};
  rank.ops = {kernel, copy, collective, old_collective, wait};
  trace.ranks.push_back(rank);
  rank.rank = 3;
  rank.ops.clear();
  trace.ranks.push_back(rank);
  return trace;
}

}  // namespace weft
