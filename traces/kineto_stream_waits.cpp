#include "traces/kineto_stream_waits.h"

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "traces/kineto_names.h"

namespace weft {
namespace {

constexpr std::int64_t kEver = std::numeric_limits<std::int64_t>::min();

// A cudaStreamWaitEvent, of which nothing tells the stream or the event.
struct StreamWait {
  const KinetoEvent* call;
  const KinetoEvent* before;           // the one before it on its thread; or nullptr
  std::uint32_t waiter;                // the operation that waits
  std::optional<std::uint32_t> other;  // for which it waits already; a collective is behind that one
};

class StreamWaits {
 public:
  StreamWaits(const KinetoHost& host, const KinetoLaunches& launches, std::int64_t tolerance,
              std::vector<KinetoOp>& ops)
      : host_(host), launches_(launches), tolerance_(tolerance), ops_(ops) {}

  void infer() {
    const std::set<std::int64_t> launching = see_collectives();
    std::map<std::int64_t, const KinetoEvent*> before;  // by thread
    std::vector<StreamWait> explained;                  // by another stream that computes, so perhaps of no collective
    const auto wait_for_what_is_left = [&] {
      for (const StreamWait& wait : explained) wait_for_collective(wait);
      explained.clear();
    };
    auto step = host_.iterations().begin();
    std::map<std::int64_t, HostCall> call_before;  // by thread
    for (const KinetoEvent* call : host_.calls()) {
      const HostCall what = host_call(call->name);
      const bool of_a_stream = std::exchange(call_before[call->thread], what) == HostCall::event_record;
      if (what != HostCall::stream_wait_event) continue;
      for (; step != host_.iterations().end() && step->start <= call->start; ++step) {
        wait_for_what_is_left();
        // What nothing waited for in a whole step, nothing does.
        std::erase_if(unwaited_, [&](std::uint32_t c) { return ops_[c].issued < step_start_; });
        step_start_ = step->start;
      }
      const std::int64_t scope = host_.context(call).communication_scope;
      if (scope >= 0 && launching.contains(scope)) continue;
      const auto waiter = issued_behind(*call);
      if (!waiter) continue;
      StreamWait wait{call, std::exchange(before[call->thread], call), *waiter, other_stream(*waiter, *call)};
      if (wait.other) {
        add(*waiter, *wait.other);
        waited_of_side_[{ops_[*waiter].gpu->stream, ops_[*wait.other].gpu->stream}] = *wait.other;
      }
      if (!wait.other && of_a_stream) wait_for_side_stream(*waiter, *call);
      if (wait_for_collective(wait) || !wait.other) continue;
      wait.other.reset();
      explained.push_back(wait);
    }
    wait_for_what_is_left();
  }

 private:
  using Indices = KinetoLaunches::Indices;

  void add(std::uint32_t waiter, std::uint32_t waited) {
    if (waited < waiter) ops_[waiter].waits.push_back(waited);
  }

  // All are waited for by nothing yet, and wait for their input. Returns the communication scopes that launch.
  std::set<std::int64_t> see_collectives() {
    std::set<std::int64_t> launching;
    for (std::uint32_t i = 0; i < ops_.size(); ++i) {
      const KinetoOp& op = ops_[i];
      if (!op.collective || !op.call || !launches_.communicates(op.gpu->stream)) continue;
      const HostContext& context = host_.context(op.call);
      launching.insert(context.communication_scope);
      if (context.batch) launching.insert(context.batch->scopes.begin(), context.batch->scopes.end());
      unwaited_.push_back(i);
      const auto input = issued_before(*op.call);
      if (input && ops_[*input].end <= op.start + tolerance_) add(i, *input);
    }
    return launching;
  }

  // The last operation that computes before a call on its thread's last stream, and the first behind it on all that the
  // thread used. Threads share streams: what DDP waits for at the end of autograd's thread is used by the optimizer on
  // the main one.
  [[nodiscard]] std::optional<std::uint32_t> issued_before(const KinetoEvent& call) const {
    const auto own = launches_.last_before(launches_.computing(call.thread), call.start);
    return own ? launches_.last_before(launches_.stream(ops_[*own].gpu->stream), call.start) : std::nullopt;
  }
  [[nodiscard]] std::optional<std::uint32_t> issued_behind(const KinetoEvent& call) const {
    std::optional<std::uint32_t> behind = launches_.first_after(launches_.computing(call.thread), call.start);
    for (const auto& [stream, first] : launches_.first_use(call.thread)) {
      if (ops_[first].issued >= call.start) continue;
      const auto next = launches_.first_after(launches_.stream(stream), call.start);
      if (next && (!behind || *next < *behind)) behind = next;
    }
    return behind;
  }

  // Of streams that compute, as of FSDP's copies into and out of its buffers: what the thread had launched last, if
  // that is of another stream and had ended. Not where a record says that the event is from before the profile.
  [[nodiscard]] std::optional<std::uint32_t> other_stream(std::uint32_t waiter, const KinetoEvent& call) const {
    if (host_.synchronization(call.correlation) != nullptr) return std::nullopt;
    const auto before = launches_.last_before(launches_.computing(call.thread), call.start);
    if (!before || ops_[*before].gpu->stream == ops_[waiter].gpu->stream || !ended(*before, waiter))
      return std::nullopt;
    return before;
  }

