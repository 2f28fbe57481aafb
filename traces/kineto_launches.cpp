#include "traces/kineto_launches.h"

#include <algorithm>

namespace weft {

KinetoLaunches::KinetoLaunches(const std::vector<KinetoOp>& ops) : ops_(ops) {
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
  for (const auto& [thread, launched] : threads_) {
    for (const std::uint32_t i : launched) {
      if (communicates(ops_[i].gpu->stream)) continue;
      computing_[thread].push_back(i);
      first_use_[thread].try_emplace(ops_[i].gpu->stream, i);
    }
  }
}

const std::map<std::int64_t, std::uint32_t>& KinetoLaunches::first_use(std::int64_t thread) const {
  static const std::map<std::int64_t, std::uint32_t> none;
  const auto found = first_use_.find(thread);
  return found == first_use_.end() ? none : found->second;
}

KinetoLaunches::Indices::const_iterator KinetoLaunches::issued_by(const Indices& list, std::int64_t time) const {
  return std::partition_point(list.begin(), list.end(), [&](std::uint32_t i) { return ops_[i].issued < time; });
}

std::optional<std::uint32_t> KinetoLaunches::last_before(const Indices& list, std::int64_t time) const {
  const auto later = issued_by(list, time);
  return later == list.begin() ? std::nullopt : std::optional(*(later - 1));
}

std::optional<std::uint32_t> KinetoLaunches::first_after(const Indices& list, std::int64_t time) const {
  const auto at = issued_by(list, time);
  return at == list.end() ? std::nullopt : std::optional(*at);
}

const KinetoLaunches::Indices& KinetoLaunches::of(const std::map<std::int64_t, Indices>& lists, std::int64_t id) {
  static const Indices none;
  const auto found = lists.find(id);
  return found == lists.end() ? none : found->second;
}

}  // namespace weft
