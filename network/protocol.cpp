#include "network/protocol.h"

#include <algorithm>

#include "sim/error.h"

namespace weft {

namespace {

// NCCL src/include/device.h.
constexpr std::uint32_t kSteps = 8;                            // NCCL_STEPS
constexpr std::uint32_t kMaxThreads = 640;                     // NCCL_MAX_NTHREADS
constexpr std::uint32_t kLlThreads = 512;                      // NCCL_LL_MAX_NTHREADS
constexpr std::int64_t kLlBufferBytes = 8 * 512 * 8 * 16;      // NCCL_LL_LINES_PER_THREAD, threads, steps, 16 B lines
constexpr std::uint32_t kLl128Threads = 640;                   // NCCL_LL128_MAX_NTHREADS
constexpr std::int64_t kLl128BufferBytes = 120 * 640 * 8 * 8;  // NCCL_LL128_ELEMS_PER_THREAD, threads, steps, 8 B
constexpr std::uint32_t kLl128RoundLines = 16;                 // 32 threads x NCCL_LL128_SHMEM_ELEMS_PER_THREAD x 8 B
// NCCL src/include/comm.h: NCCL_SIMPLE_THREAD_THRESHOLD, NCCL_LL_THREAD_THRESHOLD, the same for LL128.
constexpr std::int64_t kSimpleBytesPerThread = 64;
constexpr std::int64_t kLlBytesPerThread = 8;
// A thread's share of the smallest chunk (NCCL src/collectives/device/all_reduce.h, runRing, of 2.18): a word, of LL128
// half of the 60 B that a thread moves in an iteration.
constexpr std::int64_t kWordBytes = 8;
constexpr std::int64_t kLl128ThreadBytes = 30;
// A channel's share is a multiple of 16 KiB of traffic (NCCL src/enqueue.cc, MinTrafficPerChannel), which an all_reduce
// has twice, and LL four times as often by its count.
constexpr std::int64_t kShareUnit = 8192;
constexpr std::int64_t kLlShareUnit = 2048;
constexpr std::uint32_t kLineBytes = 128;
constexpr std::uint32_t kWarp = 32;

// Words of 16 B with flags, or lines with one, are stored and polled at the same rate: of LL half of it is data.
double flagged_GBps(const CollectiveSpec& library) {
  return library.flagged_GBps > 0 ? library.flagged_GBps : 2 * library.tuner.ll_max_GBps / library.ring.channels;
}

}  // namespace

const char* to_string(CollectiveProtocol protocol) {
  switch (protocol) {
    case CollectiveProtocol::automatic:
      return "auto";
    case CollectiveProtocol::simple:
      return "Simple";
    case CollectiveProtocol::ll:
      return "LL";
    case CollectiveProtocol::ll128:
      return "LL128";
  }
  throw InternalError("unknown protocol");
}

ProtocolShape protocol_shape(const CollectiveSpec& library, CollectiveProtocol protocol, bool slices) {
  const RingSpec& ring = library.ring;
  ProtocolShape shape;
  switch (protocol) {
    case CollectiveProtocol::ll:
      shape.data_bytes_per_line = kLineBytes / 2;
      shape.threads = kLlThreads;
      shape.lines_per_round = kWarp * 16 / kLineBytes;  // 16 B a thread
      shape.slots = kSteps;
      shape.slot_bytes = kLlBufferBytes / kSteps;
      shape.inline_flags = true;
      shape.proxy_latency = library.proxy.ll;
      shape.chunk_unit = shape.threads * kWordBytes;
      shape.block_GBps = flagged_GBps(library) / 2;
      break;
    case CollectiveProtocol::ll128:
      shape.data_bytes_per_line = 120;
      shape.threads = kLl128Threads;
      shape.lines_per_round = kLl128RoundLines;
      shape.slots = kSteps;
      shape.slot_bytes = kLl128BufferBytes / kSteps;
      shape.inline_flags = true;
      shape.chunk_unit = shape.threads * kLl128ThreadBytes;
      shape.block_GBps = flagged_GBps(library) * shape.data_bytes_per_line / kLineBytes;
      shape.proxy_latency = library.proxy.ll128;
      break;
    default: {
      const std::uint32_t steps = slices ? ring.slice_steps : 1;
      shape.threads = ring.threads;
      shape.extra_threads = slices ? kWarp : 4 * kWarp;
      shape.lines_per_round = std::max(1U, library.bytes_in_flight_per_warp / kLineBytes);
      shape.slots = ring.buffer_steps / steps;
      shape.slot_bytes = ring.buffer_bytes / ring.buffer_steps * steps;
      shape.pieces_per_chunk = slices ? ring.chunk_steps / ring.slice_steps : 1;
      shape.chunk_unit = shape.threads * kWordBytes;
      shape.receiver_reads = ring.receiver_reads;
      shape.proxy_latency = library.proxy.simple;
    }
  }
  if (ring.channel_shares) {
    shape.chunk_order = ChunkOrder::by_channel;
    shape.chunk_unit = protocol == CollectiveProtocol::ll ? kLlShareUnit : kShareUnit;
  } else if (shape.inline_flags) {
    shape.chunk_order = ChunkOrder::by_part;
  }
  shape.piece_bytes = shape.slot_bytes / kLineBytes * shape.data_bytes_per_line;
  return shape;
}

ProtocolShape protocol_shape_of_sends(const CollectiveSpec& library, CollectiveProtocol protocol) {
  ProtocolShape shape = protocol_shape(library, protocol, false);
  if (protocol == CollectiveProtocol::simple) {
    shape.threads += shape.extra_threads;
    shape.extra_threads = 0;
    shape.sender_sync_warps = 1;
    if (library.sends.chunk_bytes > 0) shape.piece_bytes = std::min(shape.piece_bytes, library.sends.chunk_bytes);
  } else if (protocol == CollectiveProtocol::ll) {
    shape.threads = kMaxThreads;
  }
  return shape;
}

std::uint32_t channels_for(const CollectiveSpec& library, CollectiveProtocol protocol, bool is_ring, std::int64_t bytes,
                           std::uint32_t ranks) {
  const ProtocolShape shape = protocol_shape(library, protocol, is_ring);
  std::int64_t per_thread = kLlBytesPerThread;
  if (protocol == CollectiveProtocol::ll && is_ring) per_thread *= ranks;
  if (protocol == CollectiveProtocol::simple) per_thread = kSimpleBytesPerThread;
  const std::int64_t busy = bytes / (std::int64_t{shape.threads} * per_thread);
  return static_cast<std::uint32_t>(std::clamp<std::int64_t>(busy, 1, library.ring.channels));
}

}  // namespace weft
