// A configuration in `cycle` and in `sampled`, without a memory of regimes.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "cli/config/run_config.h"
#include "cli/run/programs.h"
#include "sim/json_reader.h"
#include "tests/cli/run_weft.h"
#include "tests/sim/temporary_folder.h"

namespace weft {

inline RunConfig config_of(const std::string& text) { return read_run_config(parse_json(text, "test"), "test.json"); }

inline std::vector<Program> programs_of(const RunConfig& config) {
  std::vector<std::string> notes;
  return make_programs(config, notes);
}

struct Both {
  Json cycle, sampled;
};
inline Json run_one(const std::string& config, const std::string& fidelity) {
  setenv("WEFT_REGIMES", "", 1);
  const TemporaryFolder folder;
  folder.write("e.json", config);
  const Ran ran = weft("run e.json --json --fidelity " + fidelity, folder);
  EXPECT_EQ(ran.code, 0) << ran.errors;
  return parse_json(ran.output, "result");
}
inline Both run_both(const std::string& config) { return {run_one(config, "cycle"), run_one(config, "sampled")}; }
inline double iteration(const Json& result, const char* what) { return result.at("iteration").at(what).get<double>(); }

}  // namespace weft
