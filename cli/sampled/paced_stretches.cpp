// Stretches in which each operation goes at the pace that its company leaves it.
#include <algorithm>
#include <cmath>

#include "cli/sampled/sampled_timeline.h"

namespace weft {

bool SampledTimeline::pace_stretch(OpId first) {
  if (!pacer_ || !pacer_->covers(first)) return false;
  pacing_ = paced_begins_ = true;
  ++paced_stretches_;
  return true;
}

void SampledTimeline::begin_paced(OpId op, SubCycle now) {
  paced_begins_ = false;
  std::erase(waiting_, op.value);
  ++running_;
  frontend_.times(op).start = frontend_.times(op).placed = now;
  const Regime& alone = pacer_->alone(op);
  const bool collective = program_->ops[op.value].kind == ProgramOpKind::collective;
  paced_.begin(op, collective, static_cast<double>(alone.operations.front().duration), static_cast<double>(now));
  expect_paced(now);
}

void SampledTimeline::expect_paced(SubCycle now) {
  ++expected_;
  const std::optional<double> next = paced_.next_end();
  if (next) push(std::max(now, static_cast<SubCycle>(std::ceil(*next))), EventKind::paced_ends, expected_);
}

void SampledTimeline::end_paced(SubCycle now) {
  while (const auto ended = paced_.end_one(static_cast<double>(now))) {
    const std::uint32_t op = ended->op.value;
    const Regime& alone = pacer_->alone(ended->op);
    const SubCycle start = frontend_.times(ended->op).start;
    done_[op] = alone.operations.front();
    done_[op].duration = now - start;
    if (program_->ops[op].kind == ProgramOpKind::kernel) done_[op].late = last_of(apart_);
    done_[op].ledger = ended->ledger;
    if (program_->ops[op].kind == ProgramOpKind::kernel) paced_together_ += ended->together;
    add_sums(alone);
    // A collective's blocks are there until it ends.
    const auto usual = static_cast<double>(alone.operations.front().duration);
    if (usual > 0) {
      sum_.unit_seconds_communication +=
          (static_cast<double>(now - start) / usual - 1) * alone.unit_seconds_communication;
    }
    spread_traffic(alone, start, now);
    end(ended->op, now);
  }
  expect_paced(now);
}

// Once all of it has ended.
void SampledTimeline::learn_from_stretch() {
  const auto [first, end] = std::exchange(seen_, {0, 0});
  if (first == end || !pacer_) return;
  const auto seconds = [&](SubCycle t) { return to_seconds(clock_.to_time(t)); };
  std::vector<StretchPacer::Ran> ran;
  for (std::uint32_t op = first; op < end; ++op) {
    const OpTimes& times = frontend_.all_times()[op];
    if (program_->ops[op].kind == ProgramOpKind::host_wait || times.end < 0) continue;
    ran.push_back({OpId{op}, seconds(times.start), seconds(times.end - done_[op].early), done_[op].ledger});
  }
  pacer_->learn(ran);
}

}  // namespace weft
