#include "bench/gpu/suites/victim_bench.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "bench/gpu/victims/cublas.h"
#include "bench/gpu/victims/cudnn.h"

namespace weft::gpu_probe {
namespace {

constexpr std::size_t kMostArenaBytes = std::size_t{24} << 30;
// PyTorch's on Hopper (aten/src/ATen/cuda/CublasHandlePool.cpp).
constexpr std::size_t kCublasWorkspaceBytes = std::size_t{32} << 20;
constexpr std::size_t kCudnnWorkspaceBytes = std::size_t{512} << 20;
constexpr unsigned kMostCopies = 8;

template <class Library>
std::unique_ptr<Library> open(const Session& session, const char* name) {
  try {
    return std::make_unique<Library>(session.options.libraries);
  } catch (const std::runtime_error& error) {
    std::fprintf(stderr, "no %s, so its victims are left out: %s\n", name, error.what());
    return nullptr;
  }
}

// So many that what the caches hold is overwritten before it comes again.
unsigned copies_of(const Victim& victim, std::size_t l2_bytes) {
  if (victim.resident || victim.steps.size() > 1) return 1;
  const double once = std::max(traffic_bytes(victim.steps.front()), 1.0);
  return static_cast<unsigned>(
      std::clamp(std::ceil(4 * static_cast<double>(l2_bytes) / once), 1.0, double{kMostCopies}));
}

}  // namespace

VictimBench::VictimBench(Session& session)
    : session_(session), cublas_(open<CublasLibrary>(session, "cuBLAS")), cudnn_(open<CudnnLibrary>(session, "cuDNN")) {
  std::size_t free = 0, total = 0;
  check(cudaMemGetInfo(&free, &total), "cudaMemGetInfo");
  arena_ = std::make_unique<Arena>(std::min(free / 2, kMostArenaBytes), session.gpu.compute());
  nlohmann::json machine = *session.results.section("machine");
  machine["cublas"] = cublas_ ? cublas_->version() : "";
  machine["cudnn"] = cudnn_ ? cudnn_->version() : "";
  session.results.set("machine", machine);
}

VictimBench::~VictimBench() = default;

std::unique_ptr<VictimRun> VictimBench::prepare(const Victim& victim, std::optional<unsigned> launches) {
  const nlohmann::json* before = session_.results.find("left_out", {{"victim", victim.name}});
  if (before != nullptr && before->value("ended_a_run", false)) return nullptr;
  try {
    arena_->reset();
    if (cublas_) cublas_->set_workspace(arena_->take_bytes(kCublasWorkspaceBytes), kCublasWorkspaceBytes);
    if (cudnn_) cudnn_->set_workspace(arena_->take_bytes(kCudnnWorkspaceBytes), kCudnnWorkspaceBytes);
    const unsigned copies = launches ? 1 : copies_of(victim, session_.gpu.l2_bytes());
    const Workshop workshop{*arena_, cublas_.get(), cudnn_.get(), copies};
    std::vector<std::unique_ptr<Work>> works;
    for (const Step& step : victim.steps) works.push_back(make_work(step, workshop));
    auto run = std::make_unique<VictimRun>(std::move(works), copies);
    // The first launch loads code, which must not happen beside blocks that wait for the host.
    for (unsigned i = 0; i < launches.value_or(copies + 2); ++i) run->launch(session_.gpu.compute());
    check(cudaStreamSynchronize(session_.gpu.compute()), victim.name.c_str());
    return run;
  } catch (const std::runtime_error& error) {
    std::fprintf(stderr, "%s is left out: %s\n", victim.name.c_str(), error.what());
    session_.results.put("left_out", {{"victim", victim.name}}, {{"why", error.what()}});
    check_device(victim, error.what());
    return nullptr;
  }
}

void VictimBench::check_device(const Victim& victim, const char* why) {
  static_cast<void>(cudaGetLastError());
  const cudaError_t state = cudaDeviceSynchronize();
  if (state == cudaSuccess) return;
  session_.results.put("left_out", {{"victim", victim.name}}, {{"why", why}, {"ended_a_run", true}});
  throw CudaError(state, victim.name.c_str());
}

}  // namespace weft::gpu_probe
