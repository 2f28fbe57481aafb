// Regimes that were simulated before, in this run, in others, in other processes: a file that all of them share.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>

#include "cli/sampled/company_pace.h"
#include "cli/sampled/regime.h"

namespace weft {

// Where regimes are kept: WEFT_REGIMES names the file, and keeps none when it is empty; else regimes.sqlite in
// $XDG_CACHE_HOME/weft or ~/.cache/weft. None: nowhere.
[[nodiscard]] std::optional<std::filesystem::path> regime_file();

class RegimeMemory {
 public:
  // Reads what is in `file` and adds to it at the end. A file that cannot be used is done without: it is a cache.
  explicit RegimeMemory(const std::optional<std::filesystem::path>& file);
  // Writes what is new, in one transaction.
  ~RegimeMemory();
  RegimeMemory(const RegimeMemory&) = delete;
  RegimeMemory& operator=(const RegimeMemory&) = delete;

  // Null: none of so many operations is known by this name. The pointer stays.
  [[nodiscard]] const Regime* find(const std::string& key, std::size_t operations);
  // `beginning`: for lengths(); empty: nobody will ask.
  const Regime& add(const std::string& key, Regime regime, const std::string& beginning = {});
  // How many operations those have that begin so.
  [[nodiscard]] const std::set<std::size_t>& lengths(const std::string& beginning);

  // Of operations beside each other. Whether there are any; those of one name, until more is learned of them.
  [[nodiscard]] bool knows_paces();
  [[nodiscard]] const CompanyPaces& paces(const std::string& key);
  void learn(const std::string& key, const CompanyPace& seen);

  [[nodiscard]] std::int64_t simulated() const { return static_cast<std::int64_t>(fresh_.size()); }
  [[nodiscard]] std::int64_t reused() const { return reused_; }

  // Beyond this, the regimes that were not used for longest are forgotten; paces that nothing was learned of for
  // longest.
  static constexpr std::int64_t kMostBytes = std::int64_t{256} << 20;

 private:
  struct Database;
  struct Fresh {
    std::string key, beginning;
  };
  void write();
  void write_paces(std::int64_t now);
  [[nodiscard]] CompanyPaces paces_in_file(const std::string& key) const;

  std::unique_ptr<Database> database_;                              // null: only in this process
  std::unordered_map<std::string, std::unique_ptr<Regime>> known_;  // null: not in the file either
  std::unordered_map<std::string, std::set<std::size_t>> lengths_;  // by beginning
  std::vector<Fresh> fresh_;                                        // simulated here
  std::vector<std::string> read_;                                   // keys: found in the file
  std::unordered_map<std::string, CompanyPaces> paces_, learned_;   // with what is in the file; here
  std::int64_t reused_ = 0;
};

}  // namespace weft
