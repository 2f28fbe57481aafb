// The sizes of NCCL's protocols: how a piece is cut, how it lies in a connection's buffer, how many threads move it.
#pragma once

#include <cstdint>

#include "network/collective_schedule.h"
#include "network/collective_spec.h"

namespace weft {

struct ProtocolShape {
  std::uint32_t data_bytes_per_line = 128;  // of a line on the wire and in the buffer
  std::uint32_t threads = 512;              // of a block that move data
  std::uint32_t extra_threads = 0;          // of a block that synchronise
  std::uint32_t sender_sync_warps = 0;      // of the warps of a group that sends, where it has more than twice as many
  std::uint32_t lines_per_round = 16;       // wire lines of a warp's unrolled iteration
  std::uint32_t slots = 8;                  // of a connection's buffer
  std::int64_t slot_bytes = 0;              // in the buffer
  std::int64_t piece_bytes = 0;             // of data in a slot
  std::uint32_t pieces_per_chunk = 1;
  std::int64_t chunk_unit = 4096;  // of data: a ring's chunks, or the shares of its channels, are multiples of it
  ChunkOrder chunk_order = ChunkOrder::by_loop;
  double block_GBps = 0;  // what one block moves at most for its instructions; 0: no limit
  bool inline_flags = false;
  Time proxy_latency;  // a piece to another node: what host threads add
  bool receiver_reads = false;
};

// `slices`: only rings and MSCCL's programs pass on slices of chunks (NCCL src/enqueue.cc; MSCCL_CHUNKSTEPS in RCCL
// src/include/msccl/msccl_struct.h).
[[nodiscard]] ProtocolShape protocol_shape(const CollectiveSpec& library, CollectiveProtocol protocol, bool slices);

// The same for sends and receives, whose blocks have NCCL_MAX_NTHREADS with either protocol: of those that send with
// Simple, a warp synchronises (src/device/sendrecv.h, src/device/prims_simple.h).
[[nodiscard]] ProtocolShape protocol_shape_of_sends(const CollectiveSpec& library, CollectiveProtocol protocol);

// Thread blocks for a message: no more than have enough to do (NCCL src/enqueue.cc). `bytes` as nccl-tests counts them.
[[nodiscard]] std::uint32_t channels_for(const CollectiveSpec& library, CollectiveProtocol protocol, bool is_ring,
                                         std::int64_t bytes, std::uint32_t ranks);

}  // namespace weft
