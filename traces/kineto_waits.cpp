#include "traces/kineto_waits.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "traces/kineto_names.h"

namespace weft {
namespace {

// From the end of what an operation of another stream waits for to its start.
constexpr std::int64_t kAsItEndsNs = 10'000;

bool is_synchronize(HostCall c) {
  return c == HostCall::device_synchronize || c == HostCall::stream_synchronize || c == HostCall::event_synchronize;
}

class Waits {
 public:
  Waits(const KinetoHost& host, std::int64_t tolerance, std::vector<KinetoOp>& ops)
      : host_(host), tolerance_(tolerance), ops_(ops) {
    std::set<std::int64_t> mixed;
    for (std::uint32_t i = 0; i < ops_.size(); ++i) {
      if (ops_[i].waits_on_host()) continue;
      streams_[ops_[i].gpu->stream].push_back(i);
      if (ops_[i].call) threads_[ops_[i].call->thread].push_back(i);
      if (ops_[i].collective)
        communication_streams_.insert(ops_[i].gpu->stream);
      else if (ops_[i].gpu->category == KinetoCategory::kernel)
        mixed.insert(ops_[i].gpu->stream);
    }
    for (const std::int64_t stream : mixed) communication_streams_.erase(stream);
  }

  void fill() {
    if (host_.has_event_ids())
      recorded_stream_waits();
    else
      inferred_stream_waits();
    graph_waits();
    for (std::uint32_t i = 0; i < ops_.size(); ++i)
      if (ops_[i].waits_on_host()) host_wait(i);
    for (KinetoOp& op : ops_) {
      std::sort(op.waits.begin(), op.waits.end());
      op.waits.erase(std::unique(op.waits.begin(), op.waits.end()), op.waits.end());
    }
  }

 private:
  using Indices = std::vector<std::uint32_t>;

  // Behind those of `list` that were issued before `time`.
  [[nodiscard]] Indices::const_iterator issued_by(const Indices& list, std::int64_t time) const {
    return std::partition_point(list.begin(), list.end(), [&](std::uint32_t i) { return ops_[i].issued < time; });
  }
  [[nodiscard]] std::optional<std::uint32_t> last_before(const Indices& list, std::int64_t time) const {
    const auto later = issued_by(list, time);
    return later == list.begin() ? std::nullopt : std::optional(*(later - 1));
  }
  [[nodiscard]] std::optional<std::uint32_t> first_after(const Indices& list, std::int64_t time) const {
    const auto at = issued_by(list, time);
    return at == list.end() ? std::nullopt : std::optional(*at);
  }
  [[nodiscard]] const Indices& stream(std::int64_t id) const {
    static const Indices none;
    const auto found = streams_.find(id);
    return found == streams_.end() ? none : found->second;
  }
  void add(std::uint32_t waiter, std::uint32_t waited) {
    if (waited < waiter) ops_[waiter].waits.push_back(waited);
  }

  void recorded_stream_waits() {
    for (const KinetoEvent* call : host_.calls()) {
      if (host_call(call->name) != HostCall::stream_wait_event) continue;
      const KinetoEvent* sync = host_.synchronization(call->correlation);
      const KinetoEvent* record = sync ? host_.call(sync->waited_record) : nullptr;
      if (!record || sync->stream < 0) continue;
      const auto waited = last_before(stream(sync->waited_stream), record->start);
      const auto waiter = first_after(stream(sync->stream), call->start);
      if (waited && waiter) add(*waiter, *waited);
    }
  }

