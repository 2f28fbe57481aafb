// Writes small Kineto traces for tests.
#pragma once

#include <fmt/format.h>

#include <string>
#include <vector>

namespace weft::testing {

// Times in microseconds, as text, so that a test fixes every digit.
inline std::string kineto_event(const std::string& cat, const std::string& name, int tid, const std::string& ts,
                                const std::string& dur, const std::string& args = "") {
  return fmt::format(R"({{"ph":"X","cat":"{}","name":"{}","pid":0,"tid":{},"ts":{},"dur":{},"args":{{{}}}}})", cat,
                     name, tid, ts, dur, args);
}

inline std::string gpu_args(int stream, int correlation, const std::string& more = "") {
  return fmt::format(R"("device":0,"stream":{},"correlation":{}{}{})", stream, correlation, more.empty() ? "" : ",",
                     more);
}

inline const char* const kSmallLaunch =
    R"("registers per thread":32,"shared memory":1024,"grid":[64,2,1],"block":[128,1,1])";

inline std::string correlation(int id) { return fmt::format(R"("correlation":{})", id); }

// `head` are further keys of the document, ending in a comma.
inline std::string kineto_trace(const std::vector<std::string>& events, const std::string& head = "") {
  return fmt::format("{{{}\"schemaVersion\":1,\"traceEvents\":[\n{}\n]}}", head, fmt::join(events, ",\n"));
}

}  // namespace weft::testing
