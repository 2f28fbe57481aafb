#include "cli/report/figure.h"

#include <gmock/gmock.h>

#include <cmath>
#include <cstdlib>
#include <limits>

#include "cli/output/result_writer.h"
#include "cli/report/axis_scale.h"
#include "cli/report/report_pictures.h"
#include "cli/report/report_sweep.h"
#include "sim/error.h"
#include "tests/cli/run_weft.h"
#include "tests/cli/sample_result.h"
#include "tests/sim/temporary_folder.h"

namespace weft {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using weft::testing::sample_result;

constexpr const char* kTable =
    "point,gpus,algorithm,status,reason,time_s,busbw_GBps\n"
    "0,2,ring,ok,,0.002,100\n"
    "1,8,ring,ok,,0.004,80\n"
    "2,8,tree,ok,,0.003,70\n"
    "3,2,tree,failed,why,,\n"
    "4,8,ring,ok,,0.005,120\n";

std::vector<Figure> figures_of(const std::string& table, const SweepChoice& choice = {}) {
  const TemporaryFolder folder;
  folder.write("results.csv", table);
  return folder_figures(folder.path(), choice);
}

TEST(AxisScale, TicksAreOneTwoOrFiveTimesAPowerOfTen) {
  EXPECT_THAT(AxisScale(0, 9, false, 0, 100).ticks(), ElementsAre(0, 2, 4, 6, 8));
  EXPECT_THAT(AxisScale(10, 100'000, true, 0, 100).ticks(), ElementsAre(10, 100, 1000, 10'000, 100'000));
  EXPECT_THAT(AxisScale(1, 10, true, 0, 100).ticks(), ElementsAre(1, 2, 5, 10));
}

TEST(AxisScale, PlacesValuesBetweenItsEnds) {
  EXPECT_DOUBLE_EQ(AxisScale(0, 10, false, 100, 200)(5), 150);
  EXPECT_NEAR(AxisScale(1, 100, true, 100, 200)(10), 150, 1e-9);
  EXPECT_TRUE(std::isfinite(AxisScale(3, 3, true, 0, 100)(3)));
}

TEST(FigureSvg, ABarIsAsLongAsItsValue) {
  Figure figure{"f", "t", FigureKind::bars, {"s", FigureUnit::seconds}, {}};
  figure.categories = {"a"};
  figure.series = {{"one", {}, {1.0}}, {"two", {}, {3.0}}};
  const std::string svg = figure_svg(figure);
  // 640 less a margin of 62 and one of 16.
  EXPECT_THAT(svg, HasSubstr("x=\"62.0\" y=\"46.0\" width=\"140.5\""));
  EXPECT_THAT(svg, HasSubstr("x=\"202.5\" y=\"46.0\" width=\"421.5\""));
}

TEST(FigureSvg, NamesStayText) {
  Figure figure{"f", "<script> & \x01", FigureKind::lines, {"x"}, {"y"}};
  figure.series = {{"</svg>", {1, 2}, {3, 4}}};
  const std::string svg = figure_svg(figure);
  EXPECT_THAT(svg, HasSubstr("&lt;script&gt; &amp; <"));
  EXPECT_THAT(svg, HasSubstr("&lt;/svg&gt;"));
}

TEST(FigureSvg, AreasLieOnEachOther) {
  Figure figure{"f", "t", FigureKind::areas, {"x"}, {"y"}};
  figure.series = {{"low", {0, 1}, {1, 1}}, {"high", {0, 1}, {1, 1}}};
  const std::string svg = figure_svg(figure);
  // From the plot's bottom at 322 up, 280 pixels for 2.1: 1 lies at 188.7, 2 at 55.3.
  EXPECT_THAT(svg, HasSubstr("M62.0,188.7H624.0L624.0,188.7L624.0,322.0V322.0L62.0,322.0Z"));
  EXPECT_THAT(svg, HasSubstr("M62.0,55.3H624.0L624.0,55.3L624.0,188.7V188.7L62.0,188.7Z"));
}

TEST(FigureSvg, WhatDoesNotChangeTakesNoPoints) {
  Figure figure{"f", "t", FigureKind::steps, {"x"}, {"y"}};
  figure.series = {{"one", {0, 1, 2, 3, 4}, {1, 1, 1, 2, 2}}};
  EXPECT_THAT(figure_svg(figure), HasSubstr("d=\"M62.0,188.7H483.5L483.5,55.3H624.0L624.0,55.3\""));
}

TEST(FigureSvg, ACellWithoutAValueIsLeftOut) {
  Figure figure{"f", "t", FigureKind::heat, {"x"}, {"y"}};
  figure.categories = {"a", "b"};
  figure.series = {{"row", {}, {1.0, std::numeric_limits<double>::quiet_NaN()}}};
  EXPECT_THAT(figure_svg(figure), Not(HasSubstr("nan")));
}

TEST(FigureOfASweep, CurvesTakeTheBestOfSeveralPoints) {
  const Figure curves = figures_of(kTable)[0];
  EXPECT_EQ(curves.name, "curves");
  EXPECT_EQ(curves.x.label, "gpus");
  ASSERT_EQ(curves.series.size(), 2U);
  EXPECT_THAT(curves.series[0].x, ElementsAre(2, 8));
  EXPECT_THAT(curves.series[0].y, ElementsAre(0.002, 0.004));
  EXPECT_EQ(curves.series[1].name, "algorithm tree");
  EXPECT_THAT(curves.series[1].y, ElementsAre(0.003));
}

TEST(FigureOfASweep, ShowsWhatIsChosen) {
  const auto figures = figures_of(kTable, {"algorithm", "gpus", "busbw_GBps", "time_s"});
  EXPECT_EQ(figures[0].x.label, "algorithm");
  EXPECT_EQ(figures[1].name, "heat");
  EXPECT_THAT(figures[1].categories, ElementsAre("ring", "tree"));
  EXPECT_DOUBLE_EQ(figures[1].series[1].y[0], 120);  // more is better
  EXPECT_EQ(figures[2].x.label, "busbw_GBps");
  EXPECT_THROW(figures_of(kTable, {"none", "", "", ""}), InputError);
}

TEST(FigureOfASweep, TheFrontHoldsPointsThatNoOtherBeats) {
  const Figure pareto = figures_of(kTable)[2];
  EXPECT_EQ(pareto.series[1].name, "Pareto front");
  EXPECT_THAT(pareto.series[1].x, ElementsAre(0.002, 0.005));
  EXPECT_THAT(pareto.series[0].x, ElementsAre(0.003, 0.004));
}

OperationRecord operation(std::uint32_t gpu, std::uint32_t iteration, double start, double end, double alone) {
  OperationRecord one;
  one.gpu = gpu, one.iteration = iteration, one.start_s = start, one.end_s = end, one.name = "k";
  one.phase = TrainingPhase::backward;
  if (alone > 0) one.isolated_s = alone;
  return one;
}

TEST(FigureOfTheTimeline, ShowsTheLastIterationOfTheFirstGpu) {
  RunResult run;
  run.operations = {operation(0, 0, 0, 1, 1), operation(0, 1, 2, 3, 1), operation(0, 1, 4, 6, 1),
                    operation(1, 1, 9, 10, 1), operation(0, 1, 2, 5, 0)};
  run.operations.back().communication = true;
  run.operations.back().stream = 7;
  const Figure figure = timeline_figure(run);
  EXPECT_THAT(figure.categories, ElementsAre("phase", "stream 0", "stream 7"));
  ASSERT_EQ(figure.series.size(), 4U);
  EXPECT_EQ(figure.series[0].name, "communication");
  EXPECT_THAT(figure.series[0].y, ElementsAre(3));
  EXPECT_THAT(figure.series[0].z, ElementsAre(2));
  EXPECT_THAT(figure.series[1].x, ElementsAre(0));  // as fast as alone, from the iteration's begin
  EXPECT_THAT(figure.series[2].x, ElementsAre(2));  // twice as slow
  EXPECT_EQ(figure.series[3].name, "backward");
  EXPECT_THAT(figure.series[3].y, ElementsAre(4));
}

TEST(FigureOfTheTimeline, MarksThatNobodyCanTellApartAreOne) {
  RunResult run;
  for (int i = 0; i < 1000; ++i) run.operations.push_back(operation(0, 0, 1e-6 * i, 1e-6 * i + 9e-7, 9e-7));
  run.operations.push_back(operation(0, 0, 1, 2, 1));
  EXPECT_THAT(timeline_figure(run).series[0].y, ElementsAre(::testing::DoubleNear(1e-3, 1e-6), 2));
}

TEST(FigureOfTheTopology, PutsSwitchesAboveGpusAndJoinsLanes) {
  const auto link = [](const char* name, double busy) { return Json{{"name", name}, {"busy_fraction", busy}}; };
  const Figure figure =
      topology_figure({link("gpu10->switch0.0", 0.25), link("gpu10->switch0.1", 0.5), link("switch0->gpu2.0", 0.75)});
  EXPECT_THAT(figure.categories, ElementsAre("gpu2", "gpu10", "switch0"));
  EXPECT_THAT(figure.series[0].x, ElementsAre(0.25, 0.75, 0.5));
  EXPECT_THAT(figure.series[0].y, ElementsAre(0, 0, 1));
  EXPECT_THAT(figure.series[1].z, ElementsAre(0.5, 0.75));  // the busier of lanes and directions
}

TEST(FigureOfTheTopology, GpusThatAreJoinedLieInACircle) {
  const auto link = [](const char* name) { return Json{{"name", name}, {"busy_fraction", 0.5}}; };
  const Figure figure = topology_figure({link("gpu0->gpu1.0"), link("gpu1->gpu2.0"), link("gpu2->gpu0.0")});
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_NEAR(std::hypot((figure.series[0].x[i] - 0.5) / 0.9, figure.series[0].y[i] - 0.5), 0.48, 1e-9);
  }
  EXPECT_THAT(figure_svg(figure), HasSubstr(">gpu2</text>"));
}

TEST(FigureCommand, WritesPicturesAndSaysWhichThereAre) {
  const TemporaryFolder folder;
  write_run_directory(sample_result(), folder.path() / "run");
  EXPECT_EQ(weft("report run --svg backward -o out", folder).output, "out/backward.svg\n");
  EXPECT_THAT(read_file(folder.path() / "out" / "backward.svg"), HasSubstr("compute units"));
  const Ran ran = weft("report run --svg nothing", folder);
  EXPECT_EQ(ran.code, 65);
  EXPECT_THAT(ran.errors, HasSubstr("iteration, backward, timeline, kernels, collectives, hbm-load"));
}

TEST(FigureCommand, GnuplotDrawsEveryFigure) {
  if (std::system("command -v gnuplot >/dev/null") != 0) GTEST_SKIP() << "gnuplot is not here (install_deps.sh --test)";
  const TemporaryFolder folder;
  RunResult run = sample_result({2, 1, false});
  run.counters.push_back({"a", "GiB", 1e-3, {1, 2, 3}, 0, CounterKind::memory, 80.0});
  run.counters.push_back({"b", "GiB", 1e-3, {3, 2, 1}, 0, CounterKind::memory, 80.0});
  run.counters.push_back({"l", "%", 1e-3, {3, 2, 1}, 0, CounterKind::link, 100.0});
  write_run_directory(run, folder.path() / "run");
  folder.write("sweep/results.csv", kTable);
  for (const char* what : {"run", "sweep"}) {
    for (const Figure& figure : folder_figures(folder.path() / what, {})) {
      folder.write(figure.name + ".dat", figure_data(figure));
      folder.write(figure.name + ".gp", figure_gnuplot(figure));
      const std::string command = "cd '" + folder.path().string() + "' && gnuplot " + figure.name + ".gp 2>errors";
      EXPECT_EQ(std::system(command.c_str()), 0) << figure.name << ": " << read_file(folder.path() / "errors");
      EXPECT_GT(std::filesystem::file_size(folder.path() / (figure.name + ".pdf")), 1000U) << figure.name;
    }
  }
}

}  // namespace
}  // namespace weft
