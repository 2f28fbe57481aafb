// Waits between streams and of the host, from the calls and synchronisation records of a Kineto trace.
#pragma once

#include <string>
#include <vector>

#include "traces/kineto_events.h"
#include "traces/kineto_host.h"
#include "traces/trace.h"

namespace weft {

// An operation while it is imported: times of the file's clock in ns.
struct KinetoOp {
  const KinetoEvent* gpu = nullptr;   // nullptr: a host_wait
  const KinetoEvent* call = nullptr;  // the launch, or the call that waits; nullptr when it was not recorded
  bool blocking_copy = false;         // a host_wait on the copy launched by `call`
  std::int64_t issued = 0;
  std::int64_t start = 0;
  std::int64_t end = 0;
  bool collective = false;
  std::vector<std::uint32_t> waits;  // indices of earlier operations

  [[nodiscard]] bool waits_on_host() const { return gpu == nullptr; }
};

// Calls in which the host waits for the GPU: cudaDeviceSynchronize and the like, and copies that returned only after
// the copy had ended. Not yet with their waits.
[[nodiscard]] std::vector<KinetoOp> host_waits(const KinetoHost& host, const std::vector<KinetoOp>& gpu_ops,
                                               std::int64_t tolerance);

// Fills `waits` of `ops` (in order of issue). Where the file has cuda_sync records with event ids, they are used. Else:
// - a collective on a stream of its own waits for the last operation before it on the stream on which its thread last
//   launched (ProcessGroupNCCL makes its stream wait for the current one), if it started after that had ended;
// - a cudaStreamWaitEvent outside of communication operators (Work::wait) makes the next operation of its thread, or of
//   a stream that this has used, wait for a collective that nothing waited for yet and that had ended when it started:
//   the one as whose end it started, if there is one, else the earliest launched, rather by its thread and in its step.
//   Not where another stream explains the call and others may be of that collective, nor where it follows the
//   collective at once, which had not waited for that stream;
// - a host call waits for what the stream, or failing that its thread, had been given, as far as that had ended when
//   the call returned.
// A host_wait without known waits stays without.
void fill_waits(const KinetoHost& host, std::int64_t tolerance, std::vector<KinetoOp>& ops);

}  // namespace weft
