// Bandwidth and latency of the memories, and what a launch costs: numbers for a model of the machine itself.
#include <algorithm>
#include <cstdio>
#include <numeric>
#include <random>

#include "bench/gpu/device/memory.h"
#include "bench/gpu/device/small_kernels.h"
#include "bench/gpu/plan/statistics.h"
#include "bench/gpu/suites/host_costs.h"
#include "bench/gpu/suites/launch_costs.h"
#include "bench/gpu/suites/machine_kernels.h"
#include "bench/gpu/suites/session.h"
#include "bench/gpu/suites/victim_run.h"

namespace weft::gpu_probe {
namespace {

using nlohmann::json;

constexpr std::size_t kKiB = 1 << 10, kMiB = 1 << 20;
constexpr std::size_t kTensorBytes = 1024 * kMiB;
constexpr int kTimings = 5;

class MachineSuite {
 public:
  explicit MachineSuite(Session& session)
      : gpu_(session.gpu), timer_(kTimings), memory_(3 * kTensorBytes), small_(4096), read_(4096) {
    fill_random(memory_.data(), memory_.bytes(), Element::fp32, 3, gpu_.compute());
    check(cudaStreamSynchronize(gpu_.compute()), "filling memory");
  }

  json bandwidth() {
    json out = json::array();
    const int units = gpu_.units();
    for (const auto& [level, bytes] :
         {std::pair{"L2", 4 * kMiB}, std::pair{"L2", 12 * kMiB}, std::pair{"HBM", kTensorBytes}}) {
      for (const auto& [name, stream] : {std::pair{"read", Stream::read}, std::pair{"write", Stream::write},
                                         std::pair{"copy", Stream::copy}, std::pair{"triad", Stream::triad}}) {
        for (const int blocks : {1, 2, 4, 8, 16, 32, units / 2, units, 2 * units, 4 * units})
          out.push_back(stream_item(level, bytes, name, stream, blocks));
      }
    }
    for (const std::size_t bytes : {32 * kKiB, 64 * kKiB, 128 * kKiB, 192 * kKiB}) out.push_back(l1_item(bytes));
    return out;
  }

  // Of few units, near to one another or not, and of all: what a unit, a GPC and the whole can do at most.
  json mixes() {
    struct Place {
      int blocks, cluster;
    };
    const int units = gpu_.units();
    json out = json::array();
    for (const auto& [level, bytes] : {std::pair{"L2", 16 * kMiB}, std::pair{"HBM", 3 * kTensorBytes}}) {
      for (const Place p :
           {Place{1, 1}, {2, 2}, {4, 4}, {8, 8}, {16, 16}, {16, 1}, {32, 16}, {64, 16}, {66, 1}, {units, 1}})
        for (const auto& [reads, writes] : {std::pair{1, 0}, {3, 1}, {2, 1}, {1, 1}, {1, 2}, {1, 3}, {0, 1}})
          out.push_back(mix_item(level, bytes, reads, writes, p.blocks, p.cluster));
    }
    return out;
  }

  // How far rows of the HBM, and what the L2 writes back, depend on neighbours coming together.
  json pieces() {
    constexpr unsigned kVectorBits = 26;  // 1 GiB
    json out = json::array();
    for (const bool writes : {false, true}) {
      for (unsigned piece_bits = 1; piece_bits <= 18; ++piece_bits) {
        const Summary us = timed([&] {
          launch_pieces(writes, tensor(0), kVectorBits, piece_bits, 2 * gpu_.units(),
                        reinterpret_cast<float*>(small_.data()), gpu_.compute());
        });
        out.push_back({{"operation", writes ? "write" : "read"},
                       {"piece_bytes", sizeof(float4) << piece_bits},
                       {"GBps", static_cast<double>(kTensorBytes) / us.median / 1000},
                       {"us", us}});
      }
    }
    return out;
  }

