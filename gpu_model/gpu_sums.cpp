// Sums that ranks push through switches: those that come complete, and those that switches had no room to complete,
// which the memory of their home GPU adds up and sends to all.
#include "gpu_model/gpu.h"

namespace weft {

namespace {
constexpr std::uint32_t kPartialLines = 1U << 16;  // 8 MiB at the end of memory, with the library's buffers
}

void Gpu::on_sum(const Packet& packet, std::uint16_t bundle) {
  if (packet.kind == PacketKind::multicast_sum) {
    const L2Cache::Access access = l2_.write({.first = packet.line, .count = 1, .communication = true}, now());
    count_communication(access, 1, true);
    give_credit(packet, bundle, access.started);
    if (packet.entry != 0) sum_came(packet.entry - 1);
    return;
  }
  const auto place =
      static_cast<LineAddress>(spec_.hbm.bytes / kLineBytes - kPartialLines + packet.line % kPartialLines);
  const std::uint64_t key = std::uint64_t{packet.source} << 32 | packet.line;
  const std::uint32_t came = partial_sums_[key] += packet.count;
  const L2Cache::Access access = came == packet.count
                                     ? l2_.write({.first = place, .count = 1, .communication = true}, now())
                                     : l2_.update(place, now());
  count_communication(access, 1, true);
  give_credit(packet, bundle, access.started);
  if (came < packet.agent) return;
  partial_sums_.erase(key);
  const L2Cache::Access read = l2_.read({.first = place, .count = 1, .communication = true}, now());
  count_communication(read, 1, true);
  Packet sum = packet;
  sum.kind = PacketKind::multicast_sum;
  sum.destination = packet.source;
  sum.source = static_cast<std::uint16_t>(id_.value);
  sum.count = 1;
  push(std::max(access.done, read.done) + response_latency_,
       GpuEvent{.kind = EventKind::egress_reply, .gpu = bundle, .agent = keep(sum)});
}

// A kernel that pushed waits for the sums as a warp that polls would.
void Gpu::sum_came(std::uint32_t flag) {
  count_flag(flag);
  for (const std::uint32_t slot : pushing_) {
    RunningKernel& kernel = running_[slot];
    if (kernel.pushed->flag != flag || flags_[flag].count < kernel.pushed->part_lines()) continue;
    kernel.last_acknowledge = std::max(kernel.last_acknowledge, now() + poll_wait_ + response_latency_);
    end_kernel_if_drained(slot);
    return;
  }
}

}  // namespace weft
