// Fills the table of live messages. What clients have sent becomes text of elements, never markup.
import { offerCopy, toOwnTime } from './portal.js';

/** More nobody looks at, and the page stays quick. */
const ROWS_MAX = 200;
/** While the page is paused; the oldest go first. */
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
  const made = document.createElement(name);
  if (text !== undefined) made.textContent = text;
  if (className !== undefined) made.className = className;
  return made;
}

/** Isolated, so that letters that run the other way move nothing around them. */
function textOf(text) {
  return element('bdi', text);
}

function cellOf(...contents) {
  const cell = document.createElement('td');
  cell.append(...contents);
  return cell;
}

/** What is copied is the value as it came. */
function toCopyButton(value, name) {
  const button = element('button', 'Copy', 'copy');
  button.type = 'button';
  button.dataset.copy = value;
  button.append(element('span', ` ${name}`, 'unseen'));
  offerCopy(button);
  return button;
}

/** Values are shown as they came. */
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
  put('cut', event.isCut ? 'properties or traits go on' : '');
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

function fateOf({ fate, reason }) {
  return element('span', reason ? `${fate}: ${reason}` : fate, `fate ${fate}`);
}

function whoOf({ ids = {} }) {
  return ids.userId ?? ids.anonymousId ?? ids.toId ?? '';
}

function fill(row, event) {
  const received = new Date(event.receivedAt);
  const time = element('time', toOwnTime(received));
  time.dateTime = received.toISOString();
  const isGone = event.fate === 'fenced';
  row.replaceChildren(
    cellOf(time),
    cellOf(fateOf(event)),
    cellOf(event.type ?? ''),
    isGone ? cellOf('of somebody who is erased') : cellOf(detailsOf(event)),
    cellOf(event.test ? `${event.surface} (test)` : (event.surface ?? '')),
    cellOf(textOf(whoOf(event))),
  );
}

function show(event) {
  region.hidden = false;
  if (empty !== null) empty.hidden = true;
  const row = document.createElement('tr');
  fill(row, event);
  rows.set(event.place, { row, event });
  body.prepend(row);
  for (const [place, oldest] of rows) {
    if (rows.size <= ROWS_MAX) break;
    oldest.row.remove();
    rows.delete(place);
  }
}

/** What somebody erased has sent goes also while the page is paused. */
function change({ place, fate, reason }) {
  const toChanged = (event) =>
    fate === 'fenced'
      ? { kind: event.kind, place, fate, reason: '', receivedAt: event.receivedAt }
      : { ...event, fate, reason };
  held = held.map((event) => (event.place === place ? toChanged(event) : event));
  const known = rows.get(place);
  if (known === undefined) return;
  known.event = toChanged(known.event);
  if (fate === 'fenced') fill(known.row, known.event);
  else known.row.children[1].replaceChildren(fateOf(known.event));
}

function tell() {
  if (status === null) return;
  const { isWatching, seen, shown, lost, share } = status;
  const parts = [isWatching ? `seen ${seen}, shown ${shown}` : 'Connecting…'];
  if (share < 1) parts.push(`a sample: ${Math.floor(share * 100)} % of the log was read`);
  if (lost > 0) parts.push(`${lost} left out, because this page did not keep up`);
  if (held.length > 0) parts.push(`${held.length} wait`);
  if (dropped > 0) parts.push(`${dropped} dropped while paused`);
  if (gaps > 0) parts.push(`connection lost ${gaps} times; what came meanwhile is not shown`);
  counts.textContent = parts.join(' · ');
}

function warn(text) {
  trouble.textContent = text;
  trouble.hidden = text === '';
}

function take(event) {
  if (event.kind === 'fate') change(event);
  else if (event.kind === 'status') {
    status = event;
    warn(event.trouble);
  } else if (event.kind === 'end') {
    source.close();
    warn(`This view has ended: ${event.reason}. Load the page again.`);
  } else if (isPaused) {
    held.push(event);
    if (held.length > HELD_MAX) {
      held.shift();
      dropped += 1;
    }
  } else show(event);
  tell();
}

pause.hidden = false;
pause.addEventListener('click', () => {
  isPaused = !isPaused;
  pause.textContent = isPaused ? 'Go on' : 'Pause';
  if (!isPaused) {
    for (const event of held) show(event);
    held = [];
  }
  tell();
});

const source = new EventSource(root.dataset.events);
source.addEventListener('message', ({ data }) => take(JSON.parse(data)));
source.addEventListener('open', () => {
  status = null;
  warn('');
});
source.addEventListener('error', () => {
  gaps += 1;
  if (source.readyState === EventSource.CLOSED) warn('This view has ended. Load the page again.');
  else warn('The connection is lost; it is tried again.');
  tell();
});
