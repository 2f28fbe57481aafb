#include "traces/capture/inject/counters.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "traces/capture/inject/counter_metrics.h"
#include "traces/capture/inject/cupti_library.h"
#include "traces/capture/inject/range_profiler.h"
#include "traces/capture/inject/session.h"

namespace weft::capture {

namespace {

constexpr const char* kNotCounted = "its kernels are not counted";

struct CountedLaunch {
  CountersRecord record;
  std::string name;
};

// One CUDA context. `launching` is held from the beginning of a launch to its end: what another thread launches would
// be measured in its place, and a collective of another thread replayed.
struct Context {
  std::mutex launching;
  std::uint32_t device = 0;
  std::unique_ptr<RangeProfiler> profiler;
  bool told = false;
  std::vector<CountedLaunch> measured;  // since the profiler was started
};

std::mutex contexts_mutex;
std::map<CUcontext, std::unique_ptr<Context>> contexts;
thread_local int depth = 0;                 // calls within calls: CUPTI's own
thread_local Context* launching = nullptr;  // what this thread holds

void tell(Context& context) {
  const auto& error = context.profiler->error();
  if (!error || context.told || context.profiler->usable()) return;
  context.told = true;
  char what[128];
  std::snprintf(what, sizeof(what), "CUPTI counts nothing on device %u: %s", context.device, error->call);
  tell_failure(what, error->result, kNotCounted);
}

void tell_missing(const RangeProfiler& profiler) {
  static std::once_flag once;
  if (profiler.metrics().missing.empty()) return;
  std::call_once(once, [&] { tell_user(missing_counters(profiler.chip(), profiler.metrics().missing).c_str()); });
}

Context* context_of(CUcontext handle) {
  const std::lock_guard lock(contexts_mutex);
  std::unique_ptr<Context>& context = contexts[handle];
  if (context) return context.get();
  context = std::make_unique<Context>();
  cupti()->cuptiGetDeviceId(handle, &context->device);
  context->profiler = std::make_unique<RangeProfiler>(handle, context->device);
  tell(*context);
  tell_missing(*context->profiler);
  return context.get();
}

void put(const CountedLaunch& launch) {
  if (Writer* writer = session()) writer->put_waiting(launch.record, launch.name);
}

// Ends what launches of the context began.
void finish(Context& context) {
  const std::vector<std::optional<KernelCounters>> counters = context.profiler->stop();
  for (std::size_t launch = 0; launch < counters.size(); ++launch) {
    CountersRecord& record = context.measured[launch].record;
    for (std::size_t i = 0; counters[launch] && i < kKernelCounterCount; ++i) {
      const std::optional<std::int64_t>& value = counters[launch]->values[i];
      if (!value) continue;
      record.known |= 1u << i;
      record.values[i] = static_cast<std::uint64_t>(*value);
    }
    put(context.measured[launch]);
  }
  context.measured.clear();
  tell(context);
}

struct Launch {
  std::array<unsigned, 3> grid{}, block{};
  CUstream stream = nullptr;
};

// nullopt: of a graph, or of a kind that weft does not know.
std::optional<Launch> kernel_launch(CUpti_CallbackId call, const void* parameters) {
  switch (call) {
    case CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel:
    case CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel_ptsz: {
      const auto& p = *static_cast<const cuLaunchKernel_params*>(parameters);
      return Launch{{p.gridDimX, p.gridDimY, p.gridDimZ}, {p.blockDimX, p.blockDimY, p.blockDimZ}, p.hStream};
    }
    case CUPTI_DRIVER_TRACE_CBID_cuLaunchCooperativeKernel:
    case CUPTI_DRIVER_TRACE_CBID_cuLaunchCooperativeKernel_ptsz: {
      const auto& p = *static_cast<const cuLaunchCooperativeKernel_params*>(parameters);
      return Launch{{p.gridDimX, p.gridDimY, p.gridDimZ}, {p.blockDimX, p.blockDimY, p.blockDimZ}, p.hStream};
    }
    case CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx:
    case CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx_ptsz: {
      const CUlaunchConfig* p = static_cast<const cuLaunchKernelEx_params*>(parameters)->config;
      if (p == nullptr) return std::nullopt;
      return Launch{{p->gridDimX, p->gridDimY, p->gridDimZ}, {p->blockDimX, p->blockDimY, p->blockDimZ}, p->hStream};
    }
    default:
      return std::nullopt;
  }
}

void begin(CUpti_CallbackId call, const CUpti_CallbackData& data) {
  const std::optional<Launch> launch = kernel_launch(call, data.functionParams);
  if (launch && is_capturing(launch->stream)) return;  // the profiler's own calls would end the capture
  Context& context = *context_of(data.context);
  context.launching.lock();
  launching = &context;
  const bool counted = launch && data.symbolName != nullptr && !waits_for_others(data.symbolName);
  if (!counted || context.profiler->full()) finish(context);
  if (!counted) return;
  CountedLaunch counting;
  counting.name = demangled(data.symbolName).substr(0, kMaxText);
  counting.record.device = context.device;
  std::copy(launch->grid.begin(), launch->grid.end(), counting.record.grid);
  std::copy(launch->block.begin(), launch->block.end(), counting.record.block);
  if (context.profiler->add_launch()) {
    context.measured.push_back(std::move(counting));
    return;
  }
  put(counting);  // without values: it has a place among its equals
  tell(context);
}

void end() {
  if (launching == nullptr) return;
  Context& context = *launching;
  launching = nullptr;
  context.launching.unlock();
}

// While one lives, launches of this thread are not the program's.
struct OwnCalls {
  OwnCalls() { ++depth; }
  ~OwnCalls() { --depth; }
  OwnCalls(const OwnCalls&) = delete;
  OwnCalls& operator=(const OwnCalls&) = delete;
};

void forget_context(CUcontext handle) {
  const OwnCalls own;
  const std::lock_guard lock(contexts_mutex);
  const auto found = contexts.find(handle);
  if (found == contexts.end()) return;
  {
    const std::lock_guard held(found->second->launching);
    finish(*found->second);
  }
  contexts.erase(found);
}

// With the process CUDA ends: nothing is given back.
void finish_all() {
  const OwnCalls own;
  const std::lock_guard lock(contexts_mutex);
  for (auto& [handle, context] : contexts) {
    const std::lock_guard held(context->launching);
    finish(*context);
  }
}

void CUPTIAPI called(void*, CUpti_CallbackDomain domain, CUpti_CallbackId call, const void* data) {
  if (session() == nullptr) return;
  if (domain == CUPTI_CB_DOMAIN_RESOURCE) return forget_context(static_cast<const CUpti_ResourceData*>(data)->context);
  const auto& about = *static_cast<const CUpti_CallbackData*>(data);
  if (about.callbackSite == CUPTI_API_ENTER) {
    if (depth++ == 0) begin(call, about);
  } else if (--depth == 0) {
    end();
  }
}

}  // namespace

bool counters_asked() {
  const char* value = std::getenv(kCountersVariable);
  return value != nullptr && *value != 0;
}

void start_counters() {
  if (!has_range_profiler()) {
    tell_user(
        "this CUPTI has no range profiler (cuptiRangeProfilerEnable). The program runs on, its kernels are not "
        "counted");
    return;
  }
  const std::optional<CUpti_SubscriberHandle> subscriber = subscribe(called, kNotCounted);
  if (!subscriber) return;
  at_session_end(finish_all);
  cupti()->cuptiEnableCallback(1, *subscriber, CUPTI_CB_DOMAIN_RESOURCE, CUPTI_CBID_RESOURCE_CONTEXT_DESTROY_STARTING);
  for_each_call([&](CUpti_CallbackDomain domain, CUpti_CallbackId call, std::string_view name) {
    const bool launches = name.starts_with("cuLaunch") || name.starts_with("cuGraphLaunch");
    if (domain == CUPTI_CB_DOMAIN_DRIVER_API && launches && !name.starts_with("cuLaunchHostFunc"))
      cupti()->cuptiEnableCallback(1, *subscriber, domain, call);
  });
}

}  // namespace weft::capture
