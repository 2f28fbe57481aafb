// make_seeds CORPUS: inputs for the readers of what weft itself writes and of Nsight Systems, for which there are no
// files to begin with. CORPUS/READER/made-*.
#include <fmt/format.h>
#include <zstd.h>

#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "sim/error.h"
#include "tests/capture/capture_records.h"
#include "tests/traces/nsys_export.h"
#include "traces/capture/capture_import.h"
#include "traces/trace_file.h"

namespace {

using namespace weft;
namespace fs = std::filesystem;

constexpr const char* kAllReduce = "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)";

// A step with all that a record can say, and the counters of its kernels as a second pass has them.
void write_process(const fs::path& path, std::int32_t rank) {
  capture::TestProcess p(path, rank * 300.0);
  p.session(rank, 2);
  p.communicator(9, 2, static_cast<std::uint32_t>(rank));
  p.range(1, "step 3", 0, 400);
  p.range(2, "forward", 1, 100);
  p.range(3, "layer: one", 2, 50);
  p.range(4, "aten::mm, seq = 5", 3, 20);
  p.launch("gemm", 4, 10, 60, 7, 1);
  p.event_record(5, 2, 7);
  p.synchronization(5, 3, 8);
  p.call("cudaStreamWaitEvent", 7, 8, 3);
  p.launch(kAllReduce, 10, 70, 120, 8, 4);
  p.collective(9, "AllReduce", 100, 11);
  p.collective(9, "Send", 100, 130, capture::CollectiveSource::interposed_call, 1);
  p.launch("ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)", 131, 140, 150, 8, 5);
  p.graph(capture::RecordKind::graph_edge, 22, 21);
  p.graph(capture::RecordKind::graph_clone, 32, 22);
  p.graph(capture::RecordKind::graph_clone, 31, 21);
  p.call("cudaGraphLaunch", 160, 165, 6);
  p.kernel("a", 170, 180, 7, 6, 31);
  p.kernel("b", 180, 190, 9, 6, 32);
  p.call("cudaMemcpyAsync", 191, 193, 7);
  capture::CopyRecord copy;
  copy.gpu = {capture::at_us(195 + rank * 300.0), capture::at_us(199 + rank * 300.0), 0, 0, 7, 7, 0};
  copy.bytes = 4096;
  copy.kind = capture::CopyKind::host_to_device;
  p.file().put(copy);
  p.call("cudaDeviceSynchronize", 200, 210, 8);
  for (int sample = 0; sample < 4; ++sample)
    p.traffic(sample * 50.0, sample * 50.0 + 50, 1u << 20, 1u << 19, sample < 2 ? 15 : 3);
  for (const char* kernel : {"gemm", "a", "b"}) p.counters(kernel, 1u << 20, 0, 7);
  p.file().note("something to say");
  p.dropped(3);
  p.end();
}

// The records in all blocks of a capture file.
std::string records_of(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  file.seekg(sizeof(capture::kMagic));
  std::string out;
  for (capture::BlockHeader block; file.read(reinterpret_cast<char*>(&block), sizeof(block));) {
    std::string packed(block.packed_bytes, '\0'), plain(block.plain_bytes, '\0');
    file.read(packed.data(), static_cast<std::streamsize>(packed.size()));
    if (ZSTD_decompress(plain.data(), plain.size(), packed.data(), packed.size()) != plain.size())
      throw InputError(path.string(), "", "expected whole blocks");
    out += plain;
  }
  return out;
}

// The whole file, the records of one process, and those of two; and the trace that the two make.
void capture_seeds(const fs::path& captures, const fs::path& traces) {
  const fs::path run = captures / "run";
  fs::create_directories(run);
  for (const std::int32_t rank : {0, 1}) write_process(run / fmt::format("{}{}", rank, capture::kFileSuffix), rank);
  fs::create_directory_symlink(".", run / capture::kCountersFolder);
  std::vector<std::string> notes;
  write_trace(import_capture({run}, notes), traces / "made-captured.json");
  const std::string first = records_of(run / "0.weftcap"), second = records_of(run / "1.weftcap");
  std::ofstream(captures / "made-process", std::ios::binary) << first;
  std::ofstream(captures / "made-run", std::ios::binary) << first << second;
  fs::copy_file(run / "0.weftcap", captures / "made-file", fs::copy_options::overwrite_existing);
  fs::remove_all(run);
}

void nsys_seed(const fs::path& file) {
  fs::remove(file);
  weft::testing::NsysExport e(file);
  e.gpu(0, "NVIDIA H100 80GB HBM3");
  e.nccl();
  e.communicator(9, 2, 0);
  e.range("step 3", 0, 400);
  e.range("forward", 1, 100);
  e.registered_range("layer: one", 2, "50000");
  e.launch("gemm", 4, 10, 60, 7, 1);
  e.event_record(2, 7, "5");
  e.synchronization(2, 3, 8, "5");
  e.call("cudaStreamWaitEvent_v3020", 7, 8, 3);
  e.collective("ncclAllReduce", 9, 14, 9, 4096);
  e.launch(kAllReduce, 10, 70, 120, 8, 4);
  e.call("cudaGraphLaunch_v10000", 160, 165, 6);
  e.kernel("a", 170, 180, 7, 6, "31");
  e.call("cudaDeviceSynchronize_v3020", 200, 210, 8);
  e.synchronization(4, 8, -1, "NULL");
}

}  // namespace

int main(int /*argc*/, char* argv[]) {
  const fs::path corpus = argv[1];
  for (const char* reader : {"capture", "trace", "nsys"}) fs::create_directories(corpus / reader);
  capture_seeds(corpus / "capture", corpus / "trace");
  nsys_seed(corpus / "nsys" / "made.sqlite");
}
