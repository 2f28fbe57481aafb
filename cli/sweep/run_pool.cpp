#include "cli/sweep/run_pool.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <fstream>
#include <map>
#include <utility>

#include "cli/output/terminal.h"
#include "sim/error.h"

namespace weft {

namespace {

using Clock = std::chrono::steady_clock;

// The last message of a run, without what all messages begin with.
std::string last_message(const std::filesystem::path& errors) {
  constexpr std::string_view kBegin = "weft: error: ";
  std::ifstream stream(errors);
  std::string last;
  for (std::string line; std::getline(stream, line);) {
    if (!line.empty()) last = line;
  }
  return last.starts_with(kBegin) ? last.substr(kBegin.size()) : last;
}

RunFailure failure_of(const ChildEnd& end, const ChildLimits& limits, const std::filesystem::path& errors) {
  if (end.timed_out) return {"timeout", fmt::format("not done after {:g} s", limits.timeout->count())};
  if (end.signal == SIGKILL) return {"failed", "killed (signal 9), as the system does when its memory is used up"};
  if (end.signal != 0) return {"failed", fmt::format("ended by signal {} ({})", end.signal, ::strsignal(end.signal))};
  const std::string message = last_message(errors);
  return {"failed", message.empty() ? fmt::format("ended with exit code {}", end.exit_code) : message};
}

class RunPool {
 public:
  RunPool(const RunStore& store, const std::vector<std::string>& keys, const PoolOptions& options)
      : store_(store), keys_(keys), options_(options) {
    for (std::size_t k = 0; k < keys.size(); ++k) {
      if (!settled(k)) waiting_.push_back(k);
    }
  }
  ~RunPool() {
    for (const auto& [k, claim] : claims_) store_.release(keys_[k], claim);
  }
  RunPool(const RunPool&) = delete;
  RunPool& operator=(const RunPool&) = delete;

  [[nodiscard]] bool over() const { return waiting_.empty() && claims_.empty(); }

  // Starts what there is room for. Those that others compute stay at the end of the queue, until they are done.
  void start() {
    for (std::size_t look = waiting_.size(); look > 0 && children_.running() < options_.jobs; --look) {
      const std::size_t k = waiting_.front();
      waiting_.pop_front();
      if (!settled(k) && !start(k)) waiting_.push_back(k);
    }
  }

  void wait() {
    const auto end = children_.wait();
    if (end) finish(*end);
    if (Clock::now() - touched_ < options_.stale_after / 4) return;
    touched_ = Clock::now();
    for (const auto& claim : claims_) claim.second.touch();
  }

  [[nodiscard]] PoolProgress progress() const {
    PoolProgress now{keys_.size(), keys_.size() - waiting_.size() - claims_.size() - failed_, failed_, 0};
    if (ended_ == 0) return now;
    double under_way = 0;  // taken to be half done
    under_way = 0.5 * static_cast<double>(claims_.size());
    now.seconds_left = (static_cast<double>(waiting_.size()) + under_way) * run_seconds_ / static_cast<double>(ended_) /
                       static_cast<double>(options_.jobs);
    return now;
  }
  [[nodiscard]] std::size_t failed() const { return failed_; }

 private:
  // Whether nothing is left to do, by whoever did it.
  bool settled(std::size_t k) {
    if (store_.done(keys_[k])) {
      store_.clear(keys_[k]);  // its owner may have been killed before
      return true;
    }
    if (!store_.failure(keys_[k])) return false;
    ++failed_;
    return true;
  }

  bool start(std::size_t k) {
    const std::string& key = keys_[k];
    try {
      auto claim = store_.claim(key, options_.stale_after);
      if (!claim) return false;
      ChildLimits limits = options_.limits;
      limits.errors = store_.errors(key, *claim);
      children_.start(
          k,
          {"run", (store_.work_path(key) / "config.json").string(), "--no-progress", "--threads",
           std::to_string(options_.threads), "--keep", options_.keep, "-o", store_.output(key, *claim).string()},
          limits);
      claims_.emplace(k, *claim);
    } catch (const InputError& e) {
      fail(k, {"failed", e.what()});
    }
    return true;
  }

  void finish(const ChildEnd& end) {
    const Claim claim = claims_.at(end.id);
    const std::string& key = keys_[end.id];
    claims_.erase(end.id);
    ++ended_;
    run_seconds_ += end.wall_s;
    if (end.exit_code == static_cast<int>(ExitCode::interrupted)) {
      store_.release(key, claim);
      throw Interrupted();
    }
    if (!end.timed_out && end.signal == 0 && end.exit_code == 0) {
      try {
        store_.publish(key, claim, end);
      } catch (const InputError& e) {
        fail(end.id, {"failed", e.what()});
      }
    } else {
      fail(end.id, failure_of(end, options_.limits, store_.errors(key, claim)));
    }
  }

  void fail(std::size_t k, const RunFailure& failure) {
    ++failed_;
    try {
      store_.fail(keys_[k], failure);
    } catch (const InputError&) {
      // A full disk: it counts as failed in this process, and is tried again by the next.
      remove_claims(store_.work_path(keys_[k]));
    }
  }

  const RunStore& store_;
  const std::vector<std::string>& keys_;
  const PoolOptions& options_;
  std::deque<std::size_t> waiting_;
  std::map<std::size_t, Claim> claims_;  // of what runs here
  std::size_t failed_ = 0, ended_ = 0;
  double run_seconds_ = 0;
  Clock::time_point touched_ = Clock::now();
  ChildProcesses children_;  // last: ended before the claims are released
};

}  // namespace

std::size_t compute_runs(const RunStore& store, const std::vector<std::string>& keys, const PoolOptions& options,
                         const std::function<void(const PoolProgress&)>& progress) {
  RunPool pool(store, keys, options);
  while (!pool.over()) {
    pool.start();
    progress(pool.progress());
    if (!pool.over()) pool.wait();
  }
  return pool.failed();
}

}  // namespace weft
