// Draws the charts of a page from their attributes, with a tooltip. The same numbers are in the table below each chart.
import { formatNumber, toTimeText } from './portal.js';
import uPlot from './uplot.js';

const TIP_GAP = 12;

const toMinuteText = (seconds) => toTimeText(new Date(seconds * 1000)).slice(0, -3);
const clockOf = (seconds) => toMinuteText(seconds).slice(-5);
const dayOf = (seconds) => toMinuteText(seconds).slice(0, -7);

function toIntervalText(start, step) {
  if (step <= 60) return toMinuteText(start);
  const end = start + step;
  return `${toMinuteText(start)} – ${dayOf(start) === dayOf(end) ? clockOf(end) : toMinuteText(end)}`;
}

/** Shows the time and the value of each series next to the cursor. */
function showTip({ cursor: { idx, left }, data: [times, ...values], series: [, ...series], over }) {
  const tip = over.querySelector('.tip') ?? over.appendChild(document.createElement('div'));
  tip.className = 'tip';
  tip.hidden = idx == null || left < 0;
  if (tip.hidden) return;
  tip.replaceChildren();
  const add = (parent, name, text, className) => {
    const element = parent.appendChild(document.createElement(name));
    [element.textContent, element.className] = [text, className];
    return element;
  };
  add(tip, 'div', toIntervalText(times[idx], times[1] - times[0] || 60), 'muted');
  for (const [index, { label, color }] of series.entries()) {
    const line = add(tip, 'div', '', `status ${color}`);
    add(line, 'b', formatNumber(values[index][idx]), '');
    add(line, 'span', ` ${label}`, 'muted');
  }
  const right = left + TIP_GAP;
  const fits = right + tip.offsetWidth <= over.clientWidth;
  tip.style.left = `${fits ? right : Math.max(0, left - TIP_GAP - tip.offsetWidth)}px`;
}

export function drawChart(root) {
  const [points, described] = [root.dataset.points, root.dataset.series].map((text) => JSON.parse(text));
  const [start = 0, next = start + 60] = points[0];
  const end = start + (next - start) * points[0].length;
  const colorOf = (name) => () => getComputedStyle(root).getPropertyValue(`--${name}`).trim();
  const axis = { stroke: colorOf('faint'), grid: { stroke: colorOf('line'), width: 1 }, ticks: { show: false } };
  const series = described.map(([label, style, color]) => {
    const common = { label, color: color === 'red' ? 'bad' : 'ok', class: style, points: { show: false } };
    return style === 'line'
      ? { ...common, width: 1.5, stroke: colorOf(color), fill: colorOf(`${color}-soft`) }
      : { ...common, width: 0, fill: colorOf(color), paths: uPlot.paths.bars({ size: [0.8, 40], align: 1 }) };
  });
  // The first moment of a day has the date as its label.
  const toLabel = (seconds) => (clockOf(seconds) === '00:00' ? dayOf(seconds) : clockOf(seconds));
  const height = root.clientHeight;
  const options = {
    width: root.clientWidth,
    height,
    tzDate: (seconds) => uPlot.tzDate(new Date(seconds * 1000), 'UTC'),
    cursor: { y: false, drag: { x: false } },
    legend: { show: false },
    hooks: { setCursor: [showTip] },
    scales: { x: { range: () => [start, end] }, y: { range: (_, __, max) => [0, Math.max(1, max * 1.05)] } },
    axes: [
      { ...axis, size: 28, font: '11px sans-serif', values: (_, splits) => splits.map(toLabel) },
      { ...axis, size: 54, font: '11px sans-serif', values: (_, splits) => splits.map(formatNumber) },
    ],
    series: [{}, ...series],
  };
  const plot = new uPlot(options, points, root);
  new ResizeObserver(() => plot.setSize({ width: root.clientWidth, height })).observe(root);
  // A canvas does not use the styles of the page.
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => plot.redraw());
}

for (const root of document.querySelectorAll('.plot')) drawChart(root);
