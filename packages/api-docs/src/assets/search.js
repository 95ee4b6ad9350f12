// Loaded by every page. Opens the search with a click or the key "/". The index is a static file of each service.

const link = document.querySelector('[data-search]');
const RESULTS_MAX = 12;

let dialog = null;
/** Null until the indexes are loaded. */
let entries = null;

link.addEventListener('click', (event) => {
  event.preventDefault();
  open();
});
addEventListener('keydown', (event) => {
  // The input of the dialog keeps the focus for a moment after the dialog was closed.
  const isTyping = event.target.matches?.('input, textarea, select') && event.target.checkVisibility();
  if (event.key !== '/' || isTyping || event.ctrlKey || event.metaKey || event.altKey) return;
  event.preventDefault();
  open();
});

function open() {
  dialog ??= createDialog();
  if (dialog.open) return;
  dialog.showModal();
  dialog.querySelector('input').select();
}

function createDialog() {
  const element = document.createElement('dialog');
  element.className = 'results';
  element.setAttribute('aria-label', 'Search the documentation');
  element.innerHTML =
    '<input type="text" aria-label="Search" placeholder="Field, error code or guide" autocomplete="off"><p role="status" class="hint"></p><ul></ul>';
  const [input, list] = [element.querySelector('input'), element.querySelector('ul')];
  input.addEventListener('input', () => showResults(element));
  element.addEventListener('keydown', (event) => {
    const links = [...list.querySelectorAll('a')];
    const index = links.indexOf(document.activeElement);
    if (event.key === 'Enter' && document.activeElement === input) links[0]?.click();
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step === undefined) return;
    event.preventDefault();
    (links[index + step] ?? (step < 0 ? input : links.at(-1)))?.focus();
  });
  list.addEventListener('click', () => element.close());
  element.addEventListener('click', (event) => {
    if (event.target === element) element.close();
  });
  document.body.append(element);
  loadIndexes(element);
  return element;
}

/** Reads the index of this service, and of the other service if it can be reached. */
async function loadIndexes(element) {
  const roots = [new URL('..', import.meta.url).href, link.dataset.search].filter((root) => root !== '');
  const lists = await Promise.allSettled(
    roots.map(async (root, order) => {
      const base = root.replace(/\/$/, '');
      const index = await (await fetch(`${base}/docs/search.json`, { credentials: 'omit' })).json();
      return index.map((entry) => ({
        href: base + entry.path,
        entry,
        order,
        all: `${entry.page} ${entry.heading} ${entry.text}`.toLowerCase(),
      }));
    }),
  );
  const seen = new Set();
  entries = lists
    .flatMap(({ value }) => value ?? [])
    .filter(({ entry, order }) => {
      // Both services serve the guides.
      const id = `${entry.path} ${entry.page} ${entry.text}`;
      return order === 0 ? seen.add(id) : !seen.has(id);
    });
  showResults(element);
}

function showResults(element) {
  const terms = element
    .querySelector('input')
    .value.toLowerCase()
    .split(/\s+/)
    .filter((term) => term !== '');
  const found =
    terms.length === 0 ? [] : (entries ?? []).filter(({ all }) => terms.every((term) => all.includes(term)));
  const best = found.sort((a, b) => scoreOf(b, terms) - scoreOf(a, terms)).slice(0, RESULTS_MAX);
  const list = element.querySelector('ul');
  list.replaceChildren();
  for (const one of best) list.append(toItem(one, terms));
  const count = found.length === 1 ? '1 result' : `${found.length} results`;
  const status = entries === null ? 'Loading …' : count;
  element.querySelector('[role=status]').textContent = terms.length === 0 ? 'Type to search all pages.' : status;
}

const WEIGHTS = { page: 6, heading: 4 };
const OCCURRENCES_MAX = 10;

/** A page whose title contains a term is more relevant than a section that mentions it often. */
function scoreOf({ entry, all }, terms) {
  let score = entry.heading === '' ? 0.5 : 0;
  for (const term of terms) {
    for (const [name, weight] of Object.entries(WEIGHTS)) if (entry[name].toLowerCase().includes(term)) score += weight;
    score += Math.min(all.split(term).length - 1, OCCURRENCES_MAX) / 2;
  }
  return score;
}

const CONTEXT = 40;

function toItem({ href, entry }, terms) {
  const item = document.createElement('li');
  const anchor = document.createElement('a');
  anchor.href = href;
  anchor.textContent = entry.heading === '' ? entry.page : `${entry.page}: ${entry.heading}`;
  const text = document.createElement('small');
  const start = Math.max(entry.text.toLowerCase().indexOf(terms[0]) - CONTEXT, 0);
  text.textContent = (start > 0 ? '…' : '') + entry.text.slice(start, start + 4 * CONTEXT);
  anchor.append(text);
  item.append(anchor);
  return item;
}
