#include "cli/report/report_units.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <utility>

namespace weft {

namespace {

// At least three significant digits, whole numbers from 1000 on.
std::string digits(double value) {
  const double size = std::fabs(value);
  if (size >= 100) return fmt::format("{:.0f}", value);
  if (size >= 10) return fmt::format("{:.1f}", value);
  if (size >= 0.9995) return fmt::format("{:.2f}", value);
  return fmt::format("{:.3g}", value);
}

template <std::size_t N>
std::string scaled(double value, const std::array<std::pair<double, const char*>, N>& units) {
  for (const auto& [size, unit] : units) {
    // 0.9995 of a unit would print as 1000 of the smaller one.
    if (std::fabs(value) >= 0.9995 * size) return digits(value / size) + " " + unit;
  }
  return digits(value / units.back().first) + " " + units.back().second;
}

}  // namespace

std::string time_text(double seconds) {
  static constexpr std::array<std::pair<double, const char*>, 4> kUnits{
      {{1, "s"}, {1e-3, "ms"}, {1e-6, "us"}, {1e-9, "ns"}}};
  if (seconds == 0) return "0 ms";
  return scaled(seconds, kUnits);
}

std::string bytes_text(double bytes) {
  static constexpr std::array<std::pair<double, const char*>, 5> kUnits{
      {{1e12, "TB"}, {1e9, "GB"}, {1e6, "MB"}, {1e3, "kB"}, {1, "B"}}};
  if (bytes == 0) return "0 B";
  return scaled(bytes, kUnits);
}

std::string bandwidth_text(double GBps) { return digits(GBps) + " GB/s"; }
// A slowdown of half a per cent is worth telling from one of one.
std::string factor_text(double factor) { return fmt::format("{:.{}f}x", factor, std::fabs(factor - 1) < 0.1 ? 3 : 2); }
std::string number_text(double value) { return digits(value); }

std::string percent_text(double fraction) {
  const double percent = fraction * 100;
  return fmt::format("{:.{}f} %", percent, std::fabs(percent) < 10 ? 1 : 0);
}

std::string binary_size_text(double bytes) {
  static constexpr std::array<std::pair<double, const char*>, 3> kUnits{
      {{1073741824, "GiB"}, {1048576, "MiB"}, {1024, "KiB"}}};
  for (const auto& [size, unit] : kUnits) {
    if (bytes >= size && std::fmod(bytes, size) == 0) return fmt::format("{:.0f} {}", bytes / size, unit);
  }
  return bytes_text(bytes);
}

}  // namespace weft
