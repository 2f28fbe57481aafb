// The operations of a Kineto trace by stream and by the thread that launched them, in order of issue.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "traces/kineto_waits.h"

namespace weft {

class KinetoLaunches {
 public:
  using Indices = std::vector<std::uint32_t>;  // into the operations

  // `ops` must outlive this, and their order stay.
  explicit KinetoLaunches(const std::vector<KinetoOp>& ops);

  [[nodiscard]] const std::map<std::int64_t, Indices>& streams() const { return streams_; }
  [[nodiscard]] const Indices& stream(std::int64_t id) const { return of(streams_, id); }
  [[nodiscard]] const Indices& thread(std::int64_t id) const { return of(threads_, id); }
  // Whether it has kernels, all of them collectives.
  [[nodiscard]] bool communicates(std::int64_t stream) const { return communication_streams_.contains(stream); }
  // What a thread launched on streams that do not, and the first of these on each stream.
  [[nodiscard]] const Indices& computing(std::int64_t thread) const { return of(computing_, thread); }
  [[nodiscard]] const std::map<std::int64_t, std::uint32_t>& first_use(std::int64_t thread) const;

  // Behind those of `list` that were issued before `time`.
  [[nodiscard]] Indices::const_iterator issued_by(const Indices& list, std::int64_t time) const;
  [[nodiscard]] std::optional<std::uint32_t> last_before(const Indices& list, std::int64_t time) const;
  [[nodiscard]] std::optional<std::uint32_t> first_after(const Indices& list, std::int64_t time) const;

 private:
  static const Indices& of(const std::map<std::int64_t, Indices>& lists, std::int64_t id);

  const std::vector<KinetoOp>& ops_;
  std::map<std::int64_t, Indices> streams_, threads_, computing_;
  std::map<std::int64_t, std::map<std::int64_t, std::uint32_t>> first_use_;  // by thread and stream
  std::set<std::int64_t> communication_streams_;
};

}  // namespace weft
