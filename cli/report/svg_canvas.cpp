#include "cli/report/svg_canvas.h"

#include "cli/report/report_units.h"

namespace weft {

namespace {

std::string escaped(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '&') {
      out += "&amp;";
    } else if (c == '<') {
      out += "&lt;";
    } else if (c == '>') {
      out += "&gt;";
    } else if (static_cast<unsigned char>(c) >= 0x20) {  // no others may stand in XML
      out += c;
    }
  }
  return out;
}

}  // namespace

std::string figure_value_text(double value, FigureUnit unit) {
  if (value == 0) return "0";
  switch (unit) {
    case FigureUnit::seconds: {
      std::string text = time_text(value);
      if (text.ends_with(" us")) text.replace(text.size() - 2, 1, "µ");
      return text;
    }
    case FigureUnit::bytes:
      return bytes_text(value);
    case FigureUnit::bandwidth:
      return bandwidth_text(value);
    case FigureUnit::share:
      return fmt::format("{:.3g} %", 100 * value);
    case FigureUnit::number:
      break;
  }
  return fmt::format("{:.4g}", value);
}

void SvgCanvas::label(double x, double y, const std::string& text, const char* anchor, const std::string& more) {
  add("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\" {}>{}</text>\n", x, y, anchor, more, escaped(text));
}

void SvgCanvas::line(double x1, double y1, double x2, double y2, const char* color) {
  add("<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" stroke=\"{}\"/>\n", x1, y1, x2, y2, color);
}

std::string SvgCanvas::document(double height, const std::string& title) const {
  return fmt::format(
             "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:.0f}\" height=\"{1:.0f}\" viewBox=\"0 0 {0:.0f} "
             "{1:.0f}\" font-family=\"sans-serif\" font-size=\"11\">\n<title>{2}</title>\n<rect width=\"100%\" "
             "height=\"100%\" fill=\"#ffffff\"/>\n",
             kSvgWidth, height, escaped(title)) +
         body_ + "</svg>\n";
}

}  // namespace weft
