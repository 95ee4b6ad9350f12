// Formats the details of a message, and shows the chart of a wide range.
import { drawChart } from './chart.js';
import { indent } from './json.js';

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
    for (const root of chart.querySelectorAll('.plot')) drawChart(root);
  }
}
