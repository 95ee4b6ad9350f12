// Renders live messages. Client data is always inserted as text, never as markup.
import { indent } from './json.js';
import { createTime, enableCopy, formatNumber } from './portal.js';

/** More rows would slow down the page. */
const ROWS_MAX = 200;
/** Maximum number of events buffered while the page is paused. If there are more, the oldest are dropped. */
const BUFFERED_MAX = 500;
/** Longer ids are shortened. */
const SHORT_MAX = 30;
const OUTCOME_KINDS = { accepted: 'wait', stored: 'ok', fenced: 'warn', rejected: 'bad', 'dead-lettered': 'bad' };

const LABELS = {
  anonymousId: 'Anonymous id',
  userId: 'User id',
  identityType: 'Identity type',
  fromId: 'Linked id',
  fromType: 'Type of the linked id',
  toId: 'Linked to',
  toType: 'Type of the id it is linked to',
  deviceId: 'Device',
  sessionId: 'Session',
};

const root = document.querySelector('.live');
const body = root.querySelector('tbody');
const list = root.querySelector('.beside');
const drawer = root.querySelector('.drawer');
const counts = root.querySelector('.counts');
const warning = root.querySelector('.trouble');
const pause = document.querySelector('.pause');
const empty = document.querySelector('.empty');

const entries = new Map();
let buffered = [];
let dropped = 0;
let isPaused = false;
let status = null;
let perSecond = null;
let disconnects = 0;
let selected = null;

function element(name, text, className) {
  const node = document.createElement(name);
  if (text !== undefined) node.textContent = text;
  if (className !== undefined) node.className = className;
  return node;
}

/** Isolates right-to-left text from its surroundings. */
const isolate = (text) => element('bdi', text);

function link(text, href, className) {
  const node = element('a', text, className);
  node.href = href;
  return node;
}

function createCopyButton(value, name, text) {
  const button = element('button', undefined, text === undefined ? 'copy' : 'copy outline');
  button.type = 'button';
  button.dataset.copy = value;
  if (text === undefined) {
    const icon = document.querySelector('template.copy-icon')?.content.cloneNode(true);
    button.append(icon ?? '⧉', element('span', `Copy ${name}`, 'visually-hidden'));
  } else button.append(element('span', text));
  enableCopy(button);
  return button;
}

const clockOf = (ms) => new Date(ms).toISOString().slice(11, 23);

/** A rejected message has an event for each of its errors. Events of earlier gateways have no message index. */
const keyOf = (event) =>
  event.kind === 'rejection' && event.messageIndex >= 0
    ? `rejected ${event.traceId} ${event.messageIndex}`
    : event.position;

const identityOf = ({ ids = {} }) => ids.userId ?? ids.anonymousId ?? ids.toId ?? '';
const isErased = ({ event }) => event.outcome === 'fenced';

function titleOf({ event, errors }) {
  if (event.outcome === 'fenced') return 'erased person';
  if (errors.length === 0) return event.name || event.type || 'not available';
  return errors.length === 1 ? errors[0].sentence : `${errors[0].sentence}, and ${errors.length - 1} more`;
}

function createStatus({ outcome, reason }) {
  return element('span', reason ? `${outcome}: ${reason}` : outcome, `status ${OUTCOME_KINDS[outcome] ?? 'wait'}`);
}

function createCell(label, ...contents) {
  const cell = element('td');
  cell.dataset.label = label;
  cell.append(...contents);
  return cell;
}

function renderRow(entry) {
  const { event, errors, row } = entry;
  const time = createTime(event.receivedAt);
  time.textContent = clockOf(event.receivedAt);
  const open = element('button', undefined, errors.length > 0 ? 'plain bad' : 'plain');
  open.type = 'button';
  open.append(isolate(titleOf(entry)));
  open.addEventListener('click', () => select(entry));
  const hadFocus = row.contains(document.activeElement);
  row.replaceChildren(
    createCell('Received', time),
    createCell('Status', createStatus(event)),
    createCell('Type', event.type ?? ''),
    createCell('Event', open),
    createCell('Surface', event.surface ? element('span', event.surface, 'tag') : '', event.test ? ' test' : ''),
    createCell('Player', isolate(identityOf(event))),
  );
  if (hadFocus) open.focus();
}

