// Kernels of the fake GPU: each takes a fixed time, half as long again beside an aggressor.
#include <algorithm>

#include "bench/gpu/device/aggressor_kernels.h"
#include "bench/gpu/device/small_kernels.h"
#include "bench/gpu/suites/cache_kernels.h"
#include "bench/gpu/suites/drain_kernels.h"
#include "bench/gpu/suites/host_kernels.h"
#include "bench/gpu/suites/machine_kernels.h"
#include "bench/gpu/suites/unit_kernels.h"
#include "bench/gpu/victims/arena.h"
#include "bench/gpu/victims/work.h"
#include "tests/gpu_probe/fake/fake_clock.h"

namespace weft::gpu_probe {
namespace {

void work(std::uint64_t ns) { fake_ns += fake_aggressor_runs ? ns * 3 / 2 : ns; }

class FakeWork : public Work {
 public:
  explicit FakeWork(const Step& step) : ns_(static_cast<std::uint64_t>(1000 * estimated_us(step))) {}
  void launch(cudaStream_t, unsigned) override { work(ns_); }

 private:
  std::uint64_t ns_;
};

std::unique_ptr<Work> fake(const Step& step) { return std::make_unique<FakeWork>(step); }

unsigned long long written = 0;
int resident = 0;

}  // namespace

std::unique_ptr<Work> make_elementwise(const Step& step, const Workshop& workshop) {
  static_cast<void>(workshop.arena.take(std::get<Matrix>(step.shape).elements(), step.element, workshop.copies));
  return fake(step);
}
std::unique_ptr<Work> make_row_sum(const Step& step, const Workshop&) { return fake(step); }
std::unique_ptr<Work> make_layer_norm(const Step& step, const Workshop&) { return fake(step); }
std::unique_ptr<Work> make_layer_norm_backward(const Step& step, const Workshop&) { return fake(step); }
std::unique_ptr<Work> make_softmax(const Step& step, const Workshop&) { return fake(step); }
std::unique_ptr<Work> make_attention(const Step& step, const Workshop&) { return fake(step); }
std::unique_ptr<Work> make_adam(const Step& step, const Workshop&) { return fake(step); }
std::unique_ptr<Work> make_timed_blocks(const Step& step, const Workshop&) { return fake(step); }

void sample_clocks(unsigned long long* out, unsigned long long ns, cudaStream_t) {
  out[0] = 0;
  out[1] = 0;
  out[2] = ns * 9 / 5;
  out[3] = ns;
}
void delay(unsigned long long ns, cudaStream_t) { fake_ns += ns; }
void fill_random(void*, std::size_t, Element, unsigned, cudaStream_t) {}

void launch_aggressor(const Aggressor& aggressor, const AggressorArguments& a, cudaStream_t) {
  fake_aggressor_runs = true;
  resident = aggressor.blocks;
  for (int b = 0; b < aggressor.blocks; ++b) {
    a.running[b] = static_cast<unsigned>(2 * b + 1);
    a.reports[b] = {0, 0, 1800, 0, 1000, static_cast<unsigned>(2 * b), 0};
  }
}
int registers_of(const Aggressor&) { return kRegistersAsked; }
void snapshot(const BlockReport*, int, unsigned long long* out, cudaStream_t) {
  fake_ns += 1000;
  written += 100000;
  out[0] = written;
  out[1] = fake_ns;
}

void launch_small_kernel(const SmallKernel& kernel, cudaStream_t) {
  fake_ns += 1000;
  if (kernel.stamps != nullptr) *kernel.stamps = {fake_ns, fake_ns + 2000};
  work(2000);
}

// One block a unit that has no resident block; the others wait.
void launch_unit_blocks(BlockTime* times, int blocks, int, unsigned long long, cudaStream_t) {
  const int free = fake_aggressor_runs ? 132 - resident : 132;
  for (int b = 0; b < blocks; ++b) {
    const auto wave = static_cast<unsigned long long>(b / free);
    const int place = b % free;
    const int unit = !fake_aggressor_runs ? place : place < resident ? 2 * place + 1 : resident + place;
    times[b] = {static_cast<unsigned>(unit), wave * 16000, (wave + 1) * 16000};
  }
  fake_ns += 20000;
}

void launch_stream(Stream, const StreamArguments&, int, cudaStream_t) { work(100000); }
void launch_l1_read(const float4*, std::size_t, int, int, float*, cudaStream_t) { work(100000); }
void launch_mix(int, int, const MixArguments& m, int blocks, int, cudaStream_t) {
  for (int b = 0; b < blocks; ++b) m.units[b] = static_cast<unsigned>(b);
  work(100000);
}
void launch_regions(const RegionArguments&, int, int, cudaStream_t) { work(100000); }
void launch_pieces(bool, float4*, unsigned, unsigned, int, float*, cudaStream_t) { work(100000); }
void launch_lines(bool, int, uint4*, std::size_t, int, unsigned*, cudaStream_t) { work(100000); }
void launch_host_chase(const unsigned*, int steps, unsigned long long* out, cudaStream_t) {
  out[0] = 900ull * static_cast<unsigned>(steps);
}
void launch_ping(volatile unsigned* ping, const volatile unsigned*, int rounds, unsigned long long* out, cudaStream_t) {
  *ping = static_cast<unsigned>(rounds);
  out[0] = 1800ull * static_cast<unsigned>(rounds);
}
void launch_fences(uint4*, unsigned, int rounds, bool, int blocks, unsigned* cycles, cudaStream_t) {
  std::fill_n(cycles, rounds * blocks, 700u);
}
void launch_make_chain(unsigned*, const unsigned*, std::size_t, cudaStream_t) {}
void launch_chase(const unsigned*, int, int steps, bool, unsigned long long* out, cudaStream_t) {
  out[0] = 540ull * static_cast<unsigned>(steps);
  out[1] = 300ull * static_cast<unsigned>(steps);
}
void launch_line_latencies(const unsigned*, int count, unsigned, int, unsigned*, unsigned short* cycles, cudaStream_t) {
  std::fill_n(cycles, count, static_cast<unsigned short>(260));
}
void launch_empty(cudaStream_t) { work(1000); }
void launch_starts(unsigned long long* begin_ns, int blocks, std::size_t, cudaStream_t) {
  std::fill_n(begin_ns, blocks, fake_ns);
}
void launch_timer_steps(unsigned long long* steps, int count, cudaStream_t) { std::fill_n(steps, count, 32ull); }

}  // namespace weft::gpu_probe
