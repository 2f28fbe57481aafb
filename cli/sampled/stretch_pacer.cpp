#include "cli/sampled/stretch_pacer.h"

#include <algorithm>

#include "gpu_model/demand_size.h"

namespace weft {

namespace {

// Choices. Of the time that kernels beside collectives take by themselves, so much has to be known; what was together
// for less of its time tells little.
constexpr double kEnough = 0.75;
constexpr double kShareSeen = 0.2;
constexpr double kLeastLeft = 0.1;
constexpr double kSlowest = 20;
// Collectives are simulated by themselves only where that is so much less work than to simulate all together. A byte of
// a message is some seven of lines on each GPU (read, staged, sent, received, summed, written), of what a kernel asks
// for two fifths are left out in company. Chosen by the time that two sweeps take (docs/validation.md, Memory, sweeps
// and cost): they decide what is simulated, not what comes out.
constexpr double kWorth = 2;
constexpr double kKernelByte = 1.0 / 12;

double overlap(const StretchPacer::Ran& a, const StretchPacer::Ran& b) {
  return std::max(0.0, std::min(a.end, b.end) - std::max(a.begin, b.begin));
}

// `together` is a part of `took`: so many times longer it was then. None: too little to tell.
std::optional<double> times_longer(double took, double together, double alone) {
  const double left = alone - (took - together);
  if (alone <= 0 || together < kShareSeen * took || left < kLeastLeft * alone) return std::nullopt;
  return std::min(together / left, kSlowest);
}

// Collectives one after the other beside kernels, and nothing else. Of nothing but short messages each length has a
// rate of its own, so that what was seen is seldom of use.
bool is_of_one_row(const Program& program) {
  constexpr std::int64_t kLong = 2 << 20;
  std::optional<StreamId> stream;
  bool any_long = false;
  for (const ProgramOp& op : program.ops) {
    if (op.fused) return false;
    if (op.kind != ProgramOpKind::collective) continue;
    if (stream && *stream != op.stream) return false;
    stream = op.stream;
    any_long = any_long || op.collective.bytes.count() >= kLong;
  }
  return any_long;
}

}  // namespace

StretchPacer::StretchPacer(const RunConfig& config, const Program& program, RegimeKeys& company, RegimeMemory& memory,
                           RegimeLab& lab)
    : program_(&program),
      clock_(config.system.gpu.clock),
      quiet_(config, program, false),
      company_(&company),
      memory_(&memory),
      lab_(&lab),
      possible_(is_of_one_row(program) && !lab.has_uneven()) {}

const Regime& StretchPacer::alone(OpId op) {
  const Regime*& known = alone_[op.value];
  if (known != nullptr) return *known;
  const bool kernel = program_->ops[op.value].kind == ProgramOpKind::kernel;
  const std::string key = kernel ? quiet_.of_kernel(op) : company_->of_long_collective(op) + "at once";
  known = memory_->find(key, 1);
  if (known == nullptr) known = &memory_->add(key, kernel ? lab_->kernel(op) : lab_->collective_by_itself(op));
  return *known;
}

double StretchPacer::seconds_alone(OpId op) {
  const Regime::Operation& did = alone(op).operations.front();
  return to_seconds(clock_.to_time(did.duration - did.early));
}

double StretchPacer::rate(OpId collective) {
  const double seconds = seconds_alone(collective);
  return seconds > 0 ? static_cast<double>(program_->ops[collective.value].collective.bytes.count()) / seconds : 0;
}

std::string StretchPacer::key(OpId kernel, OpId collective) {
  std::string& shape = shapes_[collective.value];
  if (shape.empty()) shape = lab_->shape_of(collective);
  return quiet_.of_pace(kernel, shape);
}

const std::optional<CompanyPace>& StretchPacer::known(OpId kernel, OpId collective) {
  const auto [at, fresh] = known_.try_emplace({kernel.value, collective.value});
  if (!fresh) return at->second;
  const CompanyPaces& paces = memory_->paces(key(kernel, collective));
  if (!paces.empty()) at->second = pace_at(rate(collective), paces);
  return at->second;
}

// Up to each operation, in bytes of messages.
void StretchPacer::sum_up_work() {
  std::map<Message, Work> known;
  work_.emplace_back();
  for (std::uint32_t i = 0; i < program_->ops.size(); ++i) {
    const ProgramOp& op = program_->ops[i];
    Work work;
    if (op.kind == ProgramOpKind::kernel) work.together = kKernelByte * static_cast<double>(streamed_bytes(op.kernel));
    if (op.kind == ProgramOpKind::collective) {
      const auto [at, fresh] = known.try_emplace(message_of(op.collective));
      if (fresh) {
        const double bytes = lab_->bytes_simulated(OpId{i});
        at->second = {.by_themselves = bytes / lab_->grain_by_itself(OpId{i}), .together = bytes};
      }
      work = at->second;
    }
    work_.push_back({work_.back().by_themselves + work.by_themselves, work_.back().together + work.together});
  }
}

bool StretchPacer::worth_it(std::uint32_t from, std::uint32_t end) {
  if (work_.empty()) sum_up_work();
  return kWorth * (work_[end].by_themselves - work_[from].by_themselves) < work_[end].together - work_[from].together;
}

bool StretchPacer::covers(OpId first) {
  const SharedList<ProgramOp>& ops = program_->ops;
  if (!possible_ || !memory_->knows_paces() || !worth_it(first.value, static_cast<std::uint32_t>(ops.size()))) {
    return false;
  }
  std::optional<OpId> collective;
  double moving = 0;  // collectives still do, for so long
  double all = 0;
  double found = 0;
  CompanyPace mean{.kernel = 0, .collective = 0, .ledger = {}};
  for (std::uint32_t i = first.value; i < ops.size() && !(collective && moving <= 0); ++i) {
    if (ops[i].kind == ProgramOpKind::copy) return false;
    if (ops[i].kind == ProgramOpKind::collective) {
      collective = OpId{i};
      moving += seconds_alone(*collective);
    } else if (ops[i].kind == ProgramOpKind::kernel && collective) {
      const double takes = seconds_alone(OpId{i});
      all += takes;
      const std::optional<CompanyPace>& pace = known(OpId{i}, *collective);
      moving -= takes * (pace ? pace->kernel : 1);
      if (!pace) continue;
      found += takes;
      mean.kernel += takes * pace->kernel;
      mean.collective += takes * pace->collective;
    }
  }
  if (found <= 0 || found < kEnough * all) return false;
  mean.kernel /= found;
  mean.collective /= found;
  others_ = mean;
  return true;
}

const CompanyPace* StretchPacer::beside(OpId kernel, OpId collective) {
  const std::optional<CompanyPace>& pace = known(kernel, collective);
  return pace ? &*pace : &others_;
}

void StretchPacer::learn(std::span<const Ran> ran) {
  if (!possible_ || ran.empty() || !worth_it(ran.front().op.value, ran.back().op.value + 1)) return;
  std::vector<const Ran*> kernels;
  std::vector<const Ran*> collectives;
  for (const Ran& one : ran) {
    const ProgramOpKind kind = program_->ops[one.op.value].kind;
    if (kind == ProgramOpKind::kernel) kernels.push_back(&one);
    if (kind == ProgramOpKind::collective) collectives.push_back(&one);
  }
  std::vector<double> longer;
  for (const Ran* collective : collectives) {
    const double took = collective->end - collective->begin;
    double together = 0;
    for (const Ran* kernel : kernels) together += overlap(*kernel, *collective);
    const bool any = together > 0;  // else how long it takes by itself is not asked for
    longer.push_back(any ? times_longer(took, std::min(together, took), seconds_alone(collective->op)).value_or(1) : 1);
  }
  for (const Ran* kernel : kernels) {
    double all = 0;
    double most = 0;
    std::size_t main = 0;
    for (std::size_t c = 0; c < collectives.size(); ++c) {
      const double beside = overlap(*kernel, *collectives[c]);
      all += beside;
      if (beside > most) main = c;
      most = std::max(most, beside);
    }
    if (all - most > kLeastLeft * most || most <= 0) continue;  // how it shares its time among them is not known
    const auto pace = times_longer(kernel->end - kernel->begin, most, seconds_alone(kernel->op));
    const OpId collective = collectives[main]->op;
    if (!pace || !(rate(collective) > 0)) continue;
    memory_->learn(key(kernel->op, collective), {.rate = rate(collective),
                                                 .seconds = most,
                                                 .kernel = *pace,
                                                 .collective = longer[main],
                                                 .ledger = kernel->ledger});
  }
  known_.clear();
}

}  // namespace weft
