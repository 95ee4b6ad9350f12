// Adds copy buttons, local times and shortcuts to pages, which also work without this script.

/** Shows a copy button and makes it copy its `data-copy` attribute. */
export function enableCopy(button) {
  button.hidden = false;
  button.addEventListener('click', async () => {
    const label = button.querySelector('.visually-hidden') ?? button.firstChild;
    const text = label.textContent;
    try {
      await navigator.clipboard.writeText(button.dataset.copy);
      button.classList.add('done');
      label.textContent = text.replace('Copy', 'Copied');
    } catch {
      button.classList.add('refused');
      label.textContent = 'Select the text and press Ctrl+C';
    }
    setTimeout(() => {
      button.classList.remove('done', 'refused');
      label.textContent = text;
    }, 2000);
  });
}

for (const button of document.querySelectorAll('button.copy')) enableCopy(button);

export const toLocalTime = (instant) =>
  new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'medium' }).format(instant);

/** As `number` in `frame/format.ts`. */
export const formatNumber = (value) => value.toLocaleString('en-US');

/** As `time` in `frame/components.ts`. */
export function toTimeText(instant) {
  const [, day, month, year, clock] = instant.toUTCString().split(' ');
  const date = Number(year) === new Date().getUTCFullYear() ? '' : ` ${year}`;
  return `${month} ${Number(day)}${date}, ${clock}`;
}

/** Creates a time element as `time` in `frame/components.ts` does. */
export function createTime(ms) {
  const instant = new Date(ms);
  const element = document.createElement('time');
  element.textContent = toTimeText(instant);
  element.dateTime = instant.toISOString();
  element.title = element.dateTime.replace('T', ' ').replace('Z', ' UTC');
  addLocalTime(element);
  return element;
}

function addLocalTime(element) {
  const instant = new Date(element.dateTime);
  if (!Number.isNaN(instant.getTime())) element.title += `\n${toLocalTime(instant)} local time`;
}

for (const element of document.querySelectorAll('time[title]')) addLocalTime(element);

document.querySelector('.pages [aria-current]')?.scrollIntoView({ block: 'nearest' });

// A click anywhere in a row opens its detail, except on controls and while text is selected.
document.addEventListener('click', ({ target }) => {
  if (target.closest('a, button, input, select, textarea, summary, label') !== null) return;
  if (getSelection()?.isCollapsed === false) return;
  target.closest('tr')?.querySelector(':scope > .open > .toggle')?.click();
});

document.addEventListener('keydown', ({ key }) => {
  if (key !== 'Escape') return;
  for (const menu of document.querySelectorAll('.switch[open]')) menu.open = false;
  const drawer = document.getElementById('menu');
  if (drawer !== null) drawer.checked = false;
});
