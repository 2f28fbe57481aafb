// How the L2 serves many units at once: the same lines for several, more than one of its halves holds, and a kernel
// whose data stay in it beside blocks that move.
#include <algorithm>
#include <cstdio>

#include "bench/gpu/device/running_aggressor.h"
#include "bench/gpu/device/small_kernels.h"
#include "bench/gpu/plan/statistics.h"
#include "bench/gpu/suites/cache_kernels.h"
#include "bench/gpu/suites/session.h"
#include "bench/gpu/suites/victim_run.h"
#include "bench/gpu/victims/arena.h"
#include "bench/gpu/victims/work.h"

namespace weft::gpu_probe {
namespace {

using nlohmann::json;

constexpr std::size_t kMiB = 1 << 20;
constexpr std::size_t kRoundBytes = 16 << 10;  // what a block loads at once: regions are multiples of it
constexpr int kTimings = 7;
constexpr int kChain = 20;

class CacheSuite {
 public:
  explicit CacheSuite(Session& session)
      : gpu_(session.gpu), timer_(kTimings), arena_(256 * kMiB, gpu_.compute()), data_(128 * kMiB) {
    fill_random(data_.data(), data_.bytes(), Element::fp32, 5, gpu_.compute());
    check(cudaStreamSynchronize(gpu_.compute()), "filling memory");
  }

  // Each unit reads all the time; what all regions hold together stays the same.
  json same_lines() {
    struct Group {
      unsigned readers;
      int cluster;
    };
    json out = json::array();
    for (const Group g : {Group{1, 1}, {2, 1}, {2, 2}, {4, 1}, {4, 4}, {8, 1}, {8, 8}, {16, 1}, {16, 16}, {64, 1}}) {
      for (const std::size_t lag_KiB : {0, 2, 8, 32, 128}) {
        if (g.readers == 1 && lag_KiB > 0) continue;
        const int blocks = g.cluster > 2 ? 96 : 128;  // so many that all clusters run at once
        out.push_back(item(blocks, false, 12 * kMiB, g.readers, g.cluster, 0, lag_KiB << 10));
      }
    }
    return out;
  }

  // Always the same unit for the same lines, or the next one in each pass.
  json footprints() {
    json out = json::array();
    for (const std::size_t mib : {4, 8, 12, 16, 20, 24, 28, 32, 36, 40, 44, 48, 56, 64, 96}) {
      for (const bool writes : {false, true}) {
        for (const unsigned rotation : {0, 1, 17})
          out.push_back(item(gpu_.units(), writes, mib * kMiB, 1, 1, rotation, 0));
      }
    }
    return out;
  }

  // One kernel after another over the same lines, each by the units that had them last or by others.
  json passed_on() {
    json out = json::array();
    for (const bool writes : {false, true}) {
      for (const unsigned shift : {0, 1, 17}) {
        for (const std::size_t mib : {4, 8, 12, 16, 20, 24, 28, 32, 36, 40, 44, 48})
          out.push_back(pass_item(writes, mib * kMiB, shift));
      }
    }
    return out;
  }

  // Two tensors read, one written; `bytes` are of all three.
  json adds() {
    using enum AggressorKind;
    AggressorBench aggressors(gpu_);
    const std::optional<Aggressor> none;
    json out = json::array();
    for (const auto& aggressor :
         {none, std::optional(make_aggressor(spin, 16, {})), std::optional(make_aggressor(copy, 16, 100)),
          std::optional(make_aggressor(copy, 16, {})), std::optional(make_aggressor(l2_copy, 16, {})),
          std::optional(make_aggressor(reduce, 16, {}))}) {
      for (const std::int64_t mib : {3, 6, 12, 18, 24, 30, 36, 48, 96}) {
        arena_.reset();
        const Step step{StepKind::add, Element::bf16, Matrix{mib * (1 << 20) / 6 / 1024, 1024}};
        const auto add = make_work(step, {arena_, nullptr, nullptr, 1});
        add->launch(gpu_.compute(), 0);
        check(cudaStreamSynchronize(gpu_.compute()), "an elementwise kernel");
        if (aggressor) aggressors.start(*aggressor);
        json item{{"bytes", mib << 20}, {"aggressor", aggressor ? json(aggressor->name) : json()}};
        item["us"] = chain(*add, aggressor ? &aggressors : nullptr);
        if (aggressor) {
          aggressors.stop();
          item["aggressor_written_GBps"] = aggressors.rates().written_GBps;
        }
        out.push_back(item);
      }
    }
    return out;
  }

