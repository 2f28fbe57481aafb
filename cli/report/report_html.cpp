#include "cli/report/report_html.h"

#include "cli/report/report_assets.h"
#include "cli/report/report_data.h"
#include "cli/report/report_figures.h"
#include "sim/error.h"

namespace weft {

namespace {

namespace fs = std::filesystem;

// Keeps a page of a large run near 20 MB, which browsers open in about a second.
constexpr std::size_t kMostOperations = 250'000;

void replace(std::string& text, std::string_view placeholder, std::string_view with) {
  const std::size_t at = text.find(placeholder);
  WEFT_CHECK(at != std::string::npos, std::string(placeholder));
  text.replace(at, placeholder.size(), with);
}

std::string html_text(const std::string& text) {
  std::string escaped;
  for (const char c : text) {
    switch (c) {
      case '&':
        escaped += "&amp;";
        break;
      case '<':
        escaped += "&lt;";
        break;
      case '>':
        escaped += "&gt;";
        break;
      default:
        escaped += c;
    }
  }
  return escaped;
}

// JSON has '<' only inside strings, so this keeps its meaning and no name can end the script element or open a comment.
std::string script_json(const Json& data) {
  std::string escaped;
  for (const char c : data.dump(-1, ' ', false, Json::error_handler_t::replace)) {
    if (c == '<') {
      escaped += "\\u003c";
    } else {
      escaped += c;
    }
  }
  return escaped;
}

// Placeholders are filled from the last to the first, so that what is filled in is never searched.
std::string page(const std::string& title, const std::string& script, const Json& data) {
  std::string html(report_assets::page_html);
  replace(html, "{{script}}", script);
  replace(html, "{{library}}", report_assets::chart_min_js);
  replace(html, "{{data}}", script_json(data));
  replace(html, "{{style}}", report_assets::style_css);
  replace(html, "{{title}}", html_text(title));
  return html;
}

std::string scripts(std::initializer_list<std::string_view> parts) {
  std::string all;
  for (const std::string_view part : parts) all += std::string(part) + "\n";
  return all;
}

}  // namespace

std::string run_report_html(const Json& document, const RunResult& records) {
  const Json data = report_data(document, records, kMostOperations);
  return page("weft: " + data.at("title").get<std::string>(),
              scripts({report_assets::common_js, report_assets::charts_js, report_assets::timeline_data_js,
                       report_assets::timeline_js, report_assets::loads_js, report_assets::topology_js,
                       report_assets::sections_js, report_assets::run_js}),
              data);
}

std::string comparison_report_html(const std::vector<std::pair<std::string, Json>>& results,
                                   const std::vector<fs::path>& run_dirs, const fs::path& page_folder) {
  if (!run_dirs.empty() && run_dirs.size() != results.size()) {
    throw InputError("", "",
                     "expected a folder for each result of the comparison, got " + std::to_string(run_dirs.size()) +
                         " for " + std::to_string(results.size()));
  }
  Json runs = Json::array();
  for (std::size_t i = 0; i < results.size(); ++i) {
    const auto& [label, result] = results[i];
    const auto link = [&] { return fs::absolute(run_dirs[i]).lexically_relative(fs::absolute(page_folder)); };
    runs.push_back({{"label", label},
                    {"title", describe_run(result.value("config", Json::object()))},
                    {"verdict", verdict(result)},
                    {"figures", figures_json(figures_of(result))},
                    {"link", run_dirs.empty() ? Json(nullptr) : Json((link() / "report.html").generic_string())}});
  }
  std::string title = "weft: comparison of";
  for (std::size_t i = 0; i < results.size(); ++i) title += (i == 0 ? " " : ", ") + results[i].first;
  return page(title, scripts({report_assets::common_js, report_assets::charts_js, report_assets::comparison_js}),
              {{"runs", runs}, {"verdict", comparison_verdict(results)}});
}

std::string sweep_report_html(const Json& data) {
  return page("weft: " + data.at("title").get<std::string>(),
              scripts({report_assets::common_js, report_assets::charts_js, report_assets::sweep_js}), data);
}

}  // namespace weft
