#include "traces/kineto_names.h"
#include "traces/kineto_waits.h"

namespace weft {
namespace {

bool is_synchronize(HostCall c) {
  return c == HostCall::device_synchronize || c == HostCall::stream_synchronize || c == HostCall::event_synchronize;
}

}  // namespace

std::vector<KinetoOp> host_waits(const KinetoHost& host, const std::vector<KinetoOp>& gpu_ops, std::int64_t tolerance) {
  std::vector<KinetoOp> waits;
  const auto wait_in = [&](const KinetoEvent* call) {
    KinetoOp op;
    op.call = call;
    op.issued = op.start = call->start;
    op.end = call->end();
    return op;
  };
  for (const KinetoEvent* call : host.calls())
    if (is_synchronize(host_call(call->name))) waits.push_back(wait_in(call));
  for (const KinetoOp& op : gpu_ops) {
    if (!op.call || op.gpu->category != KinetoCategory::copy) continue;
    // Pageable host memory makes an asynchronous copy synchronous (CUDA Runtime API, "API synchronization behavior").
    const bool may_block =
        host_call(op.call->name) == HostCall::blocking_copy || op.gpu->name.find("Pageable") != std::string::npos;
    if (!may_block || op.call->end() + tolerance < op.end) continue;
    KinetoOp wait = wait_in(op.call);
    wait.blocking_copy = true;
    waits.push_back(wait);
  }
  return waits;
}

}  // namespace weft
