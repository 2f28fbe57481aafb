"""The pages of `weft report` in headless Chromium, opened from disk: they draw, answer hover, filters and keys, and
neither complain nor ask the network. Arguments as for unittest; WEFT_BINARY names the program."""

import json
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
        self.assertTrue(self.browser.wait_for("document.querySelector('.pinned a')"))
        self.open(self.browser.run("return document.querySelector('.pinned a').href;").removeprefix("file://"))
        self.assertEqual(self.browser.run("return document.title;"), "the point's page")

    def test_a_point_without_a_page_says_what_makes_it(self):
        result = self.folder / "sweep" / "points" / f"{1:016x}" / "result.json"
        result.parent.mkdir(exist_ok=True)
        result.write_text("{}")
        self.open(self.report(self.folder / "sweep"))
        self.browser.run("pin(1);")
        self.assertEqual(self.browser.run("return document.querySelector('.pinned code').textContent;"),
                         "weft run points/0000000000000001/config.json -o points/0000000000000001")

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


class RunPage(Page):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        fixtures.run(cls.folder / "run", os.environ["WEFT_BINARY"])

    def setUp(self):
        self.open(self.report(self.folder / "run"))

    def test_has_every_part_and_draws_it(self):
        parts = ["time", "backward", "timeline", "hbm-load", "link-load", "memory-load", "kernels", "memory", "units", "network",
                 "collectives", "about"]
        self.assertEqual(self.browser.run("return [...document.querySelectorAll('section')].map(s => s.id);"), parts)
        for canvas in ("#timeline canvas.head", "#timeline canvas.body", "#hbm-load canvas", "#link-load canvas",
                       "#memory-load canvas", "#collectives canvas"):
            self.assert_drawn(canvas)
        self.assertIn("Backward runs 1.10×", self.browser.run("return document.querySelector('.verdict').textContent;"))

    def test_hover_on_a_kernel_says_what_held_it_up(self):
        width = self.browser.run("return document.querySelector('#timeline canvas.body').clientWidth;")
        self.browser.run("document.querySelector('#timeline canvas.body').focus();")
        self.browser.press(*"+" * 12)  # until kernels are wide; every tenth lost time
        for x in range(140, width, 4):
            self.browser.hover("#timeline canvas.body", x, 14)
            if "by HBM" in self.tip():
                break
        self.assertIn("slowdown\n2.00×", self.tip())
        self.assertIn("GPU 0, stream 0", self.tip())

    def test_loads_follow_the_span_of_the_timeline(self):
        span = "const s = Chart.getChart(document.querySelector('#hbm-load canvas')).scales.x; return s.max - s.min;"
        whole = self.browser.run(span)
        self.browser.run("[...document.querySelectorAll('#timeline button')].find(b => b.textContent === '+').click();")
        shown = "Chart.getChart(document.querySelector('#hbm-load canvas')).scales.x"
        self.browser.wait_for(f"{shown}.max - {shown}.min < 0.9 * {whole}")
        self.assertAlmostEqual(self.browser.run(span), whole / 2, delta=whole / 100)

    def test_memory_is_stacked_under_its_limit(self):
        sets = self.browser.run("return Chart.getChart(document.querySelector('#memory-load canvas')).data.datasets.map(d => [d.label, d.fill]);")
        self.assertEqual(sets[0], ["memory parameters", "origin"])
        self.assertEqual(sets[1][1], "-1")
        self.assertEqual(sets[-1][0], "limit, 80.0 GiB")
        self.hover_item("#memory-load canvas", 0, 100)
        self.assertIn("together", self.tip())

    def test_loads_of_another_gpu_can_be_chosen(self):
        choose = ("const s = document.querySelector('[data-choose=link-load]'); s.value = arguments[0]; s.dispatchEvent(new Event('change')); "
                  "return Chart.getChart(document.querySelector('#link-load canvas')).data.datasets.map(d => d.label);")
        links = self.browser.run(choose, "2")
        self.assertEqual(len(links), 9)  # 4 switches, two directions, and the limit
        self.assertTrue(all("gpu2" in link for link in links[:-1]), links)

    def test_the_topology_shows_each_link_and_its_load(self):
        lines = self.browser.run("return [...document.querySelectorAll('.topology line')].map(l => l.getAttribute('stroke'));")
        self.assertEqual(len(lines), 16)  # 4 GPUs to 4 switches
        self.assertGreater(len(set(lines)), 1)
        middle = self.browser.run("""const l = document.querySelector('.topology line'), s = l.ownerSVGElement, b = s.getBoundingClientRect();
          const k = b.width / s.viewBox.baseVal.width, at = (a) => l[a].baseVal.value;
          return [k * (0.8 * at('x1') + 0.2 * at('x2')), k * (0.8 * at('y1') + 0.2 * at('y2'))];""")
        self.browser.hover(".topology", *middle)
        self.assertRegex(self.tip(), r"gpu\d → switch\d(.|\n)*busy")

    def test_tables_sort_by_keyboard(self):
        self.browser.run("[...document.querySelectorAll('#kernels th button')].find(b => b.textContent === 'kernel').focus();")
        self.browser.press(kEnter, kEnter)
        names = self.browser.run("return [...document.querySelectorAll('#kernels tbody tr')].map(r => r.children[0].textContent);")
        self.assertEqual(names, sorted(names))

    def test_prints_in_light(self):
        self.browser.run("document.getElementById('theme').click(); window.dispatchEvent(new Event('beforeprint'));")
        self.assertEqual(self.browser.run("return document.documentElement.dataset.theme;"), "light")
        self.browser.run("window.dispatchEvent(new Event('afterprint'));")
        self.assertEqual(self.browser.run("return document.documentElement.dataset.theme;"), "dark")

    def test_a_hundred_thousand_kernels_open_quickly(self):
        fixtures.run(self.folder / "large", os.environ["WEFT_BINARY"], kernels=100_000, gpus=8, periods=2000)
        page = pathlib.Path(self.report(self.folder / "large"))
        wall = self.open(page)
        opened = self.browser.cpu_seconds()
        megabytes = page.stat().st_size / 1e6
        print(f"100000 kernels: {megabytes:.1f} MB, opened in {opened:.2f} s of the main thread ({wall:.2f} s here and now)")
        self.assertLess(megabytes, 30)
        self.assertLess(opened, 3)
        self.assert_drawn("#timeline canvas.body")


