// Draws the number of messages over time.
import uPlot from './uplot.js';

const HEIGHT = 150;

for (const root of document.querySelectorAll('.plot')) {
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
  const options = {
    width: root.clientWidth,
    height: HEIGHT,
    tzDate: (seconds) => uPlot.tzDate(new Date(seconds * 1000), 'Etc/UTC'),
    legend: { show: false },
    cursor: { show: false },
    scales: { y: { range: (_, __, max) => [0, Math.max(1, max)] } },
    axes: [axis(), { ...axis(), size: 48 }],
    series: [{}, series],
  };
  const chart = new uPlot(options, JSON.parse(root.dataset.points), root);
  new ResizeObserver(() => chart.setSize({ width: root.clientWidth, height: HEIGHT })).observe(root);
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => chart.redraw());
}