  json latency() {
    json out = json::array();
    for (const bool l1 : {true, false}) {
      for (const std::size_t kib : {16, 32, 64, 128, 192, 256, 512, 1024, 4096, 8192, 16384, 24576, 32768, 40960, 49152,
                                    65536, 131072, 262144, 1048576}) {
        if (l1 && kib > 512) continue;
        out.push_back(chase_item(kib * kKiB, l1));
      }
    }
    return out;
  }

  // Of single lines from a few units: whether some lines are farther than others.
  json line_latency() {
    constexpr int kLines = 4096;
    json out = json::array();
    DeviceArray<unsigned short> cycles(kLines);
    PinnedArray<unsigned short> read(kLines);
    const int units = gpu_.units();
    for (const int unit : {0, 1, 2, units / 4, units / 2, 3 * units / 4, units - 1}) {
      launch_line_latencies(lines(), kLines, static_cast<unsigned>(unit), units,
                            reinterpret_cast<unsigned*>(small_.data()), cycles.data(), gpu_.compute());
      check(cudaMemcpyAsync(read.data(), cycles.data(), cycles.bytes(), cudaMemcpyDeviceToHost, gpu_.compute()),
            "lines");
      check(cudaStreamSynchronize(gpu_.compute()), "latencies of lines");
      std::vector<double> sorted(read.data(), read.data() + kLines);
      std::sort(sorted.begin(), sorted.end());
      json quantiles = json::array();
      for (int percent = 0; percent <= 100; percent += 5) quantiles.push_back(quantile(sorted, percent / 100.0));
      // In order, too: neighbouring lines tell how addresses are spread over the halves.
      out.push_back({{"unit", unit},
                     {"cycles_by_5_percent", quantiles},
                     {"cycles_of_first_lines", std::vector<unsigned>(read.data(), read.data() + 256)}});
    }
    return out;
  }

 private:
  [[nodiscard]] float4* tensor(int i) const { return reinterpret_cast<float4*>(memory_.data() + i * kTensorBytes); }
  [[nodiscard]] unsigned* lines() const { return reinterpret_cast<unsigned*>(memory_.data()); }

  Summary timed(const std::function<void()>& launch) {
    launch();
    return summarize(timer_.time(kTimings, gpu_.compute(), launch));
  }

  json stream_item(const char* level, std::size_t bytes, const char* name, Stream stream, int blocks) {
    // A few hundred microseconds at the full rate; few blocks take a part of a large tensor.
    const std::size_t own = std::min(bytes, std::size_t{64} * kMiB * static_cast<std::size_t>(blocks));
    StreamArguments arguments{tensor(0), tensor(1), tensor(2), own / sizeof(float4), 1};
    if (own <= 64 * kMiB && bytes < 64 * kMiB) arguments.repeats = std::clamp(blocks, 4, 64);
    const Summary us = timed([&] { launch_stream(stream, arguments, blocks, gpu_.compute()); });
    const int moved = stream == Stream::triad ? 3 : stream == Stream::copy ? 2 : 1;
    const double total = static_cast<double>(own) * arguments.repeats * moved;
    return {{"level", level},
            {"operation", name},
            {"tensor_bytes", own},
            {"blocks", blocks},
            {"GBps", total / us.median / 1000},
            {"us", us}};
  }

