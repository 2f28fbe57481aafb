#include "traces/kineto_host.h"

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "sim/error.h"
#include "traces/kineto_names.h"

namespace weft {
namespace {

bool is_host(KinetoCategory c) {
  return c == KinetoCategory::runtime || c == KinetoCategory::cpu_operator || c == KinetoCategory::annotation ||
         c == KinetoCategory::module;
}

bool is_communication(const KinetoEvent& e) {
  return e.name.starts_with("nccl:") || e.name.starts_with("c10d::") || e.name == "record_param_comms" ||
         is_symmetric_memory(e.name);
}

// What an annotation or operator says about the phase of all that is inside it.
std::optional<TrainingPhase> marked_phase(const KinetoEvent& e) {
  if (e.category == KinetoCategory::cpu_operator) {
    if (is_autograd_node(e.name)) return TrainingPhase::backward;
    return e.sequence >= 0 ? std::optional(TrainingPhase::forward) : std::nullopt;
  }
  if (e.category != KinetoCategory::annotation || is_communication(e)) return std::nullopt;
  return named_phase(e.name);
}

// Parents before children: earlier start, later end, annotation before operator before call.
bool encloses_first(const KinetoEvent* a, const KinetoEvent* b) {
  if (a->start != b->start) return a->start < b->start;
  if ((a->category == KinetoCategory::runtime) != (b->category == KinetoCategory::runtime))
    return b->category == KinetoCategory::runtime;
  if (a->duration != b->duration) return a->duration > b->duration;
  if (a->category != b->category)
    return a->category == KinetoCategory::annotation || b->category == KinetoCategory::runtime;
  return a->number < b->number;
}

bool starts_before(const KinetoEvent* a, const KinetoEvent* b) {
  return a->start != b->start ? a->start < b->start : a->number < b->number;
}

// The first of those with this correlation.
const KinetoEvent* find(const std::vector<std::pair<std::int64_t, const KinetoEvent*>>& sorted,
                        std::int64_t correlation) {
  const auto at = std::lower_bound(sorted.begin(), sorted.end(), correlation,
                                   [](const auto& entry, std::int64_t c) { return entry.first < c; });
  return at == sorted.end() || at->first != correlation ? nullptr : at->second;
}

// The outermost one says it, as recomputation inside the backward pass is part of it. But closures run inside of an
// optimizer's step (L-BFGS; PyTorch Lightning's automatic optimization): the whole forward and backward pass.
bool says_more(TrainingPhase phase, const HostContext& context) {
  return !context.marked || (context.phase == TrainingPhase::optimizer && phase != TrainingPhase::optimizer);
}

void see(const KinetoEvent& e, HostContext& context) {
  if (e.name.starts_with(kAutogradNode)) {
    context.op = e.name.substr(kAutogradNode.size());
  } else if (e.category == KinetoCategory::cpu_operator && context.op.empty()) {
    context.op = e.name;
  } else if (e.category == KinetoCategory::module) {
    context.layer = e.name.substr(std::string_view("nn.Module: ").size());
  }
  const bool sized = e.inputs && std::any_of(e.inputs->begin(), e.inputs->end(),
                                             [](const OperatorInput& i) { return !i.sizes.empty(); });
  if (sized) context.sized = &e;
  if (const auto phase = marked_phase(e); phase && says_more(*phase, context)) {
    context.phase = *phase;
    context.marked = true;
  }
  if (!is_communication(e)) return;
  if (context.communication_scope < 0) context.communication_scope = static_cast<std::int64_t>(e.number);
  if (e.name == "record_param_comms" && e.collective) context.parameters = e.collective;
  if (e.name.starts_with("nccl:") && e.collective) context.tensors = e.collective;
  if (e.name != "record_param_comms") context.collective = e.name;
}

// The innermost of `open`, a send or receive, which may be launched later.
void add_pending(const std::vector<const KinetoEvent*>& open, PeerBatch& pending) {
  const KinetoEvent& e = *open.back();
  const auto scope = std::find_if(open.begin(), open.end(), [&](const KinetoEvent* around) {
    return is_communication(*around) && around->end() >= e.end();
  });
  pending.members.push_back(e.collective);
  pending.scopes.push_back(static_cast<std::int64_t>((*scope)->number));
}

// Whether a thread with autograd's nodes is one of its own. PyTorch runs the nodes of leaves on the CPU on the thread
// that called backward(), where the forward pass has operators outside of nodes that have sequence numbers.
bool only_backward(const std::vector<const KinetoEvent*>& sorted) {
  std::int64_t node_end = std::numeric_limits<std::int64_t>::min();
  for (const KinetoEvent* e : sorted) {
    if (e->category != KinetoCategory::cpu_operator) continue;
    if (is_autograd_node(e->name)) {
      node_end = std::max(node_end, e->end());
    } else if (e->sequence >= 0 && e->start >= node_end) {
      return false;
    }
  }
  return true;
}

}  // namespace

KinetoHost::KinetoHost(const KinetoFile& file) {
  std::map<std::int64_t, std::vector<const KinetoEvent*>> threads;
  std::set<std::int64_t> autograd_threads;
  std::unordered_set<std::int64_t> peer_launches;  // correlations of kernels that send and receive, or may (RCCL's)
  for (const KinetoEvent& e : file.events) {
    if (e.category == KinetoCategory::kernel && e.correlation >= 0 && is_collective_kernel(e.name) &&
        collective_kind(e.name).value_or(CollectiveKind::all_to_all) == CollectiveKind::all_to_all)
      peer_launches.insert(e.correlation);
    if (e.category == KinetoCategory::synchronization) {
      synchronizations_.emplace_back(e.correlation, &e);
      has_event_ids_ = has_event_ids_ || e.waited_record >= 0;
    }
    if (!is_host(e.category)) continue;
    threads[e.thread].push_back(&e);
    if (e.category == KinetoCategory::runtime) calls_.push_back(&e);
    if (e.category == KinetoCategory::cpu_operator && is_autograd_node(e.name)) autograd_threads.insert(e.thread);
    if (e.category == KinetoCategory::annotation) {
      if (e.name.starts_with("ProfilerStep#")) iterations_.push_back({std::string(e.name), e.start, e.end()});
      optimizer_marked_ = optimizer_marked_ || marked_phase(e) == TrainingPhase::optimizer;
    }
  }
  for (const KinetoEvent* call : calls_) by_correlation_.emplace_back(call->correlation, call);
  for (ByCorrelation* list : {&by_correlation_, &synchronizations_})
    std::stable_sort(list->begin(), list->end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  std::sort(calls_.begin(), calls_.end(), starts_before);
  contexts_.resize(calls_.size());
  std::sort(iterations_.begin(), iterations_.end(),
            [](const KinetoIteration& a, const KinetoIteration& b) { return a.start < b.start; });
  for (auto& [thread, events] : threads) {
    std::sort(events.begin(), events.end(), encloses_first);
    find_context(events,
                 file.autograd_threads.contains(thread) || (autograd_threads.contains(thread) && only_backward(events)),
                 peer_launches);
  }
  place_unmarked_calls();
}

const KinetoEvent* KinetoHost::call(std::int64_t correlation) const {
  return correlation < 0 ? nullptr : find(by_correlation_, correlation);
}

const KinetoEvent* KinetoHost::synchronization(std::int64_t correlation) const {
  return find(synchronizations_, correlation);
}

std::size_t KinetoHost::index_of(const KinetoEvent* call) const {
  const auto at = std::lower_bound(calls_.begin(), calls_.end(), call, starts_before);
  WEFT_CHECK(at != calls_.end() && *at == call, std::string(call->name));
  return static_cast<std::size_t>(at - calls_.begin());
}

void KinetoHost::find_context(const std::vector<const KinetoEvent*>& thread_events, bool autograd_thread,
                              const std::unordered_set<std::int64_t>& peer_launches) {
  std::vector<const KinetoEvent*> open;
  PeerBatch pending;
  for (const KinetoEvent* e : thread_events) {
    // In files of whole microseconds a child may start where its parent starts and neither last.
    while (!open.empty() && open.back()->end() <= e->start && open.back()->start != e->start) open.pop_back();
    if (e->category != KinetoCategory::runtime) {
      open.push_back(e);
      if (e->collective && e->collective->peer) add_pending(open, pending);
      continue;
    }
    HostContext context;
    for (const KinetoEvent* around : open)
      if (around->end() > e->start || around->start == e->start) see(*around, context);
    if (!context.marked && autograd_thread) {
      context.phase = TrainingPhase::backward;
      context.marked = true;
    }
    if (peer_launches.contains(e->correlation)) {
      if (!context.parameters && !pending.members.empty()) {
        context.batch = &batches_.emplace_back(std::move(pending));
        // This one lasts until PyTorch drops what it returned, so what follows is not in it.
        std::erase_if(open, [](const KinetoEvent* around) { return around->name == "nccl:coalesced"; });
      }
      pending = {};
    }
    contexts_[index_of(e)] = context;
  }
}

// Files without annotations and sequence numbers: within an iteration, what stands before the end of backward is
// forward, and what follows it is the optimizer unless that is marked.
void KinetoHost::place_unmarked_calls() {
  std::vector<KinetoIteration> spans = iterations_;
  if (spans.empty())
    spans.push_back({"", std::numeric_limits<std::int64_t>::min(), std::numeric_limits<std::int64_t>::max()});
  for (std::size_t i = 0; i < spans.size(); ++i) {
    const std::int64_t end = i + 1 < spans.size() ? spans[i + 1].start : spans[i].end;
    const auto later = [](std::int64_t t, const KinetoEvent* e) { return t <= e->start; };
    const auto first = std::upper_bound(calls_.begin(), calls_.end(), spans[i].start, later);
    const auto begin = static_cast<std::size_t>(first - calls_.begin());
    std::int64_t last_backward = std::numeric_limits<std::int64_t>::min();
    for (std::size_t c = begin; c < calls_.size() && calls_[c]->start < end; ++c)
      if (contexts_[c].phase == TrainingPhase::backward) last_backward = calls_[c]->start;
    if (last_backward == std::numeric_limits<std::int64_t>::min()) continue;
    for (std::size_t c = begin; c < calls_.size() && calls_[c]->start < end; ++c) {
      HostContext& context = contexts_[c];
      if (context.marked) continue;
      if (calls_[c]->start < last_backward)
        context.phase = TrainingPhase::forward;
      else if (!optimizer_marked_)
        context.phase = TrainingPhase::optimizer;
    }
  }
}

}  // namespace weft
