// The files of cli/report/, compiled in.
#pragma once

#include <string_view>

namespace weft::report_assets {

extern const std::string_view page_html;
extern const std::string_view style_css;
extern const std::string_view common_js;
extern const std::string_view charts_js;
extern const std::string_view timeline_data_js;
extern const std::string_view timeline_js;
extern const std::string_view loads_js;
extern const std::string_view topology_js;
extern const std::string_view sections_js;
extern const std::string_view run_js;
extern const std::string_view comparison_js;
extern const std::string_view sweep_js;
extern const std::string_view chart_min_js;  // Chart.js, from Debian's libjs-chart.js

}  // namespace weft::report_assets
