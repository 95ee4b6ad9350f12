// Fills the table of live messages. Text of clients becomes text of elements, never markup.
import { offerCopy, toOwnTime } from './portal.js';

/** Keeps the page fast. */
const ROWS_MAX = 200;
/** Events kept while the page is paused; the oldest are dropped first. */
const HELD_MAX = 500;

const root = document.querySelector('.live');
const body = root.querySelector('tbody');
const region = root.querySelector('.scroll');
const counts = root.querySelector('.counts');
const trouble = root.querySelector('.trouble');
const pause = root.querySelector('.pause');
const empty = document.querySelector('.empty');

const rows = new Map();
let held = [];
let dropped = 0;
let isPaused = false;
let status = null;
let gaps = 0;

function element(name, text, className) {
  const created = document.createElement(name);
  if (text !== undefined) created.textContent = text;
  if (className !== undefined) created.className = className;
  return created;
}

/** Isolated, so that right-to-left text moves nothing around it. */
function textOf(text) {
  return element('bdi', text);
}

function cellOf(...contents) {
  const cell = document.createElement('td');
  cell.append(...contents);
  return cell;
}

/** Copies the unchanged value. */
function toCopyButton(value, name) {
  const button = element('button', 'Copy', 'copy');
  button.type = 'button';
  button.dataset.copy = value;
  button.append(element('span', ` ${name}`, 'unseen'));
  offerCopy(button);
  return button;
}

function detailsOf(event) {
  const list = document.createElement('dl');
  const put = (name, value) => {
    if (value === undefined || value === '' || value === false) return null;
    list.append(element('dt', name));
    const shown = document.createElement('dd');
    shown.append(textOf(String(value)));
    list.append(shown);
    return shown;
  };
  const putToCopy = (name, value) => put(name, value)?.append(' ', toCopyButton(String(value), name));
  putToCopy('message id', event.messageId);
  putToCopy('trace id', event.traceId);
  put('event time', event.eventTime === undefined ? '' : new Date(event.eventTime).toISOString());
  put('library', [event.library, event.libraryVersion].filter(Boolean).join(' '));
  for (const [name, id] of Object.entries(event.ids ?? {})) putToCopy(name, id);
  putToCopy('page', event.pageUrl);
  putToCopy('properties', event.properties);
  putToCopy('traits', event.traits);
  put('cut', event.isCut ? 'properties or traits are longer' : '');
  put('reason', event.reason);
  const details = document.createElement('details');
  const summary = document.createElement('summary');
  summary.append(textOf(nameOf(event)));
  details.append(summary, list);
  return details;
}

function nameOf(event) {
  if (event.kind === 'rejection') return `${event.field}: ${event.code}`;
  return event.name || event.type || 'not shown';
}

function outcomeOf({ outcome, reason }) {
  return element('span', reason ? `${outcome}: ${reason}` : outcome, `outcome ${outcome}`);
}

function whoOf({ ids = {} }) {
  return ids.userId ?? ids.anonymousId ?? ids.toId ?? '';
}

function fill(row, event) {
  const received = new Date(event.receivedAt);
  const time = element('time', toOwnTime(received));
  time.dateTime = received.toISOString();
  const isGone = event.outcome === 'fenced';
  row.replaceChildren(
    cellOf(time),
    cellOf(outcomeOf(event)),
    cellOf(event.type ?? ''),
    isGone ? cellOf('of an erased person') : cellOf(detailsOf(event)),
    cellOf(event.test ? `${event.surface} (test)` : (event.surface ?? '')),
    cellOf(textOf(whoOf(event))),
  );
}

function show(event) {
  region.hidden = false;
  if (empty !== null) empty.hidden = true;
  const row = document.createElement('tr');
  fill(row, event);
  rows.set(event.position, { row, event });
  body.prepend(row);
  for (const [position, oldest] of rows) {
    if (rows.size <= ROWS_MAX) break;
    oldest.row.remove();
    rows.delete(position);
  }
}

/** Content of erased people is also removed while the page is paused. */
function change({ position, outcome, reason }) {
  const toChanged = (event) =>
    outcome === 'fenced'
      ? { kind: event.kind, position, outcome, reason: '', receivedAt: event.receivedAt }
      : { ...event, outcome, reason };
  held = held.map((event) => (event.position === position ? toChanged(event) : event));
  const known = rows.get(position);
  if (known === undefined) return;
  known.event = toChanged(known.event);
  if (outcome === 'fenced') fill(known.row, known.event);
  else known.row.children[1].replaceChildren(outcomeOf(known.event));
}

function showCounts() {
  if (status === null) return;
  const { isWatching, seen, shown, lost, share } = status;
  const parts = [isWatching ? `seen ${seen}, shown ${shown}` : 'Connecting…'];
  if (share < 1) parts.push(`a sample: ${Math.floor(share * 100)} % of the log was read`);
  if (lost > 0) parts.push(`${lost} dropped, because this page is too slow`);
  if (held.length > 0) parts.push(`${held.length} waiting`);
  if (dropped > 0) parts.push(`${dropped} dropped while paused`);
  if (gaps > 0) parts.push(`connection lost ${gaps} times; messages in between are not shown`);
  counts.textContent = parts.join(' · ');
}

function warn(text) {
  trouble.textContent = text;
  trouble.hidden = text === '';
}

function take(event) {
  if (event.kind === 'outcome') change(event);
  else if (event.kind === 'status') {
    status = event;
    warn(event.trouble);
  } else if (event.kind === 'end') {
    source.close();
    warn(`This view has ended: ${event.reason}. Reload the page.`);
  } else if (isPaused) {
    held.push(event);
    if (held.length > HELD_MAX) {
      held.shift();
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
    for (const event of held) show(event);
    held = [];
  }
  showCounts();
});

const source = new EventSource(root.dataset.events);
source.addEventListener('message', ({ data }) => take(JSON.parse(data)));
source.addEventListener('open', () => {
  status = null;
  warn('');
});
source.addEventListener('error', () => {
  gaps += 1;
  if (source.readyState === EventSource.CLOSED) warn('This view has ended. Reload the page.');
  else warn('Connection lost. Reconnecting…');
  showCounts();
});
