// Draws the number of messages over time.
import { indent } from './json.js';
import uPlot from './uplot.js';

const HEIGHT = 150;
const DAY_S = 86_400;
const INCREMENTS = Array.from({ length: 24 }, (_, index) => [1, 2, 5][index % 3] * 10 ** Math.floor(index / 3));

function draw(root) {
  const colorOf = (name) => getComputedStyle(root).getPropertyValue(name).trim();
  const axis = () => ({
    stroke: () => colorOf('--muted'),
    grid: { stroke: () => colorOf('--line'), width: 1 },
    ticks: { show: false },
    font: '11px system-ui',
  });
  const series = {
    label: 'Messages',
    fill: () => colorOf('--accent'),
    width: 0,
    points: { show: false },
    paths: uPlot.paths.bars({ size: [0.8, 40], align: 1 }),
  };
  const points = JSON.parse(root.dataset.points);
  const [start = 0, next = start + 60] = points[0];
  const end = start + (next - start) * points[0].length;
  // Labels of a range of up to two days are times, and days otherwise.
  const style =
    end - start > 2 * DAY_S
      ? { month: 'short', day: 'numeric' }
      : { hour: '2-digit', minute: '2-digit', hour12: false };
  const format = new Intl.DateTimeFormat('en-US', { ...style, timeZone: 'UTC' });
  const options = {
    width: root.clientWidth,
    height: HEIGHT,
    tzDate: (seconds) => uPlot.tzDate(new Date(seconds * 1000), 'Etc/UTC'),
    legend: { show: false },
    cursor: { show: false },
    scales: { x: { range: () => [start, end] }, y: { range: (_, __, max) => [0, Math.max(1, max)] } },
    axes: [
      { ...axis(), size: 28, values: (_, splits) => splits.map((seconds) => format.format(seconds * 1000)) },
      { ...axis(), size: 48, incrs: INCREMENTS },
    ],
    series: [{}, series],
  };
  const chart = new uPlot(options, points, root);
  new ResizeObserver(() => chart.setSize({ width: root.clientWidth, height: HEIGHT })).observe(root);
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => chart.redraw());
}

for (const root of document.querySelectorAll('.plot')) draw(root);
for (const block of document.querySelectorAll('pre.json')) block.textContent = indent(block.textContent);

// The chart of a wide range arrives after the page.
const later = document.querySelector('.later a');
if (later !== null) {
  const response = await fetch(later.href);
  const page = new DOMParser().parseFromString(await response.text(), 'text/html');
  const chart = page.querySelector('.chart-panel');
  if (chart === null) later.parentElement.textContent = 'The messages could not be counted. Reload the page.';
  else {
    document.querySelector('.chart-panel').replaceWith(chart);
    for (const root of chart.querySelectorAll('.plot')) draw(root);
  }
}
