// How weft fails: exceptions for bad input, an always-on CHECK for broken invariants. Exit codes are promises.
#pragma once

#include <stdexcept>
#include <string>

namespace weft {

enum class ExitCode {
  done = 0,
  wrong_usage = 2,
  bad_input = 65,      // a configuration or trace that is malformed or contradicts itself
  input_missing = 66,  // a file that is not there
  internal_error = 70,
  sweep_part_failed = 75,
  interrupted = 130,
};

// Bad input from a user. what() reads "FILE: /json/path: expected ..., got ..."; parts that do not apply are left out.
class InputError : public std::runtime_error {
 public:
  explicit InputError(const std::string& message, ExitCode code = ExitCode::bad_input)
      : std::runtime_error(message), code_(code) {}
  InputError(const std::string& file, const std::string& path, const std::string& message)
      : InputError((file.empty() ? "" : file + ": ") + (path.empty() ? "" : path + ": ") + message) {}
  [[nodiscard]] ExitCode code() const { return code_; }

 private:
  ExitCode code_;
};

// A file that does not exist or cannot be opened: exit code 66.
class MissingInput : public InputError {
 public:
  explicit MissingInput(const std::string& file)
      : InputError(file + ": expected a readable file, got none", ExitCode::input_missing) {}
};

// A broken invariant of weft itself: exit code 70.
class InternalError : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

[[noreturn]] inline void check_failed(const char* condition, const char* file, int line, const std::string& detail) {
  throw InternalError(std::string(file) + ":" + std::to_string(line) + ": broken invariant: " + condition +
                      (detail.empty() ? "" : " (" + detail + ")"));
}

}  // namespace weft

#define WEFT_CHECK(condition, detail)                                                 \
  do {                                                                                \
    if (!(condition)) ::weft::check_failed(#condition, __FILE__, __LINE__, (detail)); \
  } while (false)
