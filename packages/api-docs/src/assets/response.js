// Shows the response next to the request form.

/** Headers that are not shown, because they are not part of the API. */
const HIDDEN_HEADERS = /^(connection|keep-alive|date|content-length|transfer-encoding|access-control-.*)$/;

/** Matches a property name (a string before a colon) or a value. Keep in sync with `pages/example.ts`. */
const TOKEN = /("(?:[^"\\]|\\.)*")(\s*:)?|(?<![\w.-])(-?\d[\d.eE+-]*|true|false|null)(?![\w.-])/g;

export function showSending(form) {
  showOutcome(form, { tone: 'quiet', title: 'Sending …' });
}

/** `text` is the response body. */
export function showResponse(form, { response, text, durationMs }) {
  const detail = JSON.parse(form.dataset.responses)[response.status] ?? response.statusText;
  showOutcome(form, {
    tone: response.ok ? 'good' : 'bad',
    title: String(response.status),
    detail: ` ${detail} (${Math.max(1, Math.round(durationMs))} ms)`,
  });
  const headers = [...response.headers].filter(([name]) => !HIDDEN_HEADERS.test(name));
  const output = form.querySelector('[data-response]');
  output.replaceChildren(`${headers.map(([name, value]) => `${name}: ${value}`).join('\n')}\n`);
  if (text !== '')
    for (const node of ['\n', ...toNodes(indentJson(text), JSON.parse(form.dataset.codes))]) output.append(node);
  output.hidden = false;
}

export function showFailure(form, error) {
  showOutcome(form, { tone: 'bad', title: 'No response', detail: `: ${error.message}` });
  form.querySelector('[data-response]').hidden = true;
}

function showOutcome(form, { tone, title, detail = '' }) {
  const strong = document.createElement('strong');
  strong.textContent = title;
  const outcome = form.querySelector('[data-outcome]');
  outcome.className = tone;
  outcome.replaceChildren(strong, detail);
}

function indentJson(text) {
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}

/** Highlights JSON tokens. Turns codes and the `link` of an error into links. `codes` has the path of each code's page. */
function toNodes(text, codes) {
  const nodes = [];
  let end = 0;
  let member = '';
  for (const { 0: token, 1: quoted, 2: colon, index } of text.matchAll(TOKEN)) {
    nodes.push(text.slice(end, index));
    end = index + token.length;
    if (quoted === undefined) nodes.push(toElement('span', 'value', token));
    else if (colon === undefined) nodes.push(toText(member, quoted, codes));
    else {
      member = quoted.slice(1, -1);
      nodes.push(toElement('span', 'name', quoted), colon);
    }
  }
  return [...nodes, text.slice(end)];
}

function toText(member, quoted, codes) {
  const value = quoted.slice(1, -1);
  const isKnown = member === 'code' && Object.hasOwn(codes, value);
  const path = member === 'link' ? /\/docs\/.*$/.exec(value)?.[0] : isKnown ? codes[value] : undefined;
  if (path === undefined) return toElement('span', 'text', quoted);
  const link = toElement('a', '', value);
  // Relative to this script, so that links also work if a proxy adds a path prefix.
  link.href = new URL(`..${path}`, import.meta.url).href;
  const span = toElement('span', 'text', '"');
  span.append(link, '"');
  return span;
}

function toElement(name, className, text) {
  const element = document.createElement(name);
  if (className !== '') element.className = className;
  element.textContent = text;
  return element;
}
