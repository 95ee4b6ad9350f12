// Renders live messages. Client data is always inserted as text, never as markup.
import { enableCopy, toLocalTime } from './portal.js';

/** More rows would slow down the page. */
const ROWS_MAX = 200;
/** Maximum number of events buffered while the page is paused. If there are more, the oldest are dropped. */
const BUFFERED_MAX = 500;

const root = document.querySelector('.live');
const body = root.querySelector('tbody');
const region = root.querySelector('.scroll');
const counts = root.querySelector('.counts');
const warning = root.querySelector('.trouble');
const pause = root.querySelector('.pause');
const empty = document.querySelector('.empty');

const rows = new Map();
let buffered = [];
let dropped = 0;
let isPaused = false;
let status = null;
let disconnects = 0;

function element(name, text, className) {
  const node = document.createElement(name);
  if (text !== undefined) node.textContent = text;
  if (className !== undefined) node.className = className;
  return node;
}

/** Isolates right-to-left text from its surroundings. */
function isolate(text) {
  return element('bdi', text);
}

function createCell(...contents) {
  const cell = document.createElement('td');
  cell.append(...contents);
  return cell;
}

function createCopyButton(value, name) {
  const button = element('button', 'Copy', 'copy');
  button.type = 'button';
  button.dataset.copy = value;
  button.append(element('span', ` ${name}`, 'visually-hidden'));
  enableCopy(button);
  return button;
}

function createDetails(event) {
  const list = document.createElement('dl');
  const add = (name, value) => {
    if (value === undefined || value === '' || value === false) return null;
    list.append(element('dt', name));
    const description = document.createElement('dd');
    description.append(isolate(String(value)));
    list.append(description);
    return description;
  };
  const addCopyable = (name, value) => add(name, value)?.append(' ', createCopyButton(String(value), name));
  addCopyable('message id', event.messageId);
  addCopyable('trace id', event.traceId);
  add('event time', event.eventTime === undefined ? '' : new Date(event.eventTime).toISOString());
  add('library', [event.library, event.libraryVersion].filter(Boolean).join(' '));
  for (const [name, id] of Object.entries(event.ids ?? {})) addCopyable(name, id);
  addCopyable('page', event.pageUrl);
  addCopyable('properties', event.properties);
  addCopyable('traits', event.traits);
  add('truncated', event.isCut ? 'properties or traits are longer than shown' : '');
  add('reason', event.reason);
  const details = document.createElement('details');
  const summary = document.createElement('summary');
  summary.append(isolate(nameOf(event)));
  details.append(summary, list);
  return details;
}

function nameOf(event) {
  if (event.kind === 'rejection') return `${event.field}: ${event.code}`;
  return event.name || event.type || 'not available';
}

function createOutcome({ outcome, reason }) {
  return element('span', reason ? `${outcome}: ${reason}` : outcome, `outcome ${outcome}`);
}

function identityOf({ ids = {} }) {
  return ids.userId ?? ids.anonymousId ?? ids.toId ?? '';
}

function render(row, event) {
  const received = new Date(event.receivedAt);
  const time = element('time', toLocalTime(received));
  time.dateTime = received.toISOString();
  const isErased = event.outcome === 'fenced';
  row.replaceChildren(
    createCell(time),
    createCell(createOutcome(event)),
    createCell(event.type ?? ''),
    isErased ? createCell('erased person') : createCell(createDetails(event)),
    createCell(event.test ? `${event.surface} (test)` : (event.surface ?? '')),
    createCell(isolate(identityOf(event))),
  );
}

function show(event) {
  region.hidden = false;
  if (empty !== null) empty.hidden = true;
  const row = document.createElement('tr');
  render(row, event);
  rows.set(event.position, { row, event });
  body.prepend(row);
  for (const [position, oldest] of rows) {
    if (rows.size <= ROWS_MAX) break;
    oldest.row.remove();
    rows.delete(position);
  }
}

/** Also removes the content of erased people from buffered events. */
function updateOutcome({ position, outcome, reason }) {
  const withOutcome = (event) =>
    outcome === 'fenced'
      ? { kind: event.kind, position, outcome, reason: '', receivedAt: event.receivedAt }
      : { ...event, outcome, reason };
  buffered = buffered.map((event) => (event.position === position ? withOutcome(event) : event));
  const entry = rows.get(position);
  if (entry === undefined) return;
  entry.event = withOutcome(entry.event);
  if (outcome === 'fenced') render(entry.row, entry.event);
  else entry.row.children[1].replaceChildren(createOutcome(entry.event));
}

function showCounts() {
  if (status === null) return;
  const { isWatching, seen, shown, lost, share: fraction } = status;
  const parts = [isWatching ? `seen ${seen}, shown ${shown}` : 'Connecting…'];
  if (fraction < 1) parts.push(`sampled: ${Math.floor(fraction * 100)} % of all messages read`);
  if (lost > 0) parts.push(`${lost} dropped because this page could not keep up`);
  if (buffered.length > 0) parts.push(`${buffered.length} waiting`);
  if (dropped > 0) parts.push(`${dropped} dropped while paused`);
  if (disconnects > 0) parts.push(`disconnections: ${disconnects} (messages sent while disconnected are not shown)`);
  counts.textContent = parts.join(' · ');
}

function warn(text) {
  warning.textContent = text;
  warning.hidden = text === '';
}

function handle(event) {
  if (event.kind === 'outcome') updateOutcome(event);
  else if (event.kind === 'status') {
    status = event;
    warn(event.trouble);
  } else if (event.kind === 'end') {
    source.close();
    warn(`This view has ended: ${event.reason}. Reload the page.`);
  } else if (isPaused) {
    buffered.push(event);
    if (buffered.length > BUFFERED_MAX) {
      buffered.shift();
      dropped += 1;
    }
  } else show(event);
  showCounts();
}

pause.hidden = false;
pause.addEventListener('click', () => {
  isPaused = !isPaused;
  pause.textContent = isPaused ? 'Resume' : 'Pause';
  if (!isPaused) {
    for (const event of buffered) show(event);
    buffered = [];
  }
  showCounts();
});

const source = new EventSource(root.dataset.events);
source.addEventListener('message', ({ data }) => handle(JSON.parse(data)));
source.addEventListener('open', () => {
  status = null;
  warn('');
});
source.addEventListener('error', () => {
  disconnects += 1;
  if (source.readyState === EventSource.CLOSED) warn('This view has ended. Reload the page.');
  else warn('Connection lost. Reconnecting…');
  showCounts();
});
