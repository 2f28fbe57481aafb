#include "cli/output/counters_csv.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <utility>

#include "cli/output/csv_reader.h"
#include "cli/output/kernels_csv.h"
#include "sim/error.h"

namespace weft {

namespace {

constexpr std::array kKinds{CounterKind::hbm, CounterKind::memory, CounterKind::link, CounterKind::power,
                            CounterKind::clock};

CounterKind kind_of(const std::string& name, const std::filesystem::path& file) {
  for (const CounterKind kind : kKinds) {
    if (name == to_string(kind)) return kind;
  }
  throw InputError(file.string(), "",
                   "expected a counter of kind hbm, memory, link, power or clock, got \"" + name + "\"");
}

}  // namespace

const char* to_string(CounterKind kind) {
  switch (kind) {
    case CounterKind::hbm:
      return "hbm";
    case CounterKind::memory:
      return "memory";
    case CounterKind::link:
      return "link";
    case CounterKind::power:
      return "power";
    case CounterKind::clock:
      return "clock";
  }
  return "";
}

std::string counters_csv(const RunResult& result) {
  std::string csv = "name,kind,unit,gpu,limit,period_s,values\n";
  for (const CounterTrack& counter : result.counters) {
    fmt::format_to(std::back_inserter(csv), "{},{},{},{},{},{},{}\n", csv_field(counter.name), to_string(counter.kind),
                   csv_field(counter.unit), counter.gpu ? std::to_string(*counter.gpu) : "",
                   counter.limit ? fmt::format("{}", *counter.limit) : "", counter.period_s,
                   fmt::join(counter.values, " "));
  }
  return csv;
}

std::vector<CounterTrack> read_counters_csv(const std::filesystem::path& file) {
  CsvReader csv(file);
  std::vector<CounterTrack> counters;
  while (csv.next_line()) {
    CounterTrack counter;
    counter.name = csv.text("name");
    counter.kind = kind_of(csv.text("kind"), file);
    counter.unit = csv.text("unit");
    if (!csv.text("gpu").empty()) counter.gpu = csv.number<std::uint32_t>("gpu");
    if (!csv.text("limit").empty()) counter.limit = csv.number<double>("limit");
    counter.period_s = csv.number<double>("period_s");
    const std::string& values = csv.text("values");
    for (std::size_t at = 0; at < values.size();) {
      const std::size_t end = std::min(values.find(' ', at), values.size());
      counter.values.push_back(csv.parsed<double>(std::string_view(values).substr(at, end - at), "values"));
      at = end + 1;
    }
    counters.push_back(std::move(counter));
  }
  return counters;
}

}  // namespace weft