  void inferred_stream_waits() {
    std::set<std::int64_t> launching_scopes;
    std::vector<std::uint32_t> unwaited;
    for (std::uint32_t i = 0; i < ops_.size(); ++i) {
      const KinetoOp& op = ops_[i];
      if (!op.collective || !op.call || !communication_streams_.contains(op.gpu->stream)) continue;
      const HostContext& context = host_.context(op.call);
      launching_scopes.insert(context.communication_scope);
      if (context.batch) launching_scopes.insert(context.batch->scopes.begin(), context.batch->scopes.end());
      unwaited.push_back(i);
      if (const auto input = issued_before(*op.call)) {
        if (ops_[*input].end <= op.start + tolerance_) add(i, *input);
      }
    }
    for (const KinetoEvent* call : host_.calls()) {
      if (host_call(call->name) != HostCall::stream_wait_event) continue;
      const std::int64_t scope = host_.context(call).communication_scope;
      if (scope >= 0 && launching_scopes.contains(scope)) continue;
      const auto waiter = issued_behind(*call);
      if (!waiter) continue;
      wait_for_other_stream(*waiter, *call);
      const auto ended = [&](std::uint32_t c) {
        return ops_[c].issued < call->start && ops_[c].end <= ops_[*waiter].start + tolerance_;
      };
      auto waited = unwaited.end();
      for (auto c = unwaited.begin(); c != unwaited.end(); ++c) {
        if (ended(*c) && held(*waiter, *c) && (waited == unwaited.end() || ops_[*c].end > ops_[*waited].end))
          waited = c;
      }
      if (waited == unwaited.end()) waited = std::find_if(unwaited.begin(), unwaited.end(), ended);
      if (waited == unwaited.end()) continue;
      add(*waiter, *waited);
      unwaited.erase(waited);
    }
  }

  // Of streams that compute, as of FSDP's copies into and out of its buffers: it waits for what the thread had launched
  // last, if that is of another stream and had ended. Not where a record says that the event is from before the
  // profile.
  void wait_for_other_stream(std::uint32_t waiter, const KinetoEvent& call) {
    if (host_.synchronization(call.correlation) != nullptr) return;
    const auto before = last_before(compute_launches(call.thread), call.start);
    if (!before || ops_[*before].gpu->stream == ops_[waiter].gpu->stream) return;
    if (ops_[*before].end <= ops_[waiter].start + tolerance_) add(waiter, *before);
  }

  // One call launches all nodes of a CUDA graph, and its edges are not recorded. Around its collectives they follow
  // from when nodes ran: a collective waits for what had ended on other streams, and what began as it ended waited for
  // it.
  void graph_waits() {
    std::map<const KinetoEvent*, std::map<std::int64_t, Indices>> launched;  // by call and stream
    for (const auto& [id, list] : streams_)
      for (const std::uint32_t i : list)
        if (ops_[i].call) launched[ops_[i].call][id].push_back(i);
    for (const auto& [call, nodes] : launched) {
      for (const auto& [own, list] : nodes)
        for (const std::uint32_t c : list)
          for (const auto& [other, beside] : nodes)
            if (ops_[c].collective && other != own) collective_in_graph(c, beside);
    }
  }

  // `beside`: nodes of another stream of the graph, which run one after another.
  void collective_in_graph(std::uint32_t collective, const Indices& beside) {
    const auto began = std::ranges::partition_point(
        beside, [&](std::uint32_t i) { return ops_[i].end <= ops_[collective].start + tolerance_; });
    if (began != beside.begin()) add(collective, *(began - 1));
    const std::int64_t end = ops_[collective].end;
    const auto next =
        std::ranges::partition_point(beside, [&](std::uint32_t i) { return ops_[i].start < end - tolerance_; });
    if (next == beside.end() || ops_[*next].start - end > kAsItEndsNs) return;
    if (next == beside.begin() || ops_[*(next - 1)].end < end) add(*next, collective);
  }

  // Whether the operation began as the collective ended, and not because the one before it on its stream did.
  [[nodiscard]] bool held(std::uint32_t waiter, std::uint32_t collective) const {
    const std::int64_t end = ops_[collective].end;
    if (ops_[waiter].start - end > kAsItEndsNs || ops_[waiter].issued > end) return false;
    const auto before = last_before(stream(ops_[waiter].gpu->stream), ops_[waiter].issued);
    return !before || ops_[*before].end < end;
  }

