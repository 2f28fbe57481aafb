#include "cli/run/demands_file.h"

#include <fmt/format.h>

#include <map>

#include "cli/config/config_paths.h"
#include "cli/config/system_json.h"
#include "sim/config_file.h"
#include "sim/error.h"
#include "sim/hash.h"
#include "traces/packed_file.h"

namespace weft {

namespace {

constexpr const char* kSchema = "weft-demands/3";

// How much is known of a demand, in the words of `weft calibrate`.
const char* word(DemandOrigin origin) {
  switch (origin) {
    case DemandOrigin::counters:
      return "measured";
    case DemandOrigin::shapes:
      return "derived";
    case DemandOrigin::name:
      return "guessed";
  }
  throw InternalError("unknown origin of a demand");
}

template <class Function>
void each_kernel(const Program& program, Function&& function) {
  for (std::size_t i = 0; i < program.ops.size(); ++i) {
    if (program.ops[i].kind == ProgramOpKind::kernel) function(i, program.ops[i]);
  }
}

std::vector<std::string> guess_hashes(const Program& program) {
  std::map<std::uint32_t, std::string> bytes;
  each_kernel(program, [&](std::size_t, const ProgramOp& op) {
    KernelSignature signature = kernel_signature(op);
    signature.push_back(static_cast<std::uint64_t>(op.measured_alone.count()));
    for (const auto* operands : {&op.kernel.reads, &op.kernel.writes}) {
      for (const Operand& operand : *operands) signature.push_back(operand.base);
    }
    for (const std::uint64_t value : signature) bytes[op.iteration] += fmt::format("{:x},", value);
  });
  std::vector<std::string> hashes;
  for (std::uint32_t i = 0; i < program.iterations; ++i) hashes.push_back(sha256(bytes[i]));
  return hashes;
}

class Columns {
 public:
  Columns(const Json& kernels, std::string file) : kernels_(kernels), file_(std::move(file)) {}

  // Number `index` of a column.
  [[nodiscard]] double number(const char* name, std::size_t index, double low) const {
    const Json& value = at(name, index);
    if (!value.is_number() || !(value.get<double>() >= low)) {
      throw InputError(file_, fmt::format("/kernels/{}/{}", name, index),
                       fmt::format("expected a number of {} or more, got {}", low, describe(value)));
    }
    return value.get<double>();
  }
  [[nodiscard]] std::int64_t integer(const char* name, std::size_t index) const {
    const Json& value = at(name, index);
    if (!value.is_number_integer() || value.get<std::int64_t>() < 0) {
      throw InputError(file_, fmt::format("/kernels/{}/{}", name, index),
                       "expected an integer of 0 or more, got " + describe(value));
    }
    return value.get<std::int64_t>();
  }

 private:
  [[nodiscard]] const Json& at(const char* name, std::size_t index) const {
    const auto column = kernels_.find(name);
    if (column == kernels_.end() || !column->is_array() || index >= column->size()) {
      throw InputError(file_, fmt::format("/kernels/{}", name),
                       fmt::format("expected an array of at least {} values, got {}", index + 1,
                                   column == kernels_.end() ? "none" : describe(*column)));
    }
    return (*column)[index];
  }

