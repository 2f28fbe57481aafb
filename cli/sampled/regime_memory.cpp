#include "cli/sampled/regime_memory.h"

#include <sqlite3.h>

#include <chrono>
#include <cstdlib>

#include "sim/error.h"

namespace weft {

namespace fs = std::filesystem;

namespace {

constexpr int kWaitForOthersMs = 10000;

struct Statement {
  sqlite3_stmt* handle = nullptr;
  Statement(sqlite3* database, const char* sql) { sqlite3_prepare_v2(database, sql, -1, &handle, nullptr); }
  ~Statement() { sqlite3_finalize(handle); }
  Statement(const Statement&) = delete;
  Statement& operator=(const Statement&) = delete;

  void bind(int place, const std::string& blob) const {
    sqlite3_bind_blob(handle, place, blob.data(), static_cast<int>(blob.size()), SQLITE_STATIC);
  }
  void bind(int place, std::int64_t number) const { sqlite3_bind_int64(handle, place, number); }
  [[nodiscard]] bool row() const { return sqlite3_step(handle) == SQLITE_ROW; }
  bool run() const {
    const int done = sqlite3_step(handle);
    sqlite3_reset(handle);
    return done == SQLITE_DONE;
  }
};

std::int64_t seconds_now() {
  return std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch()).count();
}

}  // namespace

struct RegimeMemory::Database {
  sqlite3* handle = nullptr;
  explicit Database(const fs::path& file) {
    std::error_code ignored;
    if (file.has_parent_path()) fs::create_directories(file.parent_path(), ignored);
    if (sqlite3_open(file.c_str(), &handle) != SQLITE_OK) return;
    sqlite3_busy_timeout(handle, kWaitForOthersMs);
    good =
        run("PRAGMA journal_mode = WAL") && run("PRAGMA synchronous = NORMAL") &&
        run("CREATE TABLE IF NOT EXISTS stretches (key BLOB PRIMARY KEY, beginning BLOB NOT NULL, operations INTEGER "
            "NOT NULL, regime BLOB NOT NULL, used INTEGER NOT NULL) WITHOUT ROWID") &&
        run("CREATE INDEX IF NOT EXISTS beginnings ON stretches (beginning, operations)") &&
        run("CREATE TABLE IF NOT EXISTS paces (key BLOB PRIMARY KEY, paces BLOB NOT NULL, used INTEGER NOT NULL) "
            "WITHOUT ROWID") &&
        run("DROP TABLE IF EXISTS regimes");  // as versions before had it: of other programs, so no use any more
  }
  ~Database() { sqlite3_close(handle); }
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;
  [[nodiscard]] bool run(const char* sql) const {
    return sqlite3_exec(handle, sql, nullptr, nullptr, nullptr) == SQLITE_OK;
  }
  // Beyond so many bytes of `column`, a quarter of the rows is forgotten, those that were not used for longest.
  void keep_within(std::int64_t bytes, const std::string& table, const std::string& column) const {
    const Statement size(handle, ("SELECT total(length(" + column + ")), count(*) FROM " + table).c_str());
    if (!size.row() || sqlite3_column_int64(size.handle, 0) <= bytes) return;
    const std::string oldest = "SELECT key FROM " + table + " ORDER BY used LIMIT ?";
    const Statement forget(handle, ("DELETE FROM " + table + " WHERE key IN (" + oldest + ")").c_str());
    forget.bind(1, sqlite3_column_int64(size.handle, 1) / 4);
    forget.run();
  }
  bool good = false;
};

std::optional<fs::path> regime_file() {
  if (const char* named = std::getenv("WEFT_REGIMES"); named != nullptr) {
    return *named == '\0' ? std::nullopt : std::optional<fs::path>(named);
  }
  if (const char* cache = std::getenv("XDG_CACHE_HOME"); cache != nullptr && *cache != '\0') {
    return fs::path(cache) / "weft" / "regimes.sqlite";
  }
  if (const char* home = std::getenv("HOME"); home != nullptr && *home != '\0') {
    return fs::path(home) / ".cache" / "weft" / "regimes.sqlite";
  }
  return std::nullopt;
}

RegimeMemory::RegimeMemory(const std::optional<fs::path>& file) {
  if (!file) return;
  database_ = std::make_unique<Database>(*file);
  if (!database_->good) database_.reset();
}

RegimeMemory::~RegimeMemory() {
  if (database_ != nullptr) write();
}