function toDelay(ms) {
  const sign = ms < 0 ? '−' : '+';
  return Math.abs(ms) < 1000 ? `${sign}${Math.abs(ms)} ms` : `${sign}${(Math.abs(ms) / 1000).toFixed(1)} s`;
}

function createList() {
  const node = element('dl', undefined, 'kv');
  const add = (term, ...values) => {
    const contents = values.filter((value) => value !== undefined && value !== '');
    if (contents.length === 0) return;
    const description = element('dd');
    for (const value of contents) description.append(typeof value === 'string' ? isolate(value) : value);
    node.append(element('dt', term), description);
  };
  const addCopyable = (term, value) => {
    if (!value) return;
    const code = element('code', value.length > SHORT_MAX ? `${value.slice(0, 8)}…${value.slice(-4)}` : value);
    code.title = value;
    add(term, code, ' ', createCopyButton(value, term.toLowerCase()));
  };
  return { node, add, addCopyable };
}

function renderDrawer() {
  drawer.hidden = selected === null;
  if (selected === null) return;
  const { event, errors } = selected;
  const head = element('div', undefined, 'head');
  const close = element('button', 'Close', 'plain close');
  close.type = 'button';
  close.addEventListener('click', () => select(null));
  const heading = element('h2');
  heading.append(isolate(errors.length > 0 ? 'Rejected message' : titleOf(selected)));
  head.append(heading, element('span', undefined, 'grow'), createStatus(event), close);
  drawer.replaceChildren(head);
  for (const node of [...createErrors(errors), ...createFacts(selected)]) drawer.append(node);
}

function createErrors(errors) {
  return errors.map(({ sentence, fix, code, docs }) => {
    const item = element('div', undefined, 'rule');
    const text = element('p');
    text.append(isolate(`${sentence}.`));
    const hint = element('p', `${fix} `, 'muted');
    hint.append(link(`Read about ${code}`, docs, 'docs'));
    item.append(text, hint);
    return item;
  });
}

function createFacts(entry) {
  const { event, errors } = entry;
  if (isErased(entry)) return [element('p', 'This person was erased. The content is not shown.', 'muted')];
  const { node, add, addCopyable } = createList();
  if (event.eventTime !== undefined) {
    add('Happened', createTime(event.eventTime));
    add('Received', toDelay(event.receivedAt - event.eventTime));
    if (event.storedAt) add('Stored', `at most ${toDelay(event.storedAt - event.receivedAt)}`);
  } else add('Received', createTime(event.receivedAt));
  for (const [name, id] of Object.entries(event.ids ?? {})) addCopyable(LABELS[name] ?? name, id);
  add('Client', [event.library, event.libraryVersion].filter(Boolean).join(' '));
  addCopyable('Page', event.pageUrl);
  addCopyable('Message id', event.messageId);
  addCopyable('Trace id', event.traceId);
  add('Note', event.isCut ? 'Properties or traits are longer than shown.' : '');
  const blocks = [
    ['Properties', event.properties],
    ['Traits', event.traits],
  ].flatMap(([title, json]) => {
    if (!json) return [];
    const block = element('pre', indent(json));
    block.tabIndex = 0;
    return [element('h3', title), block];
  });
  return [node, ...blocks, createActions(event, errors)];
}

function createActions(event, errors) {
  const actions = element('div', undefined, 'actions');
  const { explore, command } = root.dataset;
  if (errors.length > 0) {
    actions.append(link('Show in Rejections', `rejections?trace=${event.traceId}`, 'btn'));
    return actions;
  }
  if (event.outcome === 'stored')
    actions.append(link('Open in Explore', `${explore}?message=${event.messageId}`, 'btn'));
  if (event.identityKey) {
    actions.append(link('Player’s events', `${explore}?identity=${event.identityKey}`, 'btn'));
    actions.append(link('Open person', `${root.dataset.people}?person=${event.identityKey}`, 'btn'));
  }
  // The command is complete only if the properties and traits are.
  if (command !== '' && event.properties !== undefined && !event.isCut)
    actions.append(createCopyButton(command + toShellText(toMessage(event)), 'as curl', 'Copy as curl'));
  return actions;
}

