// Buffers of records as CUPTI fills them, made by hand.
#ifdef WEFT_CUPTI_LIBRARY
#include "traces/capture/inject/activity_converter.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "tests/traces/temporary_file.h"
#include "traces/capture/capture_file.h"

namespace weft {
namespace {

using capture::ActivityConverter;
using capture::RecordKind;

CUptiResult call_name(CUpti_CallbackDomain domain, std::uint32_t call, const char** name) {
  if (domain == CUPTI_CB_DOMAIN_RUNTIME_API && call == 211) return *name = "cudaLaunchKernel_v7000", CUPTI_SUCCESS;
  if (domain == CUPTI_CB_DOMAIN_RUNTIME_API && call == 16) return *name = "cudaGetDevice_v3020", CUPTI_SUCCESS;
  if (domain == CUPTI_CB_DOMAIN_DRIVER_API && call == 276) return *name = "cuMemcpyHtoD_v2", CUPTI_SUCCESS;
  return CUPTI_ERROR_INVALID_PARAMETER;
}

// A buffer of CUPTI's: records behind each other, each aligned to 8 bytes.
class Buffer {
 public:
  template <class Activity>
  void add(const Activity& activity) {
    const std::size_t at = words_.size() * 8;
    words_.resize((at + sizeof(Activity) + 7) / 8);
    std::memcpy(reinterpret_cast<char*>(words_.data()) + at, &activity, sizeof(Activity));
    places_.push_back(at);
  }
  [[nodiscard]] std::uint8_t* data() { return reinterpret_cast<std::uint8_t*>(words_.data()); }
  [[nodiscard]] std::size_t bytes() const { return words_.size() * 8; }
  [[nodiscard]] const std::vector<std::size_t>& places() const { return places_; }

