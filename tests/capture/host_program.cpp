// A program that is captured, for tests: calls the injected library as the driver and NCCL do, and NCCL as programs do.
// host_program MODE: exits with 3 if all went as it should.
#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <thread>

#include "tests/capture/fake_nccl.h"

namespace {

constexpr int kFine = 3;

void* open_library(const char* variable) {
  const char* path = std::getenv(variable);
  void* library = path == nullptr ? nullptr : dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) std::printf("%s: %s\n", variable, path == nullptr ? "not set" : dlerror());
  return library;
}

int start_cuda() {
  void* library = open_library("CUDA_INJECTION64_PATH");
  if (library == nullptr) return 1;
  auto* initialize = reinterpret_cast<int (*)()>(dlsym(library, "InitializeInjection"));
  if (initialize != nullptr) initialize();
  std::puts("CUDA started");
  return kFine;
}

// On the tests' own driver and CUPTI, by one thread or two; `function` of that CUPTI.
int run_kernels(const char* driver, const char* function, const char* count, bool two) {
  dlopen(driver, RTLD_NOW);
  if (start_cuda() != kFine) return 1;
  void* cupti = open_library("WEFT_CAPTURE_CUPTI");
  auto* run = reinterpret_cast<void (*)(std::int64_t)>(dlsym(cupti, function));
  std::thread other;
  if (two) other = std::thread(run, std::strtoll(count, nullptr, 10));
  run(std::strtoll(count, nullptr, 10));
  if (two) other.join();
  return 0;
}

// The interface of NCCL's profiler plugins as plugins/profiler/README.md and its example declare it, written down
// again here, so that the library's own declaration is held to something.
struct EventV4 {
  std::uint8_t type;
  void* parent;
  int rank;
  union {
    struct {
      std::uint64_t seqNumber;
      const char* func;
      void const* sendBuff;
      void* recvBuff;
      std::size_t count;
      int root;
      const char* datatype;
      std::uint8_t nChannels;
      std::uint8_t nWarps;
      const char* algo;
      const char* proto;
    } coll;
    struct {
      const char* func;
      void* buff;
      const char* datatype;
      std::size_t count;
      int peer;
      std::uint8_t nChannels;
    } p2p;
  };
};
struct EventV5 {
  std::uint64_t type;
  void* parent;
  int rank;
  decltype(EventV4::coll) coll;
};
template <class Init, class Event>
struct Plugin {
  const char* name;
  Init* init;
  int (*start)(void*, void**, Event*);
  int (*stop)(void*);
  int (*state)(void*, int, void*);
  int (*finalize)(void*);
};

template <class Event>
Event all_reduce() {
  Event event;
  std::memset(&event, 0xee, sizeof(event));  // NCCL leaves what it does not use as it is
  event.type = 1 << 1;
  event.rank = 1;
  event.coll = {7, "AllReduce", nullptr, nullptr, 1000, 0, "ncclBfloat16", 12, 16, "NVLS", "SIMPLE"};
  return event;
}

int profile_v4() {
  void* library = open_library("NCCL_PROFILER_PLUGIN");
  using Init = int(void**, int*, const char*, std::uint64_t, int, int, int, void (*)());
  auto* plugin = static_cast<Plugin<Init, EventV4>*>(dlsym(library, "ncclProfiler_v4"));
  void *context = nullptr, *handle = &context;
  int mask = -1;
  if (plugin->init(&context, &mask, nullptr, 0xabcd, 1, 2, 1, nullptr) != 0 || mask != 6) return 1;
  auto event = all_reduce<EventV4>();
  if (plugin->start(context, &handle, &event) != 0 || handle != nullptr) return 2;
  event.type = 1 << 2;
  event.p2p = {"Send", nullptr, "ncclFloat32", 50, 0, 2};
  plugin->start(context, &handle, &event);
  event.type = 1 << 6;  // a kernel's channel: not asked for
  plugin->start(context, &handle, &event);
  return plugin->finalize(context) == 0 ? kFine : 4;
}

int profile_v5(const char* symbol) {
  void* library = open_library("NCCL_PROFILER_PLUGIN");
  using Init = int(void**, std::uint64_t, int*, const char*, int, int, int, void (*)());
  auto* plugin = static_cast<Plugin<Init, EventV5>*>(dlsym(library, symbol));
  void *context = nullptr, *handle = &context;
  int mask = -1;
  if (plugin->init(&context, 0xabcd, &mask, "world", 1, 2, 1, nullptr) != 0 || mask != 6) return 1;
  auto event = all_reduce<EventV5>();
  plugin->start(context, &handle, &event);
  plugin->state(nullptr, 0, nullptr);
  plugin->stop(nullptr);
  return plugin->finalize(context) == 0 && handle == nullptr ? kFine : 2;
}

int call_nccl() {
  ncclUniqueId id{};
  id.internal[0] = 42;
  ncclComm_t world = nullptr, part = nullptr;
  if (ncclCommInitRank(&world, 4, id, 2) != 0 || ncclCommSplit(world, 1, 0, &part, nullptr) != 0) return 1;
  float buffer[8] = {};
  if (ncclAllReduce(buffer, buffer, 8, 7, 0, world, nullptr) != 0) return 2;
  if (ncclBcast(buffer, 4, 7, 0, part, nullptr) != 0) return 3;  // by way of ncclBroadcast
  if (ncclSend(buffer, 2, 6, 3, world, nullptr) != 5) return 4;  // the fake's error comes through
  ncclCommDestroy(part);
  return fake_nccl_calls() == 3 ? kFine : 5;
}

int fork_and_call() {
  if (call_nccl() != kFine) return 1;
  const pid_t child = fork();
  if (child == 0) {
    call_nccl();  // not recorded, and nothing hangs
    std::exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return status == 0 ? kFine : 2;
}

int call_from_threads() {
  ncclComm_t world = nullptr;
  if (ncclCommInitRank(&world, 1, ncclUniqueId{}, 0) != 0) return 1;
  const auto work = [world] {
    for (int i = 0; i < 100; ++i) ncclAllReduce(nullptr, nullptr, 8, 7, 0, world, nullptr);
  };
  std::thread other(work);
  work();
  other.join();
  return kFine;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view mode = argc > 1 ? argv[1] : "";
  std::puts("hello");
  if (mode == "cuda") return start_cuda();
  if (mode == "kernels") return run_kernels(argv[2], "fake_cupti_run", argv[3], argc > 4);
  if (mode == "streams") return run_kernels(argv[2], "fake_cupti_run_streams", "0", false);
  if (mode == "profile-v4") return profile_v4();
  if (mode == "profile-v5") return profile_v5("ncclProfiler_v5");
  if (mode == "profile-v6") return profile_v5("ncclProfiler_v6");
  if (mode == "nccl") return call_nccl();
  if (mode == "fork") return fork_and_call();
  if (mode == "threads") return call_from_threads();
  if (mode == "killed") {
    call_nccl();
    sleep(2);  // the writer writes more often
    kill(getpid(), 9);
  }
  return kFine;
}
