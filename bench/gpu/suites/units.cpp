// Which units a grid loses to the blocks of a collective: grids of one block a unit beside resident, waiting blocks.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <set>

#include "bench/gpu/device/running_aggressor.h"
#include "bench/gpu/suites/session.h"
#include "bench/gpu/suites/unit_kernels.h"

namespace weft::gpu_probe {
namespace {

using nlohmann::json;

constexpr unsigned long long kBlockCycles = 30000;  // about 16 us: far above the spread of starts
constexpr int kMostBlocks = 140;
constexpr std::chrono::seconds kHung{1};
constexpr int kClusters[] = {1, 2, 3, 4, 6, 7, 8, 12, 16};

// What a grid did.
struct Placement {
  double makespan_us = 0;
  int late = 0;                   // blocks that began after another one's end
  std::set<unsigned> first_wave;  // units of the others
  std::vector<unsigned> units;    // of each block
};

Placement placement(const BlockTime* times, int blocks) {
  Placement out;
  unsigned long long first = ~0ull, first_end = ~0ull, last = 0;
  for (int b = 0; b < blocks; ++b) {
    first = std::min(first, times[b].begin_ns);
    first_end = std::min(first_end, times[b].end_ns);
    last = std::max(last, times[b].end_ns);
  }
  for (int b = 0; b < blocks; ++b) {
    out.units.push_back(times[b].unit);
    if (times[b].begin_ns >= first_end)
      ++out.late;
    else
      out.first_wave.insert(times[b].unit);
  }
  out.makespan_us = static_cast<double>(last - first) / 1000;
  return out;
}

struct Case {
  int threads, shared_memory_bytes, resident, cluster;
};

std::vector<Case> cases() {
  std::vector<Case> out;
  for (const int cluster : kClusters) {
    out.push_back({0, 0, 0, cluster});
    for (const int threads : {544, 640}) {
      for (const int shared : {kSharedMemoryV100, kSharedMemoryA100}) {
        if (cluster > 2 && (threads != 544 || shared != kSharedMemoryA100)) continue;
        for (const int resident : {1, 2, 3, 4, 6, 8, 12, 16, 20, 24, 28, 32})
          out.push_back({threads, shared, resident, cluster});
      }
    }
  }
  return out;
}

class UnitSuite {
 public:
  explicit UnitSuite(Session& session)
      : session_(session), gpu_(session.gpu), bench_(session.gpu), times_(kMostBlocks), read_(kMostBlocks) {
    for (const int cluster : kClusters) static_cast<void>(run_grid(kMostBlocks / cluster * cluster, cluster));
  }

  void run() {
    for (const Case& c : cases()) {
      if (session_.is_over()) return;
      const json keys{{"threads", c.threads},
                      {"shared_memory_bytes", c.shared_memory_bytes},
                      {"resident_blocks", c.resident},
                      {"cluster", c.cluster}};
      const json* known = session_.results.find("units", keys);
      try {
        if (hangs_at_ == c.cluster && c.resident > 0) continue;
        if (known == nullptr) {
          session_.results.put("units", keys, measure(c));
          known = session_.results.find("units", keys);
        }
        if (known->at("most_blocks_at_once") == 0) hangs_at_ = c.cluster;
      } catch (const std::runtime_error& error) {
        std::fprintf(stderr, "units beside %d blocks: %s\n", c.resident, error.what());
        bench_.stop();
        check(cudaDeviceSynchronize(), "after a failed measurement");
      }
    }
  }

 private:
  Placement run_grid(int blocks, int cluster) {
    const auto stream = gpu_.compute();
    launch_unit_blocks(times_.data(), blocks, cluster, kBlockCycles, stream);
    const std::size_t bytes = static_cast<std::size_t>(blocks) * sizeof(BlockTime);
    check(cudaMemcpyAsync(read_.data(), times_.data(), bytes, cudaMemcpyDeviceToHost, stream), "times of blocks");
    check(cudaStreamSynchronize(stream), "times of blocks");
    return placement(read_.data(), blocks);
  }

  json measure(const Case& c) {
    std::vector<std::pair<int, Placement>> grids;
    if (c.resident > 0) {
      Aggressor aggressor = make_aggressor(AggressorKind::spin, c.resident, {}, c.shared_memory_bytes);
      aggressor.threads = c.threads;
      bench_.start(aggressor);
    }
    const auto begin = std::chrono::steady_clock::now();
    for (int blocks = c.cluster; blocks <= kMostBlocks; blocks += c.cluster) {
      grids.emplace_back(blocks, run_grid(blocks, c.cluster));
      // It began when the aggressor had ended: no GPC has so many units free, and a collective would have hung.
      if (std::chrono::steady_clock::now() - begin > kHung) return never_starts();
    }
    if (c.resident > 0) bench_.stop();
    return summary(grids, c.resident > 0 ? bench_.units() : std::vector<unsigned>{});
  }

  json never_starts() {
    try {
      bench_.stop();
    } catch (const std::runtime_error&) {  // it ended by itself
    }
    return {{"most_blocks_at_once", 0}, {"units_of_aggressor", bench_.units().size()}};
  }

  // One value for each number of blocks, and the units that stayed empty while blocks waited.
  json summary(const std::vector<std::pair<int, Placement>>& grids,
               const std::vector<unsigned>& aggressor_units) const {
    json item{{"aggressor_units", aggressor_units}};
    const std::set<unsigned> taken(aggressor_units.begin(), aggressor_units.end());
    int most_at_once = 0;
    for (const auto& [blocks, p] : grids) {
      item["blocks"].push_back(blocks);
      item["makespan_us"].push_back(p.makespan_us);
      item["late_blocks"].push_back(p.late);
      item["units_used"].push_back(p.first_wave.size());
      if (p.late == 0) most_at_once = std::max(most_at_once, blocks);
      if (p.late == 0) continue;
      json lost = json::array();
      for (unsigned unit = 0; unit < static_cast<unsigned>(gpu_.units()); ++unit) {
        if (!taken.contains(unit) && !p.first_wave.contains(unit)) lost.push_back(unit);
      }
      item["further_units_lost"].push_back({{"blocks", blocks}, {"units", lost}});
    }
    item["most_blocks_at_once"] = most_at_once;
    item["units_of_aggressor"] = taken.size();
    // Of the largest grid: who shares a cluster shares a GPC.
    item["units_of_blocks"] = grids.back().second.units;
    return item;
  }

  Session& session_;
  Gpu& gpu_;
  AggressorBench bench_;
  DeviceArray<BlockTime> times_;
  PinnedArray<BlockTime> read_;
  int hangs_at_ = 0;  // clusters that cannot start beside so many blocks cannot beside more
};

}  // namespace

void run_units(Session& session) { UnitSuite(session).run(); }

}  // namespace weft::gpu_probe