 private:
  std::vector<std::uint64_t> words_;
  std::vector<std::size_t> places_;
};

CUpti_ActivityKernel10 kernel() {
  CUpti_ActivityKernel10 k{};
  k.kind = CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL;
  k.registersPerThread = 128;
  k.start = 2000;
  k.end = 5000;
  k.deviceId = 1;
  k.streamId = 13;
  k.gridX = 10, k.gridY = 20, k.gridZ = 30;
  k.blockX = 256, k.blockY = k.blockZ = 1;
  k.clusterX = 2, k.clusterY = k.clusterZ = 1;
  k.staticSharedMemory = 1024;
  k.dynamicSharedMemory = 65536;
  k.correlationId = 77;
  k.graphNodeId = 4711;
  k.name = "sm90_xmma_gemm";
  return k;
}

Buffer all_kinds() {
  Buffer buffer;
  buffer.add(kernel());
  CUpti_ActivityKernel10 unfinished = kernel();
  unfinished.start = unfinished.end = 0;  // of a forced flush
  buffer.add(unfinished);
  CUpti_ActivityMemcpy6 copy{};
  copy.kind = CUPTI_ACTIVITY_KIND_MEMCPY;
  copy.copyKind = CUPTI_ACTIVITY_MEMCPY_KIND_HTOD;
  copy.srcKind = CUPTI_ACTIVITY_MEMORY_KIND_PAGEABLE;
  copy.dstKind = CUPTI_ACTIVITY_MEMORY_KIND_DEVICE;
  copy.bytes = 4096;
  copy.start = 10, copy.end = 20;
  copy.streamId = 7;
  buffer.add(copy);
  CUpti_ActivityMemcpyPtoP4 peer{};
  peer.kind = CUPTI_ACTIVITY_KIND_MEMCPY2;
  peer.copyKind = CUPTI_ACTIVITY_MEMCPY_KIND_PTOP;
  peer.bytes = 8192;
  peer.start = 10, peer.end = 20;
  buffer.add(peer);
  CUpti_ActivityMemset4 memset{};
  memset.kind = CUPTI_ACTIVITY_KIND_MEMSET;
  memset.bytes = 512;
  memset.start = 30, memset.end = 31;
  buffer.add(memset);
  CUpti_ActivityAPI call{};
  call.kind = CUPTI_ACTIVITY_KIND_RUNTIME;
  call.cbid = 211;
  call.start = 100, call.end = 200;
  call.threadId = 9;
  call.correlationId = 77;
  buffer.add(call);
  call.cbid = 16;  // does not matter
  buffer.add(call);
  call.kind = CUPTI_ACTIVITY_KIND_DRIVER;
  call.cbid = 276;
  buffer.add(call);
  CUpti_ActivityMarker2 marker{};
  marker.kind = CUPTI_ACTIVITY_KIND_MARKER;
  marker.flags = CUPTI_ACTIVITY_FLAG_MARKER_START;
  marker.timestamp = 1;
  marker.id = 3;
  marker.objectId.pt.threadId = 9;
  marker.name = "forward";
  buffer.add(marker);
  marker.flags = CUPTI_ACTIVITY_FLAG_MARKER_END;
  marker.timestamp = 2;
  marker.name = nullptr;
  buffer.add(marker);
  CUpti_ActivityDevice5 device{};
  device.kind = CUPTI_ACTIVITY_KIND_DEVICE;
  device.id = 1;
  device.name = "NVIDIA H100";
  device.numMultiprocessors = 132;
  device.globalMemorySize = std::uint64_t{80} << 30;
  device.coreClockRate = 1'980'000;
  device.computeCapabilityMajor = 9;
  buffer.add(device);
  CUpti_ActivityEnvironment clock{};
  clock.kind = CUPTI_ACTIVITY_KIND_ENVIRONMENT;
  clock.environmentKind = CUPTI_ACTIVITY_ENVIRONMENT_SPEED;
  clock.timestamp = 12;
  clock.data.speed.smClock = 1755;
  buffer.add(clock);
  return buffer;
}

void expect_all_kinds(const std::filesystem::path& path) {
  CaptureFile file(path);
  const auto next = [&](RecordKind kind) {
    ASSERT_TRUE(file.next());
    ASSERT_EQ(file.kind(), kind);
  };
  next(RecordKind::kernel);
  const auto k = file.as<capture::KernelRecord>();
  EXPECT_EQ(file.text(k.gpu.name), "sm90_xmma_gemm");
  EXPECT_EQ(k.gpu.start, 2000u);
  EXPECT_EQ(k.gpu.end, 5000u);
  EXPECT_EQ(k.gpu.device, 1u);
  EXPECT_EQ(k.gpu.stream, 13u);
  EXPECT_EQ(k.gpu.correlation, 77u);
  EXPECT_EQ(k.gpu.graph_node, 4711u);
  EXPECT_EQ(k.grid[2], 30u);
  EXPECT_EQ(k.block[0], 256u);
  EXPECT_EQ(k.cluster[0], 2u);
  EXPECT_EQ(k.registers_per_thread, 128u);
  EXPECT_EQ(k.static_shared_bytes, 1024u);
  EXPECT_EQ(k.dynamic_shared_bytes, 65536u);
  next(RecordKind::copy);
  EXPECT_EQ(file.as<capture::CopyRecord>().kind, capture::CopyKind::host_to_device);
  EXPECT_EQ(file.as<capture::CopyRecord>().from, capture::MemoryKind::pageable);
  EXPECT_EQ(file.as<capture::CopyRecord>().bytes, 4096u);
  next(RecordKind::copy);
  EXPECT_EQ(file.as<capture::CopyRecord>().kind, capture::CopyKind::peer_to_peer);
  next(RecordKind::memset);
  EXPECT_EQ(file.as<capture::MemsetRecord>().bytes, 512u);
  next(RecordKind::call);
  EXPECT_EQ(file.text(file.as<capture::CallRecord>().name), "cudaLaunchKernel");
  EXPECT_EQ(file.as<capture::CallRecord>().thread, 9u);
  next(RecordKind::call);
  EXPECT_EQ(file.text(file.as<capture::CallRecord>().name), "cuMemcpyHtoD_v2");
  next(RecordKind::range);
  EXPECT_EQ(file.text(file.as<capture::RangeRecord>().name), "forward");
  EXPECT_EQ(file.as<capture::RangeRecord>().is_start, 1u);
  next(RecordKind::range);
  EXPECT_EQ(file.as<capture::RangeRecord>().is_start, 0u);
  next(RecordKind::device);
  EXPECT_EQ(file.as<capture::DeviceRecord>().compute_units, 132u);
  EXPECT_EQ(file.as<capture::DeviceRecord>().compute_capability, 90u);
  next(RecordKind::clock);
  EXPECT_EQ(file.as<capture::ClockRecord>().core_MHz, 1755u);
  EXPECT_FALSE(file.next());
}

TEST(ActivityConverter, TakesEveryKindOfRecord) {
  const testing::TemporaryFolder folder;
  Buffer buffer = all_kinds();
  {
    capture::RecordFile file(::open(folder.file("a").c_str(), O_WRONLY | O_CREAT, 0666));
    ActivityConverter converter(call_name);
    for (const std::size_t at : buffer.places())
      converter.convert(*reinterpret_cast<CUpti_Activity*>(buffer.data() + at), file);
  }
  expect_all_kinds(folder.file("a"));
}

// CUPTI itself goes through the buffer: it needs no driver for that.
TEST(ActivityConverter, AgreesWithCuptiOnWhereRecordsLie) {
  void* cupti = ::dlopen(WEFT_CUPTI_LIBRARY, RTLD_NOW);
  if (cupti == nullptr) GTEST_SKIP() << ::dlerror();
  auto* next = reinterpret_cast<decltype(&cuptiActivityGetNextRecord)>(::dlsym(cupti, "cuptiActivityGetNextRecord"));
  const testing::TemporaryFolder folder;
  Buffer buffer = all_kinds();
  std::size_t records = 0;
  {
    capture::RecordFile file(::open(folder.file("a").c_str(), O_WRONLY | O_CREAT, 0666));
    ActivityConverter converter(call_name);
    CUpti_Activity* activity = nullptr;
    while (next(buffer.data(), buffer.bytes(), &activity) == CUPTI_SUCCESS) {
      converter.convert(*activity, file);
      ++records;
    }
  }
  EXPECT_EQ(records, buffer.places().size());
  expect_all_kinds(folder.file("a"));
}

TEST(ActivityConverter, KnowsWhichCallsMatter) {
  for (const char* name : {"cudaLaunchKernelExC_v11060", "cuGraphLaunch", "cudaMemcpyAsync_v3020",
                           "cudaStreamWaitEvent_v3020", "cudaEventRecord_v3020", "cudaDeviceSynchronize_v3020"})
    EXPECT_TRUE(capture::call_matters(name)) << name;
  for (const char* name : {"cudaGetDevice_v3020", "cudaEventQuery_v3020", "cudaStreamIsCapturing_v10000"})
    EXPECT_FALSE(capture::call_matters(name)) << name;
}

}  // namespace
}  // namespace weft
#endif