const Regime* RegimeMemory::find(const std::string& key, std::size_t operations) {
  if (const auto at = known_.find(key); at != known_.end()) {
    if (at->second != nullptr) ++reused_;
    return at->second.get();
  }
  if (database_ == nullptr) return nullptr;
  std::unique_ptr<Regime>& found = known_[key];
  const Statement select(database_->handle, "SELECT regime FROM stretches WHERE key = ?");
  select.bind(1, key);
  if (!select.row()) return nullptr;
  const auto* data = static_cast<const char*>(sqlite3_column_blob(select.handle, 0));
  try {
    found = std::make_unique<Regime>(
        regime_from_bytes({data, static_cast<std::size_t>(sqlite3_column_bytes(select.handle, 0))}));
  } catch (const InternalError&) {  // somebody else's file: as if it was not there
    return nullptr;
  }
  if (found->operations.size() != operations) {
    found.reset();
    return nullptr;
  }
  read_.push_back(key);
  ++reused_;
  return found.get();
}

const std::set<std::size_t>& RegimeMemory::lengths(const std::string& beginning) {
  const auto [at, fresh] = lengths_.try_emplace(beginning);
  if (fresh && database_ != nullptr) {
    const Statement select(database_->handle, "SELECT DISTINCT operations FROM stretches WHERE beginning = ?");
    select.bind(1, beginning);
    while (select.row()) at->second.insert(static_cast<std::size_t>(sqlite3_column_int64(select.handle, 0)));
  }
  return at->second;
}

const Regime& RegimeMemory::add(const std::string& key, Regime regime, const std::string& beginning) {
  fresh_.push_back({key, beginning});
  if (!beginning.empty()) {
    static_cast<void>(lengths(beginning));  // those in the file, too
    lengths_[beginning].insert(regime.operations.size());
  }
  std::unique_ptr<Regime>& place = known_[key];
  place = std::make_unique<Regime>(std::move(regime));
  return *place;
}

bool RegimeMemory::knows_paces() {
  if (!paces_.empty() || database_ == nullptr) return !paces_.empty();
  return Statement(database_->handle, "SELECT 1 FROM paces LIMIT 1").row();
}

CompanyPaces RegimeMemory::paces_in_file(const std::string& key) const {
  const Statement select(database_->handle, "SELECT paces FROM paces WHERE key = ?");
  select.bind(1, key);
  if (!select.row()) return {};
  const auto* data = static_cast<const char*>(sqlite3_column_blob(select.handle, 0));
  try {
    return company_paces_from_bytes({data, static_cast<std::size_t>(sqlite3_column_bytes(select.handle, 0))});
  } catch (const InternalError&) {
    return {};
  }
}

const CompanyPaces& RegimeMemory::paces(const std::string& key) {
  const auto [at, fresh] = paces_.try_emplace(key);
  if (fresh && database_ != nullptr) at->second = paces_in_file(key);
  return at->second;
}

void RegimeMemory::learn(const std::string& key, const CompanyPace& seen) {
  static_cast<void>(paces(key));  // those in the file, too
  weft::learn(seen, paces_[key]);
  weft::learn(seen, learned_[key]);
}

// What others have learned meanwhile stays.
void RegimeMemory::write_paces(std::int64_t now) {
  const Statement insert(database_->handle, "INSERT OR REPLACE INTO paces VALUES (?, ?, ?)");
  for (const auto& [key, seen] : learned_) {
    CompanyPaces all = paces_in_file(key);
    for (const CompanyPace& one : seen) weft::learn(one, all);
    const std::string bytes = to_bytes(all);
    insert.bind(1, key);
    insert.bind(2, bytes);
    insert.bind(3, now);
    if (!insert.run()) return;
  }
  if (!learned_.empty()) database_->keep_within(kMostBytes, "paces", "paces");
}

void RegimeMemory::write() {
  if (fresh_.empty() && read_.empty() && learned_.empty()) return;
  if (!database_->run("BEGIN IMMEDIATE")) return;
  const std::int64_t now = seconds_now();
  write_paces(now);
  {
    const Statement insert(database_->handle, "INSERT OR REPLACE INTO stretches VALUES (?, ?, ?, ?, ?)");
    for (const auto& [key, beginning] : fresh_) {
      const Regime& regime = *known_.at(key);
      const std::string bytes = to_bytes(regime);
      insert.bind(1, key);
      insert.bind(2, beginning);
      insert.bind(3, static_cast<std::int64_t>(regime.operations.size()));
      insert.bind(4, bytes);
      insert.bind(5, now);
      if (!insert.run()) break;
    }
    // By days: most runs read without writing.
    constexpr std::int64_t kDay = 86400;
    const Statement touch(database_->handle, "UPDATE stretches SET used = ? WHERE key = ? AND used < ?");
    for (const std::string& key : read_) {
      touch.bind(1, now);
      touch.bind(2, key);
      touch.bind(3, now - kDay);
      touch.run();
    }
    if (!fresh_.empty()) database_->keep_within(kMostBytes, "stretches", "regime");
  }
  static_cast<void>(database_->run("COMMIT"));
}

}  // namespace weft
