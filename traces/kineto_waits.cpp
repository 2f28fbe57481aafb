#include "traces/kineto_waits.h"

#include <algorithm>
#include <map>
#include <optional>

#include "traces/kineto_launches.h"
#include "traces/kineto_names.h"
#include "traces/kineto_stream_waits.h"

namespace weft {
namespace {

class Waits {
 public:
  Waits(const KinetoHost& host, std::int64_t tolerance, std::vector<KinetoOp>& ops)
      : host_(host), tolerance_(tolerance), ops_(ops), launches_(ops) {}

  void fill() {
    if (host_.has_event_ids())
      recorded_stream_waits();
    else
      infer_stream_waits(host_, launches_, tolerance_, ops_);
    graph_waits();
    for (std::uint32_t i = 0; i < ops_.size(); ++i)
      if (ops_[i].waits_on_host()) host_wait(i);
    for (KinetoOp& op : ops_) {
      std::sort(op.waits.begin(), op.waits.end());
      op.waits.erase(std::unique(op.waits.begin(), op.waits.end()), op.waits.end());
    }
  }

 private:
  using Indices = KinetoLaunches::Indices;

  void add(std::uint32_t waiter, std::uint32_t waited) {
    if (waited < waiter) ops_[waiter].waits.push_back(waited);
  }

  // What an event was recorded behind. Where its stream is not told (-1), it is the one that the thread used last.
  [[nodiscard]] std::optional<std::uint32_t> recorded_behind(const KinetoEvent& sync, const KinetoEvent& record) const {
    return launches_.last_before(
        sync.waited_stream >= 0 ? launches_.stream(sync.waited_stream) : launches_.thread(record.thread), record.start);
  }

  void recorded_stream_waits() {
    for (const KinetoEvent* call : host_.calls()) {
      if (host_call(call->name) != HostCall::stream_wait_event) continue;
      const KinetoEvent* sync = host_.synchronization(call->correlation);
      const KinetoEvent* record = sync ? host_.call(sync->waited_record) : nullptr;
      if (!record || sync->stream < 0) continue;
      const auto waited = recorded_behind(*sync, *record);
      const auto waiter = launches_.first_after(launches_.stream(sync->stream), call->start);
      if (waited && waiter) add(*waiter, *waited);
    }
  }

  // One call launches all nodes of a CUDA graph, and its edges are not recorded. Around its collectives they follow
  // from when nodes ran: a collective waits for what had ended on other streams, and what began as it ended waited for
  // it.
  void graph_waits() {
    std::map<const KinetoEvent*, std::map<std::int64_t, Indices>> launched;  // by call and stream
    for (const auto& [id, list] : launches_.streams())
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

  void host_wait(std::uint32_t index) {
    const KinetoOp& op = ops_[index];
    const KinetoEvent* call = op.call;
    const auto ended = [&](std::uint32_t i) { return ops_[i].end <= op.end + tolerance_; };
    if (op.blocking_copy) {
      // Issued by the call itself, or, where clocks differ, a little before it.
      for (auto i = launches_.issued_by(launches_.thread(call->thread), call->start + 1);
           i != launches_.thread(call->thread).begin();)
        if (ops_[*--i].call == call) {
          add(index, *i);
          return;
        }
      return;
    }
    const KinetoEvent* sync = host_.synchronization(call->correlation);
    switch (host_call(call->name)) {
      case HostCall::device_synchronize:
        for (const auto& [id, list] : launches_.streams())
          if (const auto last = launches_.last_before(list, call->start); last && ended(*last)) add(index, *last);
        return;
      case HostCall::stream_synchronize:
        if (sync && sync->stream >= 0) {
          if (const auto last = launches_.last_before(launches_.stream(sync->stream), call->start);
              last && ended(*last))
            add(index, *last);
          return;
        }
        if (const auto last = launches_.last_before(launches_.thread(call->thread), call->start); last && ended(*last))
          add(index, *last);
        return;
      case HostCall::event_synchronize:
        if (sync && sync->waited_record >= 0) {
          const KinetoEvent* record = host_.call(sync->waited_record);
          if (!record) return;
          if (const auto last = recorded_behind(*sync, *record); last && ended(*last)) add(index, *last);
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
    for (const auto& [id, list] : launches_.streams()) {
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
  KinetoLaunches launches_;
};

}  // namespace

void fill_waits(const KinetoHost& host, std::int64_t tolerance, std::vector<KinetoOp>& ops) {
  Waits(host, tolerance, ops).fill();
}

}  // namespace weft
