// `weft capture --counters` from the command line, of a program on the tests' own CUPTI and driver.
#pragma once

#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "tests/traces/temporary_file.h"

namespace weft::testing {

struct Ran {
  int status;
  std::string output, errors;
};

class CaptureWithCounters : public ::testing::Test {
 protected:
  // Kernels of the fake CUPTI; a negative number: every third is a collective.
  Ran run(const std::string& kernels, const std::string& variables = "", const std::string& options = "",
          const char* cupti = FAKE_CUPTI) {
    const std::string command = variables + " WEFT_CAPTURE_CUPTI=" + cupti + " " WEFT_BINARY " capture --counters -o " +
                                trace_.string() + " " + options + " -- " HOST_PROGRAM " kernels " FAKE_DRIVER " " +
                                kernels + " >" + folder_.file("out").string() + " 2>" + folder_.file("err").string();
    const int status = std::system(command.c_str());
    return {WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status), content_of(folder_.file("out")),
            content_of(folder_.file("err"))};
  }
  [[nodiscard]] bool records_are_left() const { return std::filesystem::exists(trace_.string() + ".capture"); }

  TemporaryFolder folder_;
  std::filesystem::path trace_ = folder_.file("trace.json");
};

}  // namespace weft::testing