/** Repeats a message with a new id and time. */
function toMessage({ type, name, ids = {}, surface, test, library, libraryVersion, pageUrl, properties, traits }) {
  const { deviceId, sessionId, ...others } = ids;
  const fields = {
    type,
    messageId: crypto.randomUUID(),
    eventTimestamp: new Date().toISOString(),
    ...others,
    deviceId,
    sessionId,
  };
  if (name) fields.eventName = name;
  if (surface) fields.surface = surface;
  if (test) fields.test = true;
  if (library) fields.context = { library, libraryVersion, pageUrl: pageUrl || undefined };
  const text = JSON.stringify(fields).slice(0, -1);
  const freeForm = [properties && `"properties":${properties}`, traits && `"traits":${traits}`].filter(Boolean);
  return `{"messages":[${[text, ...freeForm].join(',')}}]}`;
}

const toShellText = (text) => `'${text.replaceAll("'", "'\\''")}'`;

function select(entry) {
  selected?.row.classList.remove('on');
  const previous = selected;
  selected = entry;
  entry?.row.classList.add('on');
  renderDrawer();
  if (entry !== null) drawer.focus({ preventScroll: true });
  else previous?.row.querySelector('button')?.focus();
}

function show(event) {
  list.hidden = false;
  if (empty !== null) empty.hidden = true;
  const key = keyOf(event);
  const known = entries.get(key);
  if (known !== undefined) {
    if (event.kind === 'rejection' && !known.errors.some(({ position }) => position === event.position))
      known.errors.push(event);
    renderRow(known);
    if (known === selected) renderDrawer();
    return;
  }
  const row = element('tr');
  const entry = { row, event, errors: event.kind === 'rejection' ? [event] : [] };
  row.addEventListener('click', ({ target }) => {
    if (target.closest('button') === null && getSelection()?.isCollapsed !== false) select(entry);
  });
  renderRow(entry);
  entries.set(key, entry);
  body.prepend(row);
  for (const [oldestKey, oldest] of entries) {
    if (entries.size <= ROWS_MAX) break;
    oldest.row.remove();
    entries.delete(oldestKey);
  }
}

/** Also removes the content of erased people from buffered events and from the panel. */
function updateOutcome({ position, outcome, reason, storedAt }) {
  const withOutcome = (event) =>
    outcome === 'fenced'
      ? { kind: event.kind, position, outcome, reason: '', receivedAt: event.receivedAt }
      : { ...event, outcome, reason, storedAt };
  buffered = buffered.map((event) => (event.position === position ? withOutcome(event) : event));
  // The panel may show an entry that is no longer in the list.
  const shown = [...entries.values(), ...(selected === null ? [] : [selected])];
  for (const entry of new Set(shown.filter(({ event }) => event.position === position))) {
    entry.event = withOutcome(entry.event);
    renderRow(entry);
    if (entry === selected) renderDrawer();
  }
}

function updateStatus(event) {
  const nowMs = performance.now();
  if (status !== null && nowMs > status.atMs) perSecond = (1000 * (event.seen - status.seen)) / (nowMs - status.atMs);
  status = { ...event, atMs: nowMs };
  warn(event.trouble);
}

function showCounts() {
  if (status === null) return;
  const { isWatching, seen, shown, lost, share: fraction } = status;
  if (!isWatching) {
    counts.className = 'counts muted';
    counts.textContent = 'Connecting…';
    return;
  }
  const parts = [`Live · ${formatNumber(shown)} of ${formatNumber(seen)} messages shown`];
  if (perSecond !== null && perSecond >= 1) parts.push(`${formatNumber(Math.round(perSecond))} per second`);
  if (fraction < 1) parts.push(`sample: 1 of ${Math.round(1 / fraction)} read`);
  if (lost > 0) parts.push(`${formatNumber(lost)} dropped because this page could not keep up`);
  if (buffered.length > 0) parts.push(`${buffered.length} waiting`);
  if (dropped > 0) parts.push(`${formatNumber(dropped)} dropped while paused`);
  if (disconnects > 0) parts.push(`disconnections: ${disconnects} (messages sent while disconnected are not shown)`);
  counts.className = 'counts muted status watching';
  counts.textContent = parts.join(' · ');
}

function warn(text) {
  warning.textContent = text;
  warning.hidden = text === '';
}

function handle(event) {
  if (event.kind === 'outcome') updateOutcome(event);
  else if (event.kind === 'status') updateStatus(event);
  else if (event.kind === 'end') {
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
document.addEventListener('keydown', ({ key }) => {
  if (key === 'Escape' && selected !== null) select(null);
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