  // What a thread launched on streams that compute.
  const Indices& compute_launches(std::int64_t thread) {
    const auto [entry, added] = compute_launches_.try_emplace(thread);
    if (added) {
      for (const std::uint32_t i : threads_[thread])
        if (!communication_streams_.contains(ops_[i].gpu->stream)) entry->second.push_back(i);
    }
    return entry->second;
  }

  // The last of them before a call, and the first behind it. Threads share streams: what DDP waits for at the end of
  // autograd's thread is used by the optimizer on the main one. The call is taken to be of its thread's last stream.
  [[nodiscard]] std::optional<std::uint32_t> issued_before(const KinetoEvent& call) {
    const auto own = last_before(compute_launches(call.thread), call.start);
    return own ? last_before(stream(ops_[*own].gpu->stream), call.start) : std::nullopt;
  }
  [[nodiscard]] std::optional<std::uint32_t> issued_behind(const KinetoEvent& call) {
    const auto own = first_after(compute_launches(call.thread), call.start);
    const auto before = last_before(compute_launches(call.thread), call.start);
    if (!before) return own;
    const auto next = first_after(stream(ops_[*before].gpu->stream), call.start);
    return own && next ? std::min(own, next) : own ? own : next;
  }

  void host_wait(std::uint32_t index) {
    const KinetoOp& op = ops_[index];
    const KinetoEvent* call = op.call;
    const auto ended = [&](std::uint32_t i) { return ops_[i].end <= op.end + tolerance_; };
    if (op.blocking_copy) {
      // Issued by the call itself, or, where clocks differ, a little before it.
      for (auto i = issued_by(threads_[call->thread], call->start + 1); i != threads_[call->thread].begin();)
        if (ops_[*--i].call == call) {
          add(index, *i);
          return;
        }
      return;
    }
    const KinetoEvent* sync = host_.synchronization(call->correlation);
    switch (host_call(call->name)) {
      case HostCall::device_synchronize:
        for (const auto& [id, list] : streams_)
          if (const auto last = last_before(list, call->start); last && ended(*last)) add(index, *last);
        return;
      case HostCall::stream_synchronize:
        if (sync && sync->stream >= 0) {
          if (const auto last = last_before(stream(sync->stream), call->start); last && ended(*last)) add(index, *last);
          return;
        }
        if (const auto last = last_before(threads_[call->thread], call->start); last && ended(*last)) add(index, *last);
        return;
      case HostCall::event_synchronize:
        if (sync && sync->waited_record >= 0) {
          const KinetoEvent* record = host_.call(sync->waited_record);
          if (!record) return;
          if (const auto last = last_before(stream(sync->waited_stream), record->start); last && ended(*last))
            add(index, *last);
          return;
        }
        wait_for_latest_end(index);
        return;
      default:
        return;
    }
  }

  // No id says which event the host waited for: the operation that ended last while it waited, if any did.
  void wait_for_latest_end(std::uint32_t index) {
    std::optional<std::uint32_t> latest;
    for (const auto& [id, list] : streams_) {
      const auto issued = std::partition_point(list.begin(), list.end(),
                                               [&](std::uint32_t i) { return ops_[i].issued < ops_[index].issued; });
      // A stream ends its operations in order.
      for (auto i = issued; i != list.begin();) {
        --i;
        if (ops_[*i].end < ops_[index].start) break;
        if (ops_[*i].end <= ops_[index].end + tolerance_ && (!latest || ops_[*i].end > ops_[*latest].end)) latest = *i;
      }
    }
    if (latest) add(index, *latest);
  }

  const KinetoHost& host_;
  std::int64_t tolerance_;
  std::vector<KinetoOp>& ops_;
  std::map<std::int64_t, Indices> streams_;
  std::map<std::int64_t, Indices> threads_;
  std::map<std::int64_t, Indices> compute_launches_;
  std::set<std::int64_t> communication_streams_;
};

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

void fill_waits(const KinetoHost& host, std::int64_t tolerance, std::vector<KinetoOp>& ops) {
  Waits(host, tolerance, ops).fill();
}

}  // namespace weft