  json mix_item(const char* level, std::size_t bytes, int reads, int writes, int blocks, int cluster) {
    const int tensors = reads + writes;
    const auto some = static_cast<std::size_t>(blocks);
    // A multiple of what a round of all blocks takes, so that tensors begin at lines.
    const std::size_t most = std::min(bytes, (bytes < kTensorBytes ? bytes : 64 * kMiB * some));
    MixArguments arguments{tensor(0), most / static_cast<std::size_t>(tensors) / 4096 * 256, 1,
                           reinterpret_cast<unsigned*>(small_.data())};
    if (bytes < kTensorBytes) arguments.repeats = std::clamp(blocks, 4, 32);
    const Summary us = timed([&] { launch_mix(reads, writes, arguments, blocks, cluster, gpu_.compute()); });
    check(cudaMemcpyAsync(read_.data(), small_.data(), some * sizeof(unsigned), cudaMemcpyDeviceToHost, gpu_.compute()),
          "units");
    check(cudaStreamSynchronize(gpu_.compute()), "units");
    const auto* const on = reinterpret_cast<const unsigned*>(read_.data());
    const double total = static_cast<double>(arguments.vectors) * sizeof(float4) * arguments.repeats * tensors;
    json item{{"level", level},   {"reads", reads},     {"writes", writes},
              {"blocks", blocks}, {"cluster", cluster}, {"GBps", total / us.median / 1000},
              {"us", us}};
    if (cluster > 1) item["units"] = std::vector<unsigned>(on, on + some);
    return item;
  }

  json l1_item(std::size_t bytes) {
    constexpr int kRepeats = 200;
    auto* const sink = reinterpret_cast<float*>(tensor(2));
    const Summary us = timed([&] { launch_l1_read(tensor(0), bytes, kRepeats, gpu_.units(), sink, gpu_.compute()); });
    const double total = static_cast<double>(bytes) * kRepeats * gpu_.units();
    return {{"level", "L1"},
            {"operation", "read"},
            {"bytes_unit", bytes},
            {"blocks", gpu_.units()},
            {"GBps", total / us.median / 1000},
            {"us", us}};
  }

  json chase_item(std::size_t bytes, bool l1) {
    const std::size_t count = bytes / 128;
    // One cycle through all lines in random order (Sattolo).
    std::vector<unsigned> next(count);
    std::iota(next.begin(), next.end(), 0u);
    std::mt19937 random(7);
    for (std::size_t i = count - 1; i > 0; --i) std::swap(next[i], next[random() % i]);
    const std::size_t next_bytes = count * sizeof(unsigned);
    auto* const device_next = reinterpret_cast<unsigned*>(tensor(1));
    const auto stream = gpu_.compute();
    check(cudaMemcpyAsync(device_next, next.data(), next_bytes, cudaMemcpyHostToDevice, stream), "a chain");
    launch_make_chain(lines(), device_next, count, stream);
    const auto short_of = [](std::size_t steps, std::size_t most) { return static_cast<int>(std::min(steps, most)); };
    launch_chase(lines(), short_of(2 * count, 400000), short_of(std::max<std::size_t>(count, 4096), 20000), l1,
                 small_.data(), stream);
    check(cudaMemcpyAsync(read_.data(), small_.data(), 24, cudaMemcpyDeviceToHost, stream), "a latency");
    check(cudaStreamSynchronize(stream), "a chase");
    const double steps = short_of(std::max<std::size_t>(count, 4096), 20000);
    return {{"bytes", bytes},
            {"through_l1", l1},
            {"cycles", static_cast<double>(read_[0]) / steps},
            {"ns", static_cast<double>(read_[1]) / steps}};
  }

  Gpu& gpu_;
  Timer timer_;
  DeviceArray<unsigned char> memory_;
  DeviceArray<unsigned long long> small_;
  PinnedArray<unsigned long long> read_;
};

}  // namespace

void run_machine(Session& session) {
  MachineSuite suite(session);
  const auto part = [&](const char* name, const auto& measure) { measure_part(session, "memory", name, measure); };
  part("launch", [&] { return launch_costs(session.gpu); });
  part("bandwidth", [&] { return suite.bandwidth(); });
  part("line_latency", [&] { return suite.line_latency(); });
  part("mixes", [&] { return suite.mixes(); });
  part("pieces", [&] { return suite.pieces(); });
  part("host", [&] { return host_costs(session.gpu); });
  part("latency", [&] { return suite.latency(); });
}

}  // namespace weft::gpu_probe
