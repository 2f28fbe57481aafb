"""The pages of `weft report` in headless Chromium, opened from disk: they draw, answer hover, filters and keys, and
neither complain nor ask the network. Arguments as for unittest; WEFT_BINARY names the program."""

import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

import browser
import fixtures

kSkipped = 77  # what ctest takes as skipped
kRight, kDown, kEnter, kTab = "\ue014", "\ue015", "\ue007", "\ue004"  # WebDriver's codes of keys

# Distinct colours of a canvas: an empty one has one.
kColors = """const c = document.querySelector(arguments[0]);
const d = c.getContext('2d').getImageData(0, 0, c.width, c.height).data, seen = new Set();
for (let i = 0; i < d.length; i += 4) seen.add((d[i] << 24) | (d[i + 1] << 16) | (d[i + 2] << 8) | d[i + 3]);
return seen.size;"""
# Where Chart.js drew an item, from the canvas's corner.
kPlace = """const e = Chart.getChart(document.querySelector(arguments[0])).getDatasetMeta(arguments[1]).data[arguments[2]];
const p = e.getCenterPoint ? e.getCenterPoint() : e; return [p.x, p.y];"""


class Page(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.temporary = tempfile.TemporaryDirectory()
        cls.folder = pathlib.Path(cls.temporary.name)
        cls.browser = browser.Browser()

    @classmethod
    def tearDownClass(cls):
        cls.browser.__exit__()
        cls.temporary.cleanup()

    def report(self, folder, *arguments):
        done = subprocess.run([os.environ["WEFT_BINARY"], "report", str(folder), *arguments], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout.splitlines()[-1]

    def open(self, page):
        self.browser.console()
        return self.browser.open(page)

    def tearDown(self):
        self.assertEqual(self.browser.console(), [], "the console is to stay empty")

    def assert_drawn(self, canvas, colors=8):
        self.assertGreater(self.browser.run(kColors, canvas), colors, canvas)

    def tip(self):
        return self.browser.run("const t = document.getElementById('tip'); return t.hidden ? '' : t.innerText;")

    def hover_item(self, canvas, dataset, index):
        x, y = self.browser.run(kPlace, canvas, dataset, index)
        self.browser.hover(canvas, x, y)


class SweepPage(Page):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.points = fixtures.sweep(cls.folder / "sweep")

    def setUp(self):
        self.open(self.report(self.folder / "sweep"))

    def found(self):
        return self.browser.run("return document.getElementById('found').textContent;")

    def test_draws_curves_heat_map_and_front(self):
        for part in ("curves", "heat", "pareto"):
            self.assert_drawn(f"#{part} canvas")
        self.assertEqual(self.browser.run("return document.querySelector('h2').textContent;"), "Points")
        self.assertIn("480 points, 440 of them finished.", self.browser.run("return document.body.innerText;"))

    def test_a_filter_leaves_all_charts_and_the_table(self):
        self.assertEqual(self.found(), "480 of 480 points shown")
        self.browser.run("document.querySelector('[data-filter=\"all_reduce.algorithm\"][value=ring]').click();")
        self.assertEqual(self.found(), "320 of 480 points shown")
        curves = self.browser.run("return Chart.getChart(document.querySelector('#curves canvas')).data.datasets.map(d => d.label);")
        self.assertEqual(curves, ["all_reduce.algorithm tree", "all_reduce.algorithm in_switch"])
        cells = self.browser.run("return Chart.getChart(document.querySelector('#heat canvas')).data.datasets[0].data.length;")
        self.assertEqual(cells, 20)  # sizes x 2 algorithms
        spots = self.browser.run("return Chart.getChart(document.querySelector('#pareto canvas')).data.datasets.map(d => d.data.length);")
        self.assertEqual(sum(spots), 280)
        names = self.browser.run("return [...document.querySelectorAll('#points tbody tr')].map(r => r.children[4].textContent);")
        self.assertNotIn("ring", names)

    def test_hover_names_the_point_and_a_click_links_to_its_page(self):
        self.hover_item("#curves canvas", 0, 0)
        self.assertIn("1\u202fKiB", self.tip())
        self.assertIn("the best of 16 points", self.tip())
        self.browser.run("for (const [name, value] of [['all_reduce.algorithm', 'tree'], ['all_reduce.algorithm', 'in_switch'], ['gpus', 4], "
                         "['gpus', 8], ['gpus', 16], ['network.link.bandwidth_GBps', 50], ['network.link.bandwidth_GBps', 100], "
                         "['network.link.bandwidth_GBps', 200]]) document.querySelector(`[data-filter=\"${name}\"][value=\"${value}\"]`).click();")
        self.assertEqual(self.found(), "10 of 480 points shown")
        self.hover_item("#curves canvas", 0, 0)
        self.assertIn("Point 0", self.tip())
        self.browser.click_here()
        link = self.browser.run("return document.querySelector('.pinned a').href;")
        self.open(link.removeprefix("file://"))
        self.assertEqual(self.browser.run("return document.title;"), "the point's page")

    def test_any_parameter_and_metric_can_be_chosen(self):
        self.browser.run("""const choose = (key, text) => { const s = document.querySelector(`[data-choose=${key}]`);
          s.value = [...s.options].find(o => o.text === text).value; s.dispatchEvent(new Event('change')); };
          choose('x', 'gpus'); choose('metric', 'busbw_GBps'); choose('by', '(one for all)'); choose('heatY', 'network.link.bandwidth_GBps');""")
        shown = self.browser.run("""const c = Chart.getChart(document.querySelector('#curves canvas'));
          return [c.options.scales.x.title.text, c.options.scales.y.title.text, c.data.datasets.length, c.data.datasets[0].data.length,
          Chart.getChart(document.querySelector('#heat canvas')).data.datasets[0].data.length];""")
        self.assertEqual(shown, ["gpus", "busbw_GBps", 1, 4, 40])

    def test_the_front_holds_points_that_no_other_beats(self):
        front, others = self.browser.run("return Chart.getChart(document.querySelector('#pareto canvas')).data.datasets.map(d => d.data);")
        for a in front:
            for b in front + others:  # less time, more bandwidth
                self.assertFalse(b["x"] <= a["x"] and b["y"] >= a["y"] and (b["x"], b["y"]) != (a["x"], a["y"]), (a, b))

    def test_keys_go_through_a_chart(self):
        self.browser.run("document.querySelector('#curves canvas').focus();")
        self.browser.press(kRight, kRight)
        self.assertIn("4\u202fKiB", self.tip())
        self.browser.press(kEnter)
        self.assertIn("Point", self.browser.run("return document.querySelector('.pinned').innerText;"))

    def test_is_readable_in_the_dark(self):
        self.browser.run("document.getElementById('theme').click();")
        self.assertEqual(self.browser.run("return document.documentElement.dataset.theme;"), "dark")
        self.assert_drawn("#curves canvas")
        page, ink = self.browser.run("const s = getComputedStyle(document.body); return [s.backgroundColor, s.color];")
        light = lambda rgb: sum(int(v) for v in rgb[4:-1].split(",")) / 3
        self.assertGreater(light(ink) - light(page), 150)

    def test_ten_thousand_points_are_quick(self):
        points = fixtures.sweep(self.folder / "large", gpus=(2, 4, 8, 16, 32), sizes=50, bandwidths=range(10, 150, 10))
        self.assertGreater(points, 10_000)
        wall = self.open(self.report(self.folder / "large"))
        opened = self.browser.cpu_seconds()
        self.browser.run("document.querySelector('[data-filter=gpus]').click(); "
                         "document.querySelector('#pareto canvas').getContext('2d').getImageData(0, 0, 1, 1);")
        filtered = self.browser.cpu_seconds() - opened
        print(f"{points} points: opened in {opened:.2f} s of the main thread ({wall:.2f} s here and now), filtered in {filtered:.2f} s")
        self.assertLess(opened, 3)
        self.assertLess(filtered, 2)  # all charts drawn anew


if __name__ == "__main__":
    if not browser.is_here():
        print("skipped: chromium and chromedriver are not here (scripts/install_deps.sh --test)")
        sys.exit(kSkipped)
    unittest.main(verbosity=2)
