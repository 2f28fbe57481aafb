#include <fmt/format.h>
#include <sqlite3.h>

#include <memory>

#include "cli/sweep/table.h"
#include "sim/atomic_file.h"
#include "sim/error.h"

namespace weft {

namespace {

struct CloseDatabase {
  void operator()(sqlite3* database) const { sqlite3_close(database); }
};
struct EndStatement {
  void operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
};
using Database = std::unique_ptr<sqlite3, CloseDatabase>;
using Statement = std::unique_ptr<sqlite3_stmt, EndStatement>;

void check(int code, sqlite3* database, const std::filesystem::path& file) {
  if (code == SQLITE_OK || code == SQLITE_DONE) return;
  throw InputError(file.string(), "",
                   fmt::format("expected a database that can be written, got: {}", sqlite3_errmsg(database)));
}

std::string quoted(const std::string& name) {
  std::string text = "\"";
  for (const char c : name) text += c == '"' ? "\"\"" : std::string(1, c);
  return text + '"';
}

// INTEGER or REAL where all values of a column are; else TEXT.
const char* type_of(const SweepTable& table, std::size_t column) {
  bool integers = true, numbers = true;
  for (const auto& row : table.rows) {
    integers = integers && (row[column].is_null() || row[column].is_number_integer());
    numbers = numbers && (row[column].is_null() || row[column].is_number());
  }
  if (!numbers) return "TEXT";
  return integers ? "INTEGER" : "REAL";
}

void bind(sqlite3_stmt* statement, int place, const Json& value) {
  if (value.is_null()) {
    sqlite3_bind_null(statement, place);
  } else if (value.is_number_integer()) {
    sqlite3_bind_int64(statement, place, value.get<std::int64_t>());
  } else if (value.is_number()) {
    sqlite3_bind_double(statement, place, value.get<double>());
  } else {
    const std::string text = value.is_string() ? value.get<std::string>() : value.dump();
    sqlite3_bind_text(statement, place, text.data(), static_cast<int>(text.size()), SQLITE_TRANSIENT);
  }
}

}  // namespace

// Made in memory, where nothing of SQLite needs locks that a shared folder may not have; then written as any file.
void write_table_sqlite(const SweepTable& table, const std::filesystem::path& file) {
  sqlite3* opened = nullptr;
  const int code = sqlite3_open(":memory:", &opened);
  const Database database(opened);
  check(code, opened, file);
  std::string columns, places;
  for (std::size_t c = 0; c < table.columns.size(); ++c) {
    columns += fmt::format("{}{} {}", c == 0 ? "" : ", ", quoted(table.columns[c]), type_of(table, c));
    places += c == 0 ? "?" : ",?";
  }
  const auto run = [&](const std::string& sql) {
    check(sqlite3_exec(opened, sql.c_str(), nullptr, nullptr, nullptr), opened, file);
  };
  run("CREATE TABLE results (" + columns + ")");
  run("BEGIN");
  sqlite3_stmt* prepared = nullptr;
  check(sqlite3_prepare_v2(opened, ("INSERT INTO results VALUES (" + places + ")").c_str(), -1, &prepared, nullptr),
        opened, file);
  const Statement insert(prepared);
  for (const auto& row : table.rows) {
    for (std::size_t c = 0; c < row.size(); ++c) bind(prepared, static_cast<int>(c) + 1, row[c]);
    check(sqlite3_step(prepared), opened, file);
    check(sqlite3_reset(prepared), opened, file);
  }
  run("COMMIT");
  sqlite3_int64 size = 0;
  const std::unique_ptr<unsigned char, decltype(&sqlite3_free)> image(sqlite3_serialize(opened, "main", &size, 0),
                                                                      &sqlite3_free);
  if (!image) throw std::bad_alloc();
  write_file_atomically(file, {reinterpret_cast<const char*>(image.get()), static_cast<std::size_t>(size)});
}

}  // namespace weft