class ComparisonPage(Page):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        folder = cls.folder / "compared"
        fixtures.run(folder / "ring", os.environ["WEFT_BINARY"], kernels=200)
        result = json.loads((folder / "ring" / "result.json").read_text())
        faster = json.loads(json.dumps(result))
        faster["iteration"]["time_s"] *= 0.8
        rows = [{"label": "ring", "result": result}, {"label": "in_switch", "result": faster}]
        (folder / "comparison.json").write_text(json.dumps({"rows": rows}))

    def setUp(self):
        self.report(self.folder / "compared" / "ring")
        self.open(self.report(self.folder / "compared"))

    def test_shows_bars_and_the_table(self):
        self.assertIn("1.25× faster", self.browser.run("return document.querySelector('.verdict').textContent;"))
        widths = self.browser.run("return [...document.querySelectorAll('#iteration .stack')].map(s => [...s.children].reduce((w, c) => "
                                  "w + c.getBoundingClientRect().width, 0) / s.getBoundingClientRect().width);")
        self.assertEqual(len(widths), 2)
        self.assertAlmostEqual(widths[1] / widths[0], 0.8, delta=0.05)
        head = self.browser.run("return [...document.querySelectorAll('.compare th')].map(t => t.textContent);")
        self.assertEqual(head, ["", "ring", "in_switch"])
        self.assertIn("−20\u202f%", self.browser.run("return document.querySelector('.compare tbody tr').textContent;"))

    def test_hover_tells_a_bars_part(self):
        self.browser.hover("#backward .stack span:nth-child(2)", 3, 10)
        self.assertIn("compute units", self.tip())

    def test_leads_to_the_page_of_each_run(self):
        href = self.browser.run("return document.querySelector('.runs a').href;")
        self.open(href.removeprefix("file://"))
        self.assertEqual(self.browser.run("return document.querySelectorAll('#timeline').length;"), 1)


if __name__ == "__main__":
    if not browser.is_here():
        print("skipped: chromium and chromedriver are not here (scripts/install_deps.sh --test)")
        sys.exit(kSkipped)
    unittest.main(verbosity=2)
