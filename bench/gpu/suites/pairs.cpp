#include <algorithm>
#include <chrono>
#include <cstdio>
#include <exception>
#include <nlohmann/json.hpp>
#include <set>
#include <thread>

#include "bench/gpu/device/running_aggressor.h"
#include "bench/gpu/device/small_kernels.h"
#include "bench/gpu/plan/statistics.h"
#include "bench/gpu/suites/victim_bench.h"

namespace weft::gpu_probe {
namespace {

using nlohmann::json;

constexpr int kMostTimings = 64;
constexpr int kCalibrations = 20;
constexpr double kMostHostShare = 0.6;

class PairSuite {
 public:
  explicit PairSuite(Session& session)
      : session_(session), gpu_(session.gpu), aggressors_(session.gpu), victims_(session), timer_(kMostTimings) {}

  void run() {
    warm_up();
    for (const VictimPlan& plan : plan_pairs(session_.options.selection)) {
      VictimPlan missing{plan.victim, {}};
      for (const Aggressor* aggressor : plan.aggressors) {
        if (session_.results.find("pairs", keys(plan, *aggressor)) == nullptr) missing.aggressors.push_back(aggressor);
      }
      if (missing.aggressors.empty()) continue;
      if (session_.is_over()) return;
      run_victim(missing);
    }
  }

 private:
  static json keys(const VictimPlan& plan, const Aggressor& aggressor) {
    return {{"victim", plan.victim->name}, {"aggressor", aggressor.name}};
  }

  // Clocks rise, code is loaded, and what is moved is looked at once.
  void warm_up() {
    for (const Aggressor& aggressor : core_aggressors()) {
      aggressors_.start(aggressor);
      aggressors_.begin_count();
      aggressors_.end_count();
      check(cudaStreamSynchronize(gpu_.compute()), "warming up");
      aggressors_.stop();
      if (!aggressors_.moved_right())
        std::fprintf(stderr, "%s does not move what it should: trust none of its numbers\n", aggressor.name.c_str());
    }
  }

  void run_victim(const VictimPlan& plan) {
    const auto victim = victims_.prepare(*plan.victim);
    if (!victim) return;
    const std::vector<double> first = time_victim(gpu_, timer_, *victim, kCalibrations, 1);
    // The device must never wait for the host: a library whose calls are slow is launched by graphs.
    if (host_us(*victim, gpu_.compute()) > kMostHostShare * summarize(first).median)
      static_cast<void>(victim->use_graphs(gpu_.compute()));
    const std::vector<double> once = time_victim(gpu_, timer_, *victim, kCalibrations, 1);
    const Repetitions r = repetitions(summarize(once).median, session_.options.pair_ms);
    json item = description(*plan.victim);
    item["alone_us"] = summarize(time_victim(gpu_, timer_, *victim, kCalibrations, r.launches));
    item["launches"] = r.launches;
    item["launched_by"] = victim->launches_graphs() ? "graph" : "stream";
    session_.results.put("victims", {{"name", plan.victim->name}}, item);
    std::printf("%s: %.1f us, %zu aggressors\n", plan.victim->name.c_str(), item["alone_us"]["median"].get<double>(),
                plan.aggressors.size());
    std::fflush(stdout);
    for (const Aggressor* aggressor : plan.aggressors) {
      if (session_.is_over()) return;
      try {
        describe_once(*aggressor);
        session_.results.put("pairs", keys(plan, *aggressor), measure(*victim, *aggressor, r));
      } catch (const std::runtime_error& error) {
        std::fprintf(stderr, "%s beside %s: %s\n", plan.victim->name.c_str(), aggressor->name.c_str(), error.what());
        end_aggressor();
        victims_.check_device(*plan.victim, error.what());
      }
    }
  }

  void end_aggressor() {
    try {
      aggressors_.stop();
    } catch (const std::runtime_error& error) {
      std::fprintf(stderr, "%s\n", error.what());
    }
  }

  void describe_once(const Aggressor& aggressor) {
    const json name{{"name", aggressor.name}};
    if (!described_.insert(aggressor.name).second || session_.results.find("aggressors", name) != nullptr) return;
    aggressors_.start(aggressor);
    aggressors_.begin_count();
    check(cudaStreamSynchronize(gpu_.compute()), "counting");
    std::this_thread::sleep_for(std::chrono::milliseconds(aggressor.kind == AggressorKind::copy_engine ? 30 : 5));
    aggressors_.end_count();
    check(cudaStreamSynchronize(gpu_.compute()), "counting");
    aggressors_.stop();
    const Rates rates = aggressors_.rates();
    json item = describe(aggressor);
    item["alone"] = {{"read_GBps", rates.read_GBps}, {"written_GBps", rates.written_GBps}};
    session_.results.put("aggressors", name, item);
  }

  json measure(VictimRun& victim, const Aggressor& aggressor, const Repetitions& r) {
    std::vector<double> alone, beside, read, written, clocks, clocks_alone;
    const auto append = [](std::vector<double>& to, const std::vector<double>& from) {
      to.insert(to.end(), from.begin(), from.end());
    };
    for (int round = 0; round < r.rounds; ++round) {
      append(alone, time_victim(gpu_, timer_, victim, r.per_round, r.launches));
      aggressors_.start(aggressor);
      append(beside, time_victim(gpu_, timer_, victim, r.per_round, r.launches,
                                 [&](bool begins) { begins ? aggressors_.begin_count() : aggressors_.end_count(); }));
      aggressors_.stop();
      const Rates rates = aggressors_.rates();
      read.push_back(rates.read_GBps);
      written.push_back(rates.written_GBps);
      clocks.push_back(aggressors_.sm_clock_MHz());
      clocks_alone.push_back(aggressors_.clock_before_MHz());
    }
    if (aggressor.blocks == 0) clocks = clocks_alone;
    json item = gpu_.now();
    item["alone_us"] = summarize(alone);
    item["beside_us"] = summarize(beside);
    item["aggressor_read_GBps"] = summarize(read).median;
    item["aggressor_written_GBps"] = summarize(written).median;
    item["aggressor_units"] = aggressors_.units();
    item["sm_clock_MHz"] = summarize(clocks).median;
    item["sm_clock_alone_MHz"] = summarize(clocks_alone).median;
    return item;
  }

  Session& session_;
  Gpu& gpu_;
  AggressorBench aggressors_;
  VictimBench victims_;
  Timer timer_;
  std::set<std::string> described_;
};

}  // namespace

void run_pairs(Session& session) { PairSuite(session).run(); }

}  // namespace weft::gpu_probe
