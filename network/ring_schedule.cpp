#include "network/ring_schedule.h"

#include <algorithm>

#include "sim/error.h"

namespace weft {

namespace {

constexpr std::int64_t kChunkUnit = 4096;  // 512 threads of 8 B
constexpr std::int64_t kSliceUnit = 128;

std::int64_t divide_up(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }
std::int64_t round_up(std::int64_t a, std::int64_t unit) { return divide_up(a, unit) * unit; }

class SliceWriter {
 public:
  SliceWriter(const RingSpec& spec, std::int64_t total)
      : slices_per_chunk_(spec.chunk_steps / spec.slice_steps),
        slice_bytes_(spec.buffer_bytes / spec.buffer_steps * spec.slice_steps),
        total_(total) {}

  // Cuts one chunk into slices.
  void chunk(std::int64_t offset, std::int64_t bytes, RingSlice what) {
    bytes = std::min(bytes, total_ - offset);
    if (bytes <= 0) return;
    const std::int64_t slice = std::max(round_up(divide_up(bytes, slices_per_chunk_), kSliceUnit), slice_bytes_ / 32);
    for (std::int64_t done = 0; done < bytes; done += slice) {
      what.offset = offset + done;
      what.bytes = std::min(slice, bytes - done);
      slices_.push_back(what);
    }
  }
  std::vector<RingSlice> take() { return std::move(slices_); }

 private:
  std::int64_t slices_per_chunk_;
  std::int64_t slice_bytes_;
  std::int64_t total_;
  std::vector<RingSlice> slices_;
};

constexpr RingSlice kSendOwn{.uses_input = true, .sends = true};
constexpr RingSlice kReduceSend{.receives = true, .uses_input = true, .sends = true};
constexpr RingSlice kReduceKeep{.receives = true, .uses_input = true, .keeps = true};
constexpr RingSlice kReduceKeepSend{.receives = true, .uses_input = true, .keeps = true, .sends = true};
constexpr RingSlice kKeepSend{.receives = true, .keeps = true, .sends = true};
constexpr RingSlice kKeep{.receives = true, .keeps = true};

// The steps of one chunk-sized loop, in units of chunks: (chunk, what).
template <class Emit>
void ring_steps(CollectiveKind kind, std::uint32_t rank, std::uint32_t ranks, Emit&& emit) {
  const auto back = [&](std::uint32_t steps) { return (rank + 2 * ranks - steps) % ranks; };
  switch (kind) {
    case CollectiveKind::all_reduce:
      emit(back(1), kSendOwn);
      for (std::uint32_t k = 2; k < ranks; ++k) emit(back(k), kReduceSend);
      emit(back(ranks), kReduceKeepSend);
      for (std::uint32_t k = 1; k < ranks - 1; ++k) emit(back(k), kKeepSend);
      emit(back(ranks - 1), kKeep);
      return;
    case CollectiveKind::reduce_scatter:
      emit(back(1), kSendOwn);
      for (std::uint32_t k = 2; k < ranks; ++k) emit(back(k), kReduceSend);
      emit(back(ranks), kReduceKeep);
      return;
    case CollectiveKind::all_gather:
      emit(back(0), RingSlice{.uses_input = true, .keeps = true, .sends = true});
      for (std::uint32_t k = 1; k < ranks - 1; ++k) emit(back(k), kKeepSend);
      emit(back(ranks - 1), kKeep);
      return;
    case CollectiveKind::broadcast:  // the whole message from rank 0 down the chain, as one chunk
      emit(0U, rank == 0 ? kSendOwn : rank + 1 == ranks ? kKeep : kKeepSend);
      return;
    default:
      throw InternalError("a ring does not know this collective");
  }
}

}  // namespace

bool ring_supports(CollectiveKind kind) {
  return kind == CollectiveKind::all_reduce || kind == CollectiveKind::all_gather ||
         kind == CollectiveKind::reduce_scatter || kind == CollectiveKind::broadcast;
}

std::vector<RingSlice> ring_schedule(CollectiveKind kind, const RingSpec& spec, std::int64_t bytes, std::uint32_t rank,
                                     std::uint32_t ranks, std::uint32_t channel, std::uint32_t channels) {
  WEFT_CHECK(ranks >= 2 && rank < ranks && channel < channels, "a ring needs two ranks");
  const std::int64_t chunks = kind == CollectiveKind::broadcast ? 1 : ranks;
  const std::int64_t largest = spec.buffer_bytes / spec.buffer_steps * spec.chunk_steps;
  SliceWriter writer(spec, bytes);
  // All but the reduction's and broadcast's: rank r's part of the message is the r-th of `ranks`, so that chunk c of a
  // loop lies in part c; an all-reduce may cut as it likes and takes neighbouring chunks.
  const bool parts = kind == CollectiveKind::all_gather || kind == CollectiveKind::reduce_scatter;
  const std::int64_t whole = parts ? divide_up(bytes, chunks) : bytes;
  const std::int64_t per_loop = parts ? 1 : chunks;
  for (std::int64_t at = 0; at < whole;) {
    const std::int64_t wanted = round_up(divide_up(whole - at, per_loop * channels), kChunkUnit);
    const std::int64_t chunk = std::min(largest, wanted);
    ring_steps(kind, rank, ranks, [&](std::uint32_t c, const RingSlice& what) {
      if (parts) {
        const std::int64_t offset = at + channel * chunk;
        const std::int64_t length = std::min(chunk, whole - offset);
        if (length > 0) writer.chunk(c * whole + offset, length, what);
      } else {
        writer.chunk(at + (channel * per_loop + c) * chunk, chunk, what);
      }
    });
    at += per_loop * channels * chunk;
  }
  return writer.take();
}

}  // namespace weft
