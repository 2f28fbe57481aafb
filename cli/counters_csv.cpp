#include "cli/counters_csv.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "cli/csv_reader.h"
#include "cli/kernels_csv.h"

namespace weft {

std::string counters_csv(const RunResult& result) {
  std::string csv = "name,unit,gpu,period_s,values\n";
  for (const CounterTrack& counter : result.counters) {
    fmt::format_to(std::back_inserter(csv), "{},{},{},{},{}\n", csv_field(counter.name), csv_field(counter.unit),
                   counter.gpu ? std::to_string(*counter.gpu) : "", counter.period_s, fmt::join(counter.values, " "));
  }
  return csv;
}

std::vector<CounterTrack> read_counters_csv(const std::filesystem::path& file) {
  CsvReader csv(file);
  std::vector<CounterTrack> counters;
  while (csv.next_line()) {
    CounterTrack counter;
    counter.name = csv.text("name");
    counter.unit = csv.text("unit");
    if (!csv.text("gpu").empty()) counter.gpu = csv.number<std::uint32_t>("gpu");
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
