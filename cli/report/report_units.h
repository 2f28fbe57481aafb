// Numbers as people read them: three or four significant digits and a fitting unit. GB is 10^9 bytes.
#pragma once

#include <optional>
#include <string>

namespace weft {

[[nodiscard]] std::string time_text(double seconds);       // "52.3 ms"
[[nodiscard]] std::string bytes_text(double bytes);        // "4.21 GB"
[[nodiscard]] std::string bandwidth_text(double GBps);     // "231 GB/s"
[[nodiscard]] std::string factor_text(double factor);      // "1.18x"
[[nodiscard]] std::string percent_text(double fraction);   // "62 %"; 0.5 is 50 %
[[nodiscard]] std::string number_text(double value);       // "1224", "0.034"
[[nodiscard]] std::string binary_size_text(double bytes);  // "256 MiB" where it is a whole number of those

}  // namespace weft
