// A program operation by operation: what each takes is known from where the same was simulated in detail, or is
// simulated now. Host, streams and launches go their way as in the detailed model; it is the same code.
#pragma once

#include <queue>
#include <unordered_map>
#include <vector>

#include "cli/sampled/gpus_apart.h"
#include "cli/sampled/network_loads.h"
#include "cli/sampled/paced_company.h"
#include "cli/sampled/regime_key.h"
#include "cli/sampled/regime_lab.h"
#include "cli/sampled/regime_memory.h"
#include "cli/sampled/second_samples.h"
#include "cli/sampled/stretch_pacer.h"

namespace weft {

class SampledTimeline {
 public:
  // All outlive it.
  SampledTimeline(const RunConfig& config, const Program& program, bool communicates, RegimeMemory& memory,
                  RegimeLab& lab);

  // To the end. `progress` sees the share of operations that have ended; may be empty.
  void run(const std::function<void(double)>& progress);

  [[nodiscard]] const std::vector<OpTimes>& times() const { return frontend_.all_times(); }
  // By so much GPUs are through an operation before its end, that of the last one, in the mean.
  [[nodiscard]] SubCycle early(std::size_t op) const { return done_[op].early; }
  // By so much the last GPU is through later, while this one has gone on.
  [[nodiscard]] SubCycle late(std::size_t op) const { return done_[op].late; }
  // By GPU, of a collective: how much later than here it began and ended there. Empty: at the same time.
  [[nodiscard]] const std::vector<SubCycle>& began_later(std::size_t op) const { return done_[op].began; }
  [[nodiscard]] const std::vector<SubCycle>& ended_later(std::size_t op) const { return done_[op].ended; }
  [[nodiscard]] const KernelLedger& ledger(std::size_t op) const { return done_[op].ledger; }
  [[nodiscard]] const ClockDomain& clock() const { return clock_; }
  [[nodiscard]] SubCycle end() const { return end_; }
  // What all stretches did together, of one GPU. Its operations, links and switches are left empty.
  [[nodiscard]] const Regime& sum() const { return sum_; }
  [[nodiscard]] const NetworkLoads& network() const { return network_; }
  // How far the end may be off, as a share of it: what second samples differ by together, and twice what they and what
  // was left out scatter.
  [[nodiscard]] double error_estimate() const;
  // Stretches that were not simulated, since all that ran in them had been seen in company.
  [[nodiscard]] std::int64_t paced_stretches() const { return paced_stretches_; }
  // The traffic of a stretch is spread evenly over it.
  [[nodiscard]] const HbmOverTime& hbm() const { return hbm_; }

 private:
  enum class EventKind { host_step, arrives, starts, ends, paced_ends };
  struct Event {
    SubCycle at = 0;
    std::uint64_t number = 0;
    EventKind kind = EventKind::host_step;
    std::uint32_t op = 0;  // of paced_ends: when it was expected, by `expected_`
    bool operator>(const Event& other) const { return at != other.at ? at > other.at : number > other.number; }
  };

  void push(SubCycle at, EventKind kind, std::uint32_t op = 0);
  void handle(const Event& event, SubCycle now);
  void host_step(SubCycle now);
  void make_ready(OpId op, SubCycle now);
  void end(OpId op, SubCycle now);
  void take_stretch(SubCycle now);
  [[nodiscard]] HostState state_at(SubCycle now) const;
  [[nodiscard]] SubCycle company_from(OpId first, SubCycle now);
  [[nodiscard]] SubCycle arrival_of(std::uint32_t op, SubCycle now) const;
  const Regime* known_stretch(const HostState& state, SubCycle now);
  const Regime* known_but_for_one_stream(const RegimeKeys::Stretch& stretch, const HostState& state, std::uint32_t end,
                                         SubCycle now);
  [[nodiscard]] std::string key_up_to(const RegimeKeys::Stretch& stretch, const HostState& state, std::uint32_t end,
                                      std::uint32_t open_from, SubCycle now) const;
  const Regime& simulated_stretch(const HostState& state, SubCycle now, bool by_itself);
  void apply(const Regime& regime, std::uint32_t first, SubCycle now);
  void add_sums(const Regime& regime);
  // paced_stretches.cpp: whose operations' ends change with their company.
  [[nodiscard]] bool pace_stretch(OpId first);
  void begin_paced(OpId op, SubCycle now);
  void end_paced(SubCycle now);
  void expect_paced(SubCycle now);
  void learn_from_stretch();
  void spread_traffic(const Regime& regime, SubCycle from, SubCycle to);

  const Program* program_;
  bool communicates_;
  ClockDomain clock_;
  Frontend frontend_;
  RegimeKeys keys_;
  SecondSamples second_samples_;
  RegimeMemory* memory_;
  RegimeLab* lab_;
  SubCycle device_latency_, graph_node_, host_to_device_;
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
  std::uint64_t pushed_ = 0;
  std::int64_t long_message_;            // of so many bytes; of a row of collectives, none that the L2 holds
  std::vector<Regime::Operation> done_;  // by op; a duration of -1: not known yet
  std::vector<SubCycle> arrivals_;       // by op, -1: not issued yet
  std::vector<bool> has_arrived_;
  std::vector<std::vector<std::uint32_t>> streams_;  // operations of each
  std::vector<std::size_t> heads_;                   // by stream, the first that has not ended
  std::optional<SubCycle> next_host_step_;
  std::vector<OpId> ready_;
  std::vector<std::uint32_t> waiting_;  // operations that are ready, without a duration
  std::uint32_t running_ = 0;           // with one, and not through
  std::optional<StretchPacer> pacer_;   // none: nothing communicates
  PacedCompany paced_;
  bool pacing_ = false;
  bool paced_begins_ = false;   // its first operation is about to
  std::uint32_t expected_ = 0;  // times that an end was expected in this way
  std::int64_t paced_stretches_ = 0;
  double paced_together_ = 0;                           // time in company
  std::pair<std::uint32_t, std::uint32_t> seen_{0, 0};  // operations of a stretch in detail, to learn from
  Regime sum_;
  NetworkLoads network_;
  std::vector<double> uncertain_;  // of all uses of each regime together: they are off by the same
  std::unordered_map<const Regime*, std::size_t> uncertain_at_;
  HbmOverTime hbm_;
  std::vector<SubCycle> apart_;  // how far GPUs are by now (Regime)
  KnownBeginnings beginnings_;
  SubCycle end_ = 0;
};

}  // namespace weft
