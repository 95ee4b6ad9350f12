// Shows what became of a request, beside it.

/** Headers that are not part of the interface are not shown. */
const TRANSPORT = /^(connection|keep-alive|date|content-length|transfer-encoding|access-control-.*)$/;

/** Same pattern as for the examples: a text followed by a colon, which is the name of a member, or another value. */
const TOKEN = /("(?:[^"\\]|\\.)*")(\s*:)?|(?<![\w.-])(-?\d[\d.eE+-]*|true|false|null)(?![\w.-])/g;

const CODE = /^[A-Z][A-Z_]*$/;

export function showSending(form) {
  showOutcome(form, { tone: 'quiet', head: 'Sending …' });
}

/** `text` is the body; `tookMs` how long the answer took, in milliseconds. */
export function showAnswer(form, { answer, text, tookMs }) {
  const detail = JSON.parse(form.dataset.answers)[answer.status] ?? answer.statusText;
  showOutcome(form, {
    tone: answer.ok ? 'good' : 'bad',
    head: String(answer.status),
    detail: ` ${detail} (${Math.max(1, Math.round(tookMs))} ms)`,
  });
  const headers = [...answer.headers].filter(([name]) => !TRANSPORT.test(name));
  const shown = form.querySelector('[data-answer]');
  shown.replaceChildren(`${headers.map(([name, value]) => `${name}: ${value}`).join('\n')}\n`);
  if (text !== '') {
    shown.append('\n');
    for (const part of toParts(indented(text))) shown.append(part);
  }
  shown.hidden = false;
}

export function showFailure(form, error) {
  showOutcome(form, { tone: 'bad', head: 'No answer', detail: `: ${error.message}` });
  form.querySelector('[data-answer]').hidden = true;
}

function showOutcome(form, { tone, head, detail = '' }) {
  const strong = document.createElement('strong');
  strong.textContent = head;
  const outcome = form.querySelector('[data-outcome]');
  outcome.className = tone;
  outcome.replaceChildren(strong, detail);
}

function indented(text) {
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}

/**
 * Splits the text into parts with their kinds. Codes that have a page, and the link of an error, become links to pages
 * of this service.
 */
function toParts(text) {
  const parts = [];
  let end = 0;
  let member = '';
  for (const { 0: all, 1: quoted, 2: colon, index } of text.matchAll(TOKEN)) {
    parts.push(text.slice(end, index));
    end = index + all.length;
    if (quoted === undefined) parts.push(toElement('span', 'value', all));
    else if (colon === undefined) parts.push(toText(member, quoted));
    else {
      member = quoted.slice(1, -1);
      parts.push(toElement('span', 'name', quoted), colon);
    }
  }
  return [...parts, text.slice(end)];
}

function toText(member, quoted) {
  const value = quoted.slice(1, -1);
  const [, path] = member === 'link' ? (/(\/docs\/.*)$/.exec(value) ?? []) : [];
  // Relative to this script, which is in the folder of the pages wherever the service runs.
  const target = path === undefined ? undefined : new URL(`..${path}`, import.meta.url).href;
  const href = member === 'code' && CODE.test(value) ? pageOf(value) : target;
  if (href === undefined) return toElement('span', 'text', quoted);
  const link = toElement('a', '', value);
  link.href = href;
  const around = toElement('span', 'text', '"');
  around.append(link, '"');
  return around;
}

/** The page of a code. The menu of every page links to all of them. */
function pageOf(code) {
  return [...document.querySelectorAll('#menu a')].find((link) => link.pathname.endsWith(`/${code}`))?.href;
}

function toElement(name, kind, text) {
  const element = document.createElement(name);
  if (kind !== '') element.className = kind;
  element.textContent = text;
  return element;
}
