// The SQLite export of Nsight Systems (`nsys export --type sqlite`): tables that may be missing, in rows. Table and
// column names are those of the schema reference, https://docs.nvidia.com/nsight-systems/AnalysisGuide/index.html
// ("SQLite Schema Reference"). Tables are made only for what was recorded, and later versions add columns.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

struct sqlite3;
struct sqlite3_stmt;

namespace weft {

struct NsysColumn {
  enum class Kind { required, optional, name };  // name: an id of StringIds, read as its text
  const char* name;
  Kind kind = Kind::required;
};

// The rows of a table, in its order. Columns that the export has not are absent in every row.
class NsysRows {
 public:
  ~NsysRows();
  NsysRows(NsysRows&&) noexcept;
  NsysRows& operator=(NsysRows&&) = delete;

  // Throws InputError where the file is damaged.
  [[nodiscard]] bool next();
  [[nodiscard]] bool has(int column) const;
  // Throws InputError, naming table and column, for what is no whole number, or absent though required. Absent: 0.
  [[nodiscard]] std::int64_t integer(int column) const;
  // The same, at most `most`.
  [[nodiscard]] std::uint32_t number(int column, std::uint32_t most = UINT32_MAX) const;
  // Valid UTF-8; empty where absent.
  [[nodiscard]] std::string text(int column) const;
  // As they stand in the file; until the next row.
  [[nodiscard]] std::string_view bytes(int column) const;

 private:
  friend class NsysDatabase;
  NsysRows(const class NsysDatabase& database, std::string table, std::vector<NsysColumn> columns);
  [[noreturn]] void fail(int column, const std::string& message) const;

  const NsysDatabase& database_;
  std::string table_;
  std::vector<NsysColumn> columns_;
  sqlite3_stmt* statement_ = nullptr;
};

class NsysDatabase {
 public:
  // Throws MissingInput, or InputError for what is no export with operations on a GPU. Treats the file as untrusted.
  explicit NsysDatabase(const std::filesystem::path& path);
  ~NsysDatabase();
  NsysDatabase(const NsysDatabase&) = delete;
  NsysDatabase& operator=(const NsysDatabase&) = delete;

  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] bool has(const std::string& table) const { return tables_.contains(table); }
  [[nodiscard]] bool has(const std::string& table, const std::string& column) const;
  // `where` is SQL, of columns that are there. Throws InputError when a required column is missing; no rows when the
  // table is.
  [[nodiscard]] NsysRows rows(const std::string& table, std::vector<NsysColumn> columns,
                              const std::string& where = "") const;

 private:
  friend class NsysRows;
  [[noreturn]] void fail(const std::string& table) const;  // what SQLite says
  [[nodiscard]] sqlite3_stmt* prepare(const std::string& table, const std::string& sql) const;
  void read_tables();

  std::string name_;
  sqlite3* database_ = nullptr;
  std::map<std::string, std::vector<std::string>> tables_;  // with their columns
};

}  // namespace weft
