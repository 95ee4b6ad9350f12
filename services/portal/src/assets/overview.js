// Draws the chart of the overview and, before the first message, updates the first steps.

import { enableCopy } from '/assets/portal.js';
import uPlot from '/assets/uplot.js';

const HEIGHT = 220;
const REFRESH_MS = 3000;
const dark = matchMedia('(prefers-color-scheme: dark)');
const colorOf = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

const months = 'Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec'.split(' ');

const toLabel = (iso) => {
  const clock = iso.slice(11, 16);
  return clock === '00:00' ? `${months[Number(iso.slice(5, 7)) - 1]} ${Number(iso.slice(8, 10))}` : clock;
};

function draw(element) {
  const [times, accepted, rejected] = JSON.parse(element.dataset.chart);
  const axis = {
    stroke: colorOf('--faint'),
    grid: { stroke: colorOf('--line'), width: 1 },
    ticks: { show: false },
    font: '11px sans-serif',
  };
  const line = { width: 1.5, points: { show: false } };
  const [text, chart] = [document.createElement('p'), document.createElement('div')];
  text.className = 'muted';
  const showPoint = ({ cursor: { idx } }) => {
    const at = idx == null ? null : new Date(times[idx] * 1000).toISOString().slice(0, 16).replace('T', ' ');
    text.textContent =
      at === null
        ? 'Point at the chart to see its numbers.'
        : `${at} UTC: ${accepted[idx]} accepted and ${rejected[idx]} errors per minute`;
  };
  const options = {
    width: element.clientWidth,
    height: HEIGHT,
    tzDate: (s) => uPlot.tzDate(new Date(s * 1000), 'UTC'),
    cursor: { y: false, drag: { x: false } },
    legend: { show: false },
    hooks: { init: [showPoint], setCursor: [showPoint] },
    series: [
      {},
      { ...line, stroke: colorOf('--accent'), fill: colorOf('--accent-soft') },
      { ...line, stroke: colorOf('--red'), fill: colorOf('--red'), paths: uPlot.paths.bars({ size: [0.8] }) },
    ],
    axes: [
      { ...axis, size: 28, values: (_, values) => values.map((s) => toLabel(new Date(s * 1000).toISOString())) },
      { ...axis, size: 54 },
    ],
    scales: { y: { range: (_, _min, max) => [0, Math.max(1, max * 1.05)] } },
  };
  element.replaceChildren(chart, text);
  return new uPlot(options, [times, accepted, rejected], chart);
}

for (const element of document.querySelectorAll('[data-chart]')) {
  let plot = draw(element);
  // Also draws again for the other colour scheme, because a canvas does not use the styles of the page.
  dark.addEventListener('change', () => {
    plot.destroy();
    plot = draw(element);
  });
  new ResizeObserver(() => plot.setSize({ width: element.clientWidth, height: HEIGHT })).observe(element);
}

async function refresh() {
  const steps = document.querySelector('[data-refresh]');
  if (steps === null) return;
  const response = await fetch(location.href).catch(() => null);
  if (response?.ok && !response.redirected) {
    const next = new DOMParser().parseFromString(await response.text(), 'text/html').querySelector('[data-refresh]');
    // Counts exist, so the page shows them.
    if (next === null) return location.reload();
    if (next.textContent !== steps.textContent) {
      steps.replaceWith(next);
      for (const button of next.querySelectorAll('button.copy')) enableCopy(button);
    }
  }
  setTimeout(refresh, REFRESH_MS);
}

if (document.querySelector('[data-refresh]') !== null) setTimeout(refresh, REFRESH_MS);
