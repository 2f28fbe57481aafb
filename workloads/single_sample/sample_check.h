// Whether the programs of ranks that share a sample compute what they should: carried out on numbers in FP32, beside a
// reference in double.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "workloads/single_sample/sample_split.h"
#include "workloads/tensor_values.h"

namespace weft {

// Numbers by name: operands "input", "output_gradient", "query.weight", ...; results "output", "input_gradient",
// "query.weight.grad", ...
using Numbers = std::map<std::string, std::vector<double>>;

// By name of the result: the largest difference as a share of the largest number.
using ValueErrors = std::map<std::string, double>;

// A rank's part of a matrix that all have: some rows, or some columns of each row.
struct SamplePart {
  std::int64_t rows = 0, columns = 0;  // of the whole
  std::vector<std::int64_t> taken;     // rows, by row of the part; beyond the whole: zeros
  std::int64_t first_column = 0, own_columns = 0;
  bool repeated = false;  // another rank has the same numbers, and they count once

  // Takes `count` rows of all columns.
  void take(std::int64_t first, std::int64_t count);
};

struct SampleCheck {
  std::vector<SampleGraph> graphs;  // by rank
  Numbers operands, expected;
  // The name in these of a tensor that is named so in the graphs, and where a rank's numbers lie in those of all. What
  // several ranks have is summed up, as data parallelism does with gradients.
  std::function<std::string(const std::string& tensor)> short_name;
  std::function<SamplePart(std::uint32_t rank, const std::string& name)> part_of;
  SeeNode finished = {};  // called behind each node; may change numbers, to see that it shows
};
[[nodiscard]] ValueErrors check_values(SampleCheck check);

}  // namespace weft