 private:
  json item(int blocks, bool writes, std::size_t bytes, unsigned readers, int cluster, unsigned rotation,
            std::size_t lag_bytes) {
    const std::size_t groups = static_cast<std::size_t>(blocks) / readers;
    RegionArguments arguments;
    arguments.data = reinterpret_cast<float4*>(data_.data());
    arguments.writes = writes;
    const std::size_t region = std::max(bytes / groups / kRoundBytes, std::size_t{1}) * kRoundBytes;
    arguments.vectors = region / sizeof(float4);
    arguments.readers = readers;
    arguments.rotation = rotation;
    arguments.lag = lag_bytes / sizeof(float4);
    arguments.repeats = static_cast<int>(std::max(std::size_t{8}, 8 * kMiB / region));
    const auto launch = [&] { launch_regions(arguments, blocks, cluster, gpu_.compute()); };
    launch();
    const Summary us = summarize(timer_.time(kTimings, gpu_.compute(), launch));
    const double read = static_cast<double>(region) * arguments.repeats * blocks;
    return {{"operation", writes ? "write" : "read"},
            {"bytes", region * groups},
            {"readers", readers},
            {"cluster", cluster},
            {"blocks", blocks},
            {"rotation", rotation},
            {"lag_bytes", lag_bytes},
            {"us", us},
            {"GBps", read / us.median / 1000}};
  }

  // The first of two kernels reads or writes, the second one reads.
  json pass_item(bool writes, std::size_t bytes, unsigned shift) {
    const auto groups = static_cast<std::size_t>(gpu_.units());
    const std::size_t region = bytes / groups / kRoundBytes * kRoundBytes;
    RegionArguments arguments;
    arguments.data = reinterpret_cast<float4*>(data_.data());
    arguments.vectors = region / sizeof(float4);
    delay(2000000, gpu_.compute());  // the host takes longer to launch than these run
    const Summary us = summarize(timer_.time(kTimings, gpu_.compute(), [&] {
      for (int i = 0; i < kChain; ++i) {
        arguments.writes = writes && i % 2 == 0;
        arguments.shift = i % 2 == 0 ? 0 : shift;
        launch_regions(arguments, gpu_.units(), 1, gpu_.compute());
      }
    }));
    return {
        {"first", writes ? "write" : "read"}, {"bytes", region * groups}, {"shift", shift}, {"us", us.median / kChain}};
  }

  // Of one, in a row.
  json chain(Work& work, AggressorBench* aggressors) {
    const auto stream = gpu_.compute();
    delay(300000, stream);
    if (aggressors != nullptr) aggressors->begin_count();
    auto us = timer_.time(kTimings, stream, [&] {
      for (int i = 0; i < kChain; ++i) work.launch(stream, 0);
    });
    if (aggressors != nullptr) aggressors->end_count();
    check(cudaStreamSynchronize(stream), "elementwise kernels");
    for (double& one : us) one /= kChain;
    return summarize(us);
  }

  Gpu& gpu_;
  Timer timer_;
  Arena arena_;
  DeviceArray<unsigned char> data_;
};

}  // namespace

void run_cache(Session& session) {
  CacheSuite suite(session);
  const auto part = [&](const char* name, const auto& measure) { measure_part(session, "cache", name, measure); };
  part("same_lines", [&] { return suite.same_lines(); });
  part("footprints", [&] { return suite.footprints(); });
  part("passed_on", [&] { return suite.passed_on(); });
  part("adds", [&] { return suite.adds(); });
}

}  // namespace weft::gpu_probe
