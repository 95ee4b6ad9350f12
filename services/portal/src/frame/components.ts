/** Page components: values, form fields and tables. */
import { type HtmlValue, html, type Markup } from '@playline/api-docs';
import type { PortalSettings } from '../config.ts';
import { icon } from './icons.ts';

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

/** Formats a number with thin spaces as thousands separators and an optional unit. */
export function number(value: number, unit = ''): string {
  const text = value.toLocaleString('en-US').replaceAll(',', '\u202f');
  return unit === '' ? text : `${text}\u00a0${unit}`;
}

const DURATION_UNITS: readonly (readonly [name: string, ms: number])[] = [
  ['d', 86_400_000],
  ['h', 3_600_000],
  ['min', 60_000],
  ['s', 1000],
];

/** Formats a duration in the largest unit in which its value is at least 2. Negative durations are shown as 0. */
export function duration(ms: number): string {
  const [name, unit] = DURATION_UNITS.find(([, each]) => ms >= 2 * each) ?? (['s', 1000] as const);
  return number(Math.max(0, Math.round(ms / unit)), name);
}

export function percentage(part: number, whole: number): string {
  return whole === 0 ? '–' : `${((100 * part) / whole).toFixed(1)}\u00a0%`;
}

export interface FieldOptions {
  readonly name: string;
  readonly label: string;
  readonly value?: string;
  readonly hint?: string;
  readonly type?: 'text' | 'password' | 'number' | 'email';
  readonly autocomplete?: string;
  readonly isRequired?: boolean;
  readonly maxLength?: number;
}

let fieldCount = 0;

function createFieldId(name: string): string {
  fieldCount = (fieldCount + 1) % 1_000_000;
  return `field-${name}-${fieldCount}`;
}

export function field(options: FieldOptions): Markup {
  const { name, label, value = '', hint, type = 'text', autocomplete = 'off', isRequired = false } = options;
  const id = createFieldId(name);
  return html`<div class="field"><label for="${id}">${label}</label>
<input id="${id}" name="${name}" type="${type}" value="${value}" autocomplete="${autocomplete}" maxlength="${options.maxLength ?? 300}"${isRequired ? html` required` : ''}${hint === undefined ? '' : html` aria-describedby="${id}-hint"`}>
${hint === undefined ? '' : html`<span class="hint" id="${id}-hint">${hint}</span>`}</div>`;
}

export function hidden(name: string, value: string): Markup {
  return html`<input type="hidden" name="${name}" value="${value}">`;
}

export function multilineField(options: Pick<FieldOptions, 'name' | 'label' | 'value' | 'hint'>): Markup {
  const { name, label, value = '', hint = '' } = options;
  const id = createFieldId(name);
  // HTML ignores a line break directly after the opening tag.
  return html`<div class="field"><label for="${id}">${label}</label>
<textarea id="${id}" name="${name}" rows="4" maxlength="15000" autocomplete="off" spellcheck="false" aria-describedby="${id}-hint">
${value}</textarea>
<span class="hint" id="${id}-hint">${hint}</span></div>`;
}

export interface ChoiceOptions {
  readonly name: string;
  readonly label: string;
  readonly value?: string;
  readonly choices: readonly { readonly value: string; readonly text: string }[];
}

export function choice({ name, label, value, choices }: ChoiceOptions): Markup {
  const id = createFieldId(name);
  return html`<div class="field"><label for="${id}">${label}</label>
<select id="${id}" name="${name}">${choices.map(
    (each) => html`<option value="${each.value}"${each.value === value ? html` selected` : ''}>${each.text}</option>`,
  )}</select></div>`;
}

export const withAllOption = (values: readonly string[]) => [
  { value: '', text: 'all' },
  ...values.map((value) => ({ value, text: value })),
];

export type Header = string | { readonly text: string; readonly align: 'right' };
/** `detail` opens below the row. */
export type Row = readonly HtmlValue[] | { readonly cells: readonly HtmlValue[]; readonly detail: HtmlValue };

/** A table with one line per row. On narrow screens, each row is a card. @param caption announced by screen readers */
export function table(caption: string, headers: readonly Header[], rows: readonly Row[]): Markup {
  const columns = headers.map((header) => (typeof header === 'string' ? { text: header, align: 'left' } : header));
  const hasDetails = rows.some((row) => 'detail' in row);
  const toCell = (cell: HtmlValue, index: number) =>
    html`<td data-label="${columns[index]?.text ?? ''}"${toAlign(columns[index]?.align)}>${cell}</td>`;
  const toRow = (row: Row, index: number) => {
    if (!('detail' in row)) return html`<tr>${hasDetails ? html`<td></td>` : ''}${row.map(toCell)}</tr>\n`;
    // A checkbox opens the detail without JavaScript.
    const toggle = html`<td class="open"><input type="checkbox" class="toggle" autocomplete="off" aria-label="Show details of row ${index + 1}"></td>`;
    return html`<tr>${toggle}${row.cells.map(toCell)}</tr>
<tr class="detail"><td colspan="${columns.length + 1}">${row.detail}</td></tr>\n`;
  };
  const toggleHeader = html`<th scope="col" class="open"><span class="visually-hidden">Details</span></th>`;
  return html`<div class="scroll" tabindex="0" role="region" aria-label="${caption}"><table><caption class="visually-hidden">${caption}</caption>
<thead><tr>${hasDetails ? toggleHeader : ''}${columns.map(({ text, align }) => html`<th scope="col"${toAlign(align)}>${text}</th>`)}</tr></thead>
<tbody>${rows.map(toRow)}</tbody></table></div>`;
}

const toAlign = (align = 'left'): Markup => (align === 'right' ? html` class="right"` : html``);

/** A path of the documentation. The portal redirects these paths to the gateway. */
export type DocsPath = `/docs${string}`;

export const docsLink = ({ gatewayUrl }: Pick<PortalSettings, 'gatewayUrl'>, path: DocsPath, text: string): Markup =>
  html`<a class="docs" href="${gatewayUrl}${path}">${text}</a>`;

/** Replaces an empty list. `content` explains what will appear and how to get it. */
export function emptyState(
  title: string,
  content: HtmlValue,
  docs?: { readonly path: DocsPath; readonly text: string },
): Markup {
  const link = docs === undefined ? '' : html`<p><a class="docs" href="${docs.path}">${docs.text}</a></p>`;
  return html`<section class="empty"><h2>${title}</h2>${content}${link}</section>`;
}

/** The one-line form above a list. */
export const filterBar = (content: HtmlValue): Markup =>
  html`<form class="filters" method="get" aria-label="Filter">${content}</form>`;

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
  keyValues(names.map((name, index) => [name, values[index] ? copyable(values[index], name) : '–']));

export const segments = (
  label: string,
  choices: readonly { readonly text: string; readonly href: string; readonly isCurrent: boolean }[],
): Markup =>
  html`<nav class="seg" aria-label="${label}">${choices.map(
    ({ text, href, isCurrent }) => html`<a href="${href}"${isCurrent ? html` aria-current="true"` : ''}>${text}</a>`,
  )}</nav>`;

/** A collapsible section that works without JavaScript. */
export function disclosure(title: string, content: HtmlValue, isOpen = false): Markup {
  return html`<details class="disclosure"${isOpen ? html` open` : ''}><summary>${title}</summary>${content}</details>`;
}
