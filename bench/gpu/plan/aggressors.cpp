#include "bench/gpu/plan/aggressors.h"

#include <algorithm>
#include <array>

namespace weft::gpu_probe {
namespace {

constexpr std::array kSurfaceBlocks{1, 2, 4, 8, 16, 24, 32, 64};
constexpr std::array kSurfaceRates{50.0, 100.0, 200.0, 400.0};
// A block of 512 threads with 64 KiB in flight cannot write more, by Little's law at about 1 us a round.
constexpr double kMostOfABlockGBps = 60;
// Above it a chunk of 16 KiB takes longer to come than the interval between two.
constexpr double kMostOfSmallChunksGBps = 10;

bool moves(AggressorKind kind) { return kind != AggressorKind::spin && kind != AggressorKind::copy_engine; }

std::string name_of(const Aggressor& a) {
  std::string name = to_string(a.kind);
  if (a.kind == AggressorKind::copy_engine) return name;
  name += "_" + std::to_string(a.blocks);
  if (moves(a.kind)) name += a.rate_GBps ? "_" + std::to_string(static_cast<int>(*a.rate_GBps)) + "GBps" : "_max";
  if (a.shared_memory_bytes != kSharedMemoryA100) name += "_" + std::to_string(a.shared_memory_bytes / 1000) + "KB";
  return name;
}

std::vector<Aggressor> make_core() {
  using enum AggressorKind;
  return {
      make_aggressor(spin, 4, {}),
      make_aggressor(spin, 16, {}),
      make_aggressor(spin, 32, {}),
      make_aggressor(spin, 16, {}, kNoSharedMemory),
      make_aggressor(spin, 16, {}, kSharedMemoryV100),
      make_aggressor(copy, 8, 100),
      make_aggressor(copy, 16, 100),
      make_aggressor(copy, 32, 100),
      make_aggressor(copy, 16, 400),
      make_aggressor(copy, 32, 400),
      make_aggressor(copy, 8, {}),
      make_aggressor(copy, 16, {}),
      make_aggressor(copy, 32, {}),
      make_aggressor(l2_copy, 16, 100),
      make_aggressor(l2_copy, 16, {}),
      make_aggressor(reduce, 16, 100),
      make_aggressor(reduce, 16, {}),
      make_aggressor(copy_engine, 0, {}),
  };
}

std::vector<Aggressor> make_surface() {
  std::vector<Aggressor> out;
  const auto add = [&](Aggressor a) {
    const auto same = [&](const Aggressor& other) { return other.name == a.name; };
    const auto& core = core_aggressors();
    if (std::none_of(core.begin(), core.end(), same)) out.push_back(std::move(a));
  };
  for (const int blocks : kSurfaceBlocks) {
    add(make_aggressor(AggressorKind::spin, blocks, {}));
    for (const AggressorKind kind : {AggressorKind::copy, AggressorKind::reduce}) {
      for (const double rate : kSurfaceRates) {
        if (rate <= kMostOfABlockGBps * blocks) add(make_aggressor(kind, blocks, rate));
      }
      add(make_aggressor(kind, blocks, {}));
    }
  }
  return out;
}

}  // namespace

const char* to_string(AggressorKind kind) {
  switch (kind) {
    case AggressorKind::spin:
      return "spin";
    case AggressorKind::copy:
      return "copy";
    case AggressorKind::l2_copy:
      return "l2_copy";
    case AggressorKind::reduce:
      return "reduce";
    case AggressorKind::host_write:
      return "host_write";
    case AggressorKind::host_read:
      return "host_read";
    case AggressorKind::copy_engine:
      break;
  }
  return "copy_engine";
}

Aggressor make_aggressor(AggressorKind kind, int blocks, std::optional<double> rate_GBps, int shared_memory_bytes) {
  Aggressor a;
  a.kind = kind;
  a.blocks = blocks;
  a.rate_GBps = rate_GBps;
  if (kind == AggressorKind::copy_engine) {
    a.threads = 0;
    a.chunk_bytes = 8 << 20;
    a.buffer_bytes = std::int64_t{4} * a.chunk_bytes;
  } else {
    a.shared_memory_bytes = shared_memory_bytes;
  }
  if (moves(kind)) {
    const bool small = rate_GBps && *rate_GBps / blocks <= kMostOfSmallChunksGBps;
    a.chunk_bytes = small ? kSmallChunkBytes : kLargeChunkBytes;
    a.buffer_bytes = std::int64_t{kind == AggressorKind::l2_copy ? 16 : uses_host_memory(kind) ? 128 : 512} << 20;
  }
  a.name = name_of(a);
  return a;
}

Aggressor with_fences(Aggressor a) {
  a.fences = true;
  a.name += "_fence";
  return a;
}

Aggressor in_own_domain(Aggressor a) {
  a.own_domain = true;
  a.name += "_domain";
  return a;
}

bool uses_host_memory(AggressorKind kind) {
  return kind == AggressorKind::host_write || kind == AggressorKind::host_read;
}

const std::vector<Aggressor>& core_aggressors() {
  static const std::vector<Aggressor> core = make_core();
  return core;
}

const std::vector<Aggressor>& surface_aggressors() {
  static const std::vector<Aggressor> surface = make_surface();
  return surface;
}

std::optional<double> chunk_interval_ns(const Aggressor& a) {
  if (!a.rate_GBps || a.blocks == 0) return std::nullopt;
  return static_cast<double>(a.chunk_bytes) * a.blocks / *a.rate_GBps;
}

int tensors(AggressorKind kind) { return !moves(kind) ? 0 : kind == AggressorKind::reduce ? 3 : 2; }

std::int64_t slice_bytes(const Aggressor& a) {
  if (!moves(a.kind) || a.blocks == 0) return 0;
  return a.buffer_bytes / tensors(a.kind) / a.blocks / a.chunk_bytes * a.chunk_bytes;
}

}  // namespace weft::gpu_probe
