// The host's side of a Kineto trace: for every runtime call, the operator, annotations and phase it was made in.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include "traces/kineto_events.h"

namespace weft {

// Sends and receives of a thread that one kernel does together (batch_isend_irecv), launched behind them all.
struct PeerBatch {
  std::vector<const KinetoCollective*> members;  // of their record_param_comms
  std::vector<std::int64_t> scopes;              // the communication_scope of each
};

// Where a runtime call stands, by nesting in time on its thread.
struct HostContext {
  std::string_view op;     // outermost operator: "aten::conv2d"; in backward the autograd node: "ConvolutionBackward0"
  std::string_view layer;  // innermost module, where modules were recorded
  TrainingPhase phase = TrainingPhase::other;
  bool marked = false;                           // the phase comes from a marker, not from its place among the others
  std::int64_t communication_scope = -1;         // the event number of the outermost communication operator around it
  const KinetoCollective* parameters = nullptr;  // of the record_param_comms around it
  const PeerBatch* batch = nullptr;              // what it launches, where no record_param_comms is around it
  const KinetoCollective* tensors = nullptr;     // of the "nccl:..." annotation around it
  const KinetoEvent* sized = nullptr;            // the innermost operator with recorded sizes of its inputs
  std::string_view collective;                   // the name of a communication operator that tells the kind
};

struct KinetoIteration {
  std::string name;
  std::int64_t start = 0;
  std::int64_t end = 0;
};

class KinetoHost {
 public:
  // `file` must outlive this.
  explicit KinetoHost(const KinetoFile& file);

  // Runtime calls by time of start.
  [[nodiscard]] const std::vector<const KinetoEvent*>& calls() const { return calls_; }
  // The runtime call with this correlation; nullptr when it was not recorded.
  [[nodiscard]] const KinetoEvent* call(std::int64_t correlation) const;
  // The cuda_sync record with this correlation; nullptr when there is none.
  [[nodiscard]] const KinetoEvent* synchronization(std::int64_t correlation) const;
  // Whether any of these tells which record of an event is waited for.
  [[nodiscard]] bool has_event_ids() const { return has_event_ids_; }
  [[nodiscard]] const HostContext& context(const KinetoEvent* call) const { return contexts_[index_of(call)]; }
  // "ProfilerStep#N" by start; empty when the run was not stepped.
  [[nodiscard]] const std::vector<KinetoIteration>& iterations() const { return iterations_; }

 private:
  using ByCorrelation = std::vector<std::pair<std::int64_t, const KinetoEvent*>>;  // sorted

  [[nodiscard]] std::size_t index_of(const KinetoEvent* call) const;
  void find_context(const std::vector<const KinetoEvent*>& thread_events, bool autograd_thread,
                    const std::unordered_set<std::int64_t>& peer_launches);
  void place_unmarked_calls();

  std::vector<const KinetoEvent*> calls_;
  std::vector<HostContext> contexts_;  // of `calls_`
  std::deque<PeerBatch> batches_;
  ByCorrelation by_correlation_;
  ByCorrelation synchronizations_;
  std::vector<KinetoIteration> iterations_;
  bool has_event_ids_ = false;
  bool optimizer_marked_ = false;
};

}  // namespace weft