  // Of a stream as a whole (Stream::wait_stream records an event there and waits for it at once, which Work::wait does
  // not), where the thread had gone on with the waiter's own stream since: as of a prefetcher's copies, which a step
  // waits for only when the next one begins. Of several streams the one that it used last, and what it had no wait for.
  void wait_for_side_stream(std::uint32_t waiter, const KinetoEvent& call) {
    if (host_.synchronization(call.correlation) != nullptr) return;
    const std::int64_t own = ops_[waiter].gpu->stream;
    std::optional<std::uint32_t> latest;
    for (const auto& [stream, first] : launches_.first_use(call.thread)) {
      const auto last = launches_.last_before(launches_.stream(stream), call.start);
      if (stream == own || !last || ops_[*last].call == nullptr || ops_[*last].call->thread != call.thread) continue;
      const auto known = waited_of_side_.find({own, stream});
      if ((known == waited_of_side_.end() || known->second < *last) && (!latest || *latest < *last)) latest = last;
    }
    if (!latest || !ended(*latest, waiter)) return;
    add(waiter, *latest);
    waited_of_side_[{own, ops_[*latest].gpu->stream}] = *latest;
  }

  [[nodiscard]] bool ended(std::uint32_t waited, std::uint32_t waiter) const {
    return ops_[waited].end <= ops_[waiter].start + tolerance_;
  }

  // Finds the collective that is waited for, if there is one.
  bool wait_for_collective(const StreamWait& wait) {
    const auto launched =
        std::ranges::partition_point(unwaited_, [&](std::uint32_t c) { return ops_[c].issued < wait.call->start; });
    auto waited = launched;
    for (auto c = unwaited_.begin(); c != launched; ++c) {
      if (held(wait.waiter, *c) && (waited == launched || ops_[*c].end > ops_[*waited].end)) waited = c;
    }
    const auto plausible = [&](std::uint32_t c) {
      return ended(c, wait.waiter) && (!wait.other || c > *wait.other) && c >= waited_for_[like(c)] &&
             !is_of_another_stream(wait, c);
    };
    // Most likely by who launched it, in the same step.
    for (const auto& [same_thread, since] : {std::pair{true, step_start_}, {true, kEver}, {false, kEver}}) {
      if (waited != launched) break;
      // Clang 14 takes no reference to a structured binding.
      waited = std::find_if(unwaited_.begin(), launched, [&, own = same_thread, from = since](std::uint32_t c) {
        return (!own || ops_[c].call->thread == wait.call->thread) && ops_[c].issued >= from && plausible(c);
      });
    }
    if (waited == launched) return false;
    add(wait.waiter, *waited);
    std::uint32_t& latest = waited_for_[like(*waited)];
    latest = std::max(latest, *waited);
    unwaited_.erase(waited);
    return true;
  }

  // Collectives that are waited for in their order: of one kernel and thread.
  [[nodiscard]] std::pair<std::int64_t, std::string_view> like(std::uint32_t collective) const {
    return {ops_[collective].call->thread, ops_[collective].gpu->name};
  }

  // A collective that is waited for as soon as it is launched (FSDP's prefetches, on a stream of theirs), where it did
  // not wait for what the waiter's stream was doing. Behind such a call there may be another one, of that stream.
  [[nodiscard]] bool is_of_another_stream(const StreamWait& wait, std::uint32_t collective) const {
    if (launches_.last_before(launches_.thread(wait.call->thread), wait.call->start) != collective ||
        (wait.before && wait.before->start > ops_[collective].issued))
      return false;
    const auto before = launches_.last_before(launches_.stream(ops_[wait.waiter].gpu->stream), ops_[collective].issued);
    return before && !ended(*before, collective);
  }

  // Whether the operation began as the collective ended, and not because the one before it on its stream did.
  [[nodiscard]] bool held(std::uint32_t waiter, std::uint32_t collective) const {
    const std::int64_t end = ops_[collective].end;
    if (!ended(collective, waiter) || ops_[waiter].start - end > kAsItEndsNs || ops_[waiter].issued > end) return false;
    const auto before = launches_.last_before(launches_.stream(ops_[waiter].gpu->stream), ops_[waiter].issued);
    return !before || ops_[*before].end < end;
  }

  const KinetoHost& host_;
  const KinetoLaunches& launches_;
  std::int64_t tolerance_;
  std::vector<KinetoOp>& ops_;
  std::map<std::pair<std::int64_t, std::int64_t>, std::uint32_t> waited_of_side_;  // by who waits and for which stream
  Indices unwaited_;                                                               // collectives, by issue
  std::int64_t step_start_ = kEver;
  std::map<std::pair<std::int64_t, std::string_view>, std::uint32_t> waited_for_;  // the latest, by like()
};

}  // namespace

void infer_stream_waits(const KinetoHost& host, const KinetoLaunches& launches, std::int64_t tolerance,
                        std::vector<KinetoOp>& ops) {
  StreamWaits(host, launches, tolerance, ops).infer();
}

}  // namespace weft
