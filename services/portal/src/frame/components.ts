/** Page components: values, lists and panels. */
import { type HtmlValue, html, type Markup } from '@playline/api-docs';
import { icon } from './icons.ts';

export * from './format.ts';
export * from './forms.ts';

/** Hidden without JavaScript. */
const copyButton = (text: string, label: string) =>
  html`<button type="button" class="copy" data-copy="${text}" title="Copy" hidden>${icon('copy')}<span class="visually-hidden">Copy ${label}</span></button>`;

/** Text with a copy button. */
export function copyable(text: string, label: string): Markup {
  return html`<span class="copyable"><code>${text}</code>${copyButton(text, label)}</span>`;
}

export function copyableBlock(text: string, label: string): Markup {
  return html`<div class="sample"><pre tabindex="0"><code>${text}</code></pre>${copyButton(text, label)}</div>`;
}

const SHORTENED_CHARACTERS_MAX = 16;

/** The first and last characters of a hash, an address or an id, with a copy button for the full text. */
export function shortened(text: string, label: string): Markup {
  const shown = text.length <= SHORTENED_CHARACTERS_MAX ? text : `${text.slice(0, 8)}…${text.slice(-4)}`;
  return html`<span class="copyable"><code title="${text}">${shown}</code>${copyButton(text, label)}</span>`;
}

/** Renders epoch milliseconds in UTC, with the exact time on hover. `portal.js` formats times in the same way. */
export function time(ms: number): Markup {
  const iso = new Date(ms).toISOString();
  const [, day = '', month = '', year = '', clock = ''] = new Date(ms).toUTCString().split(' ');
  const date = Number(year) === new Date().getUTCFullYear() ? '' : ` ${year}`;
  return html`<time datetime="${iso}" title="${iso.replace('T', ' ').replace('Z', ' UTC')}">${month} ${Number(day)}${date}, ${clock}</time>`;
}

export type Header = string | { readonly text: string; readonly align: 'right' };
/** `detail` opens below the row. */
export type Row =
  | readonly HtmlValue[]
  | { readonly cells: readonly HtmlValue[]; readonly detail: HtmlValue; readonly isOpen?: boolean };

/** A table with one line per row. On narrow screens, each row is a card. @param caption announced by screen readers */
export function table(caption: string, headers: readonly Header[], rows: readonly Row[]): Markup {
  const columns = headers.map((header) => (typeof header === 'string' ? { text: header, align: 'left' } : header));
  const hasDetails = rows.some((row) => 'detail' in row);
  const toCell = (cell: HtmlValue, index: number) =>
    html`<td data-label="${columns[index]?.text ?? ''}"${toAlign(columns[index]?.align)}>${cell}</td>`;
  const toRow = (row: Row, index: number) => {
    if (!('detail' in row)) return html`<tr>${hasDetails ? html`<td></td>` : ''}${row.map(toCell)}</tr>\n`;
    // A checkbox opens the detail without JavaScript.
    const toggle = html`<td class="open"><input type="checkbox" class="toggle" autocomplete="off"${row.isOpen === true ? html` checked` : ''} aria-label="Show details of row ${index + 1}"></td>`;
    return html`<tr>${toggle}${row.cells.map(toCell)}</tr>
<tr class="detail"><td colspan="${columns.length + 1}">${row.detail}</td></tr>\n`;
  };
  const toggleHeader = html`<th scope="col" class="open"><span class="visually-hidden">Details</span></th>`;
  return html`<div class="scroll" tabindex="0" role="region" aria-label="${caption}"><table><caption class="visually-hidden">${caption}</caption>
<thead><tr>${hasDetails ? toggleHeader : ''}${columns.map(({ text, align }) => html`<th scope="col"${toAlign(align)}>${text}</th>`)}</tr></thead>
<tbody>${rows.map(toRow)}</tbody></table></div>`;
}

const toAlign = (align = 'left'): Markup => (align === 'right' ? html` class="right"` : html``);

/** A path of the documentation. The portal redirects these paths to the service that has the page. */
type DocsPath = `/docs${string}`;

export const docsLink = (path: DocsPath, text: string): Markup => html`<a class="docs" href="${path}">${text}</a>`;

/** Replaces an empty list. `content` explains what will appear and how to get it. */
export function emptyState(
  title: string,
  content: HtmlValue,
  docs?: { readonly path: DocsPath; readonly text: string },
): Markup {
  const link = docs === undefined ? '' : html`<p>${docsLink(docs.path, docs.text)}</p>`;
  return html`<section class="empty"><h2>${title}</h2>${content}${link}</section>`;
}

export function panel(
  title: string,
  content: HtmlValue,
  { note = '', actions = '' }: { readonly note?: HtmlValue; readonly actions?: HtmlValue } = {},
): Markup {
  return html`<section class="panel"><header><h2>${title}</h2><span class="muted">${note}</span><span class="grow"></span>${actions}</header><div class="body">${content}</div></section>`;
}

/** A figure in a `<section class="cards">`. */
export const stat = (title: string, value: HtmlValue, detail: HtmlValue = ''): Markup =>
  html`<div class="panel card"><div class="k">${title}</div><div class="v">${value}</div><div class="d muted">${detail}</div></div>`;

export const status = (kind: 'ok' | 'wait' | 'warn' | 'bad', text: HtmlValue): Markup =>
  html`<span class="status ${kind}">${text}</span>`;

export const tag = (text: HtmlValue): Markup => html`<span class="tag">${text}</span>`;

export const keyValues = (rows: readonly (readonly [term: HtmlValue, value: HtmlValue])[]): Markup =>
  html`<dl class="kv">${rows.map(([term, value]) => html`<dt>${term}</dt><dd>${value}</dd>`)}</dl>`;

/** All fields of a row with its exact values, as in the CSV file of the page. */
export const fields = (names: readonly string[], values: readonly string[]): Markup =>
  keyValues(names.map((name, index) => [toTerm(name), values[index] ? copyable(values[index], name) : '–']));

const toTerm = (name: string) => name.charAt(0).toUpperCase() + name.slice(1);

export const segments = (
  label: string,
  choices: readonly { readonly text: string; readonly href: string; readonly isCurrent: boolean }[],
): Markup =>
  html`<nav class="seg" aria-label="${label}">${choices.map(
    ({ text, href, isCurrent }) => html`<a href="${href}"${isCurrent ? html` aria-current="true"` : ''}>${text}</a>`,
  )}</nav>`;

/**
 * A chart that `chart.js` draws. A series is a line with an area, or bars.
 * @param points the times in epoch seconds, and the values of each series
 */
export const chart = (
  label: string,
  series: readonly (readonly [label: string, style: 'line' | 'bars', color: 'accent' | 'red'])[],
  points: readonly (readonly number[])[],
): Markup =>
  html`<div class="plot" data-points="${JSON.stringify(points)}" data-series="${JSON.stringify(series)}" role="img" aria-label="${label}"></div>`;

/** A collapsible section that works without JavaScript. */
export function disclosure(title: string, content: HtmlValue, isOpen = false): Markup {
  return html`<details class="disclosure"${isOpen ? html` open` : ''}><summary>${title}</summary>${content}</details>`;
}
