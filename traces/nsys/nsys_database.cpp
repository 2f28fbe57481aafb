#include "traces/nsys/nsys_database.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sqlite3.h>

#include <algorithm>
#include <utility>

#include "sim/error.h"
#include "traces/readable_text.h"

namespace weft {
namespace {

constexpr int kMostBytes = 1 << 24;  // of a name or payload; more is damage

}  // namespace

NsysRows::NsysRows(const NsysDatabase& database, std::string table, std::vector<NsysColumn> columns)
    : database_(database), table_(std::move(table)), columns_(std::move(columns)) {}

NsysRows::NsysRows(NsysRows&& other) noexcept
    : database_(other.database_),
      table_(std::move(other.table_)),
      columns_(std::move(other.columns_)),
      statement_(std::exchange(other.statement_, nullptr)) {}

NsysRows::~NsysRows() { sqlite3_finalize(statement_); }

bool NsysRows::next() {
  if (statement_ == nullptr) return false;
  const int result = sqlite3_step(statement_);
  if (result != SQLITE_ROW && result != SQLITE_DONE) database_.fail(table_);
  return result == SQLITE_ROW;
}

bool NsysRows::has(int column) const { return sqlite3_column_type(statement_, column) != SQLITE_NULL; }

void NsysRows::fail(int column, const std::string& message) const {
  throw InputError(database_.name(), fmt::format("{}.{}", table_, columns_[static_cast<std::size_t>(column)].name),
                   message);
}

std::int64_t NsysRows::integer(int column) const {
  switch (sqlite3_column_type(statement_, column)) {
    case SQLITE_INTEGER:
      return sqlite3_column_int64(statement_, column);
    case SQLITE_NULL:
      if (columns_[static_cast<std::size_t>(column)].kind != NsysColumn::Kind::required) return 0;
      fail(column, "expected a whole number, got NULL");
    default:
      fail(column, fmt::format("expected a whole number, got {:.40}", text(column)));
  }
}

std::uint32_t NsysRows::number(int column, std::uint32_t most) const {
  const std::int64_t value = integer(column);
  if (value < 0 || value > static_cast<std::int64_t>(most))
    fail(column, fmt::format("expected from 0 to {}, got {}", most, value));
  return static_cast<std::uint32_t>(value);
}

std::string NsysRows::text(int column) const {
  const auto* characters = sqlite3_column_text(statement_, column);
  if (characters == nullptr) return {};
  const auto length = static_cast<std::size_t>(sqlite3_column_bytes(statement_, column));
  return readable({reinterpret_cast<const char*>(characters), length});
}

std::string_view NsysRows::bytes(int column) const {
  const auto* data = static_cast<const char*>(sqlite3_column_blob(statement_, column));
  if (data == nullptr) return {};
  return {data, static_cast<std::size_t>(sqlite3_column_bytes(statement_, column))};
}

NsysDatabase::NsysDatabase(const std::filesystem::path& path) : name_(path.string()) {
  if (!std::filesystem::is_regular_file(path)) throw MissingInput(name_);
  const int opened = sqlite3_open_v2(path.c_str(), &database_, SQLITE_OPEN_READONLY, nullptr);
  try {
    if (opened != SQLITE_OK) throw MissingInput(name_);
    sqlite3_limit(database_, SQLITE_LIMIT_LENGTH, kMostBytes);
    sqlite3_db_config(database_, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
    sqlite3_db_config(database_, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, nullptr);
    sqlite3_exec(database_, "PRAGMA cell_size_check = ON", nullptr, nullptr, nullptr);
    read_tables();
    const auto gpu = [](const auto& table) { return table.first.starts_with("CUPTI_ACTIVITY_KIND_"); };
    if (!std::any_of(tables_.begin(), tables_.end(), gpu)) {
      std::vector<std::string> names;
      for (const auto& [table, columns] : tables_)
        if (names.size() < 8) names.push_back(table);
      throw InputError(
          name_, "",
          fmt::format("expected an export of Nsight Systems with operations on a GPU (tables CUPTI_ACTIVITY_KIND_..., "
                      "of nsys profile --trace=cuda,nvtx), got {} tables: {}{}",
                      tables_.size(), fmt::join(names, ", "), names.size() < tables_.size() ? ", ..." : ""));
    }
  } catch (...) {
    sqlite3_close(database_);
    throw;
  }
}

NsysDatabase::~NsysDatabase() { sqlite3_close(database_); }

void NsysDatabase::fail(const std::string& table) const {
  throw InputError(
      name_, table,
      fmt::format("expected SQLite as of nsys export --type sqlite, got: {}", readable(sqlite3_errmsg(database_))));
}

sqlite3_stmt* NsysDatabase::prepare(const std::string& table, const std::string& sql) const {
  sqlite3_stmt* statement = nullptr;
  if (sqlite3_prepare_v2(database_, sql.c_str(), -1, &statement, nullptr) != SQLITE_OK) fail(table);
  return statement;
}

// Plain tables only: views and virtual tables are no part of an export, and would be computed here.
void NsysDatabase::read_tables() {
  NsysRows tables(*this, "sqlite_master", {{"name"}});
  tables.statement_ = prepare("", "SELECT name FROM sqlite_master WHERE type = 'table' AND rootpage > 0");
  while (tables.next()) tables_.try_emplace(tables.text(0));
  for (auto& [table, columns] : tables_) {
    NsysRows info(*this, table, {{"name"}});
    info.statement_ = prepare(table, "SELECT name FROM pragma_table_info(?1)");
    sqlite3_bind_text(info.statement_, 1, table.data(), static_cast<int>(table.size()), SQLITE_STATIC);
    while (info.next()) columns.push_back(info.text(0));
  }
}

bool NsysDatabase::has(const std::string& table, const std::string& column) const {
  const auto found = tables_.find(table);
  return found != tables_.end() && std::find(found->second.begin(), found->second.end(), column) != found->second.end();
}

NsysRows NsysDatabase::rows(const std::string& table, std::vector<NsysColumn> columns, const std::string& where) const {
  NsysRows rows(*this, table, columns);
  if (!has(table)) return rows;
  std::vector<std::string> terms;
  for (const NsysColumn& column : columns) {
    if (!has(table, column.name)) {
      if (column.kind == NsysColumn::Kind::required)
        throw InputError(name_, table,
                         fmt::format("expected a column {}, got {}", column.name, fmt::join(tables_.at(table), ", ")));
      terms.emplace_back("NULL");
    } else if (column.kind == NsysColumn::Kind::name) {
      terms.push_back(has("StringIds", "value") && has("StringIds", "id")
                          ? fmt::format("(SELECT value FROM StringIds WHERE id = {}.\"{}\")", table, column.name)
                          : "NULL");
    } else {
      terms.push_back(fmt::format("\"{}\"", column.name));
    }
  }
  rows.statement_ = prepare(table, fmt::format("SELECT {} FROM {}{}{}", fmt::join(terms, ", "), table,
                                               where.empty() ? "" : " WHERE ", where));
  return rows;
}

}  // namespace weft