  const Json& kernels_;
  std::string file_;
};

}  // namespace

DemandsOrigin demands_origin(const TraceWorkload& trace, const SystemSpec& system, std::span<const Program> programs) {
  DemandsOrigin origin{
      trace.file, sha256(read_packed(trace.file)), system.name, sha256(system_to_json(system)["gpu"].dump()), {}};
  for (const Program& program : programs) origin.guess_sha256.push_back(guess_hashes(program));
  return origin;
}

void write_demands(const std::filesystem::path& file, const DemandsOrigin& origin, std::span<const Program> programs,
                   const std::vector<std::vector<DemandFit>>& fits) {
  Json document;
  document["schema"] = kSchema;
  document["weft"] = version();
  document["trace"] = origin.trace;
  document["trace_sha256"] = origin.trace_sha256;
  document["system"] = origin.system;
  document["gpu_sha256"] = origin.gpu_sha256;
  document["guess_sha256"] = origin.guess_sha256;
  Json& kernels = document["kernels"];
  for (const char* column : {"program", "name", "iteration", "demand", "measured_alone_fs", "alone_fs",
                             "extra_cycles_per_block", "extra_waits", "memory_scale", "flops_scale"}) {
    kernels[column] = Json::array();
  }
  for (std::size_t p = 0; p < programs.size(); ++p) {
    each_kernel(programs[p], [&](std::size_t i, const ProgramOp& op) {
      const DemandFit& fit = fits[p][i];
      kernels["program"].push_back(p);
      kernels["name"].push_back(op.name);
      kernels["iteration"].push_back(op.iteration);
      kernels["demand"].push_back(word(op.kernel.origin));
      kernels["measured_alone_fs"].push_back(op.measured_alone > Time(0) ? Json(op.measured_alone.count()) : Json());
      kernels["alone_fs"].push_back(fit.alone.count());
      kernels["extra_cycles_per_block"].push_back(fit.extra_cycles_per_block);
      kernels["extra_waits"].push_back(fit.extra_waits ? 1 : 0);
      kernels["memory_scale"].push_back(fit.memory_scale);
      kernels["flops_scale"].push_back(fit.flops_scale);
    });
  }
  write_atomically(file, document.dump() + "\n");
}

std::vector<std::vector<DemandFit>> read_demands(const std::filesystem::path& file, const DemandsOrigin& wanted,
                                                 std::span<const Program> programs) {
  const Json document = parse_json(read_packed(file), file.string());
  JsonReader reader(document, file.string());
  static_cast<void>(reader.one_of("schema", {kSchema}));
  if (reader.string("trace_sha256") != wanted.trace_sha256) {
    reader.fail("trace_sha256", fmt::format("expected demands of {}, got those of another trace ({})", wanted.trace,
                                            reader.string("trace")));
  }
  if (reader.string("gpu_sha256") != wanted.gpu_sha256) {
    reader.fail("gpu_sha256",
                fmt::format("expected demands for the GPU of system {} as it is configured, got those for another GPU "
                            "(system {})",
                            wanted.system, reader.string("system")));
  }
  const auto guesses = document.find("guess_sha256");
  const auto held = [&](std::size_t program, std::size_t iteration) {
    const Json::json_pointer at(fmt::format("/{}/{}", program, iteration));
    return guesses != document.end() && guesses->contains(at) ? guesses->at(at) : Json();
  };
  for (std::size_t p = 0; p < wanted.guess_sha256.size(); ++p) {
    for (std::size_t i = 0; i < wanted.guess_sha256[p].size(); ++i) {
      if (held(p, i) == wanted.guess_sha256[p][i]) continue;
      reader.fail(
          "guess_sha256",
          fmt::format("expected the demands that weft {} guesses for iteration {} of program {}, got other ones "
                      "(weft {}): calibrate again, with the run's workload.fit_overlapped",
                      version(), i, p, reader.string_or("weft", "of unknown version")));
    }
  }
  const JsonReader kernels = reader.object("kernels");
  const Columns columns(kernels.value(), file.string());
  std::vector<std::vector<DemandFit>> fits;
  std::size_t n = 0;
  for (std::size_t p = 0; p < programs.size(); ++p) {
    while (static_cast<std::size_t>(columns.integer("program", n)) < p) ++n;  // iterations that are not run
    fits.emplace_back(programs[p].ops.size());
    each_kernel(programs[p], [&](std::size_t i, const ProgramOp&) {
      fits[p][i] = {columns.number("extra_cycles_per_block", n, 0), columns.integer("extra_waits", n) != 0,
                    columns.number("memory_scale", n, 0), columns.number("flops_scale", n, 0),
                    Time(columns.integer("alone_fs", n))};
      ++n;
    });
  }
  return fits;
}

}  // namespace weft
