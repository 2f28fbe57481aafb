// Embedding tables as FBGEMM (TorchRec, DLRM) looks rows up and updates them. The operator of the backward pass has
// only the gradient among its inputs; how many rows its kernels gather, and of which tables, is told by that of the
// forward pass.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "sim/program.h"
#include "traces/operator_call.h"

namespace weft {

struct EmbeddingLookup {
  std::uint64_t indices = 0;  // rows looked up, each as often as it occurs
  std::uint64_t bags = 0;     // sums of rows: tables times samples
  std::uint64_t weights = 0;  // elements of all tables
  auto operator<=>(const EmbeddingLookup&) const = default;
};
// From the inputs of fbgemm::*_embedding_codegen_lookup_*: absent for others and for inputs of unexpected form.
[[nodiscard]] std::optional<EmbeddingLookup> embedding_lookup(const OperatorCall& call);

// One of the two kernels that add up the gradients of every row that was looked up and update it.
struct EmbeddingUpdate {
  double gathered = 0;    // bytes of rows of the gradient, in sectors, each as often as its row was looked up
  double updated = 0;     // bytes of the tables' rows, read and written
  double one_by_one = 1;  // loads of a block that each wait for the one before
  // A block gathers from the columns of one table, as its neighbours do.
  std::uint64_t tables = 1;
  std::uint32_t blocks_of_a_table = 1;
};
// What `kernel`, which `backward` has launched, does: nothing gathered where the other one has the rows. Absent for
// other kernels by their names, and where none of `lookups` has as many indices as the grid says.
[[nodiscard]] std::optional<EmbeddingUpdate> embedding_update(std::string_view kernel, const LaunchShape& shape,
                                                              const OperatorCall* backward,
                                                              std::span<const EmbeddingLookup> lookups);

}  // namespace weft
