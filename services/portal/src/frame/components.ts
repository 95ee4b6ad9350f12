/** Page components: values, form fields and tables. */
import { type HtmlValue, html, type Markup } from '@playline/api-docs';

const copyButton = (text: string, label: string) =>
  html`<button type="button" class="copy" data-copy="${text}" hidden>Copy<span class="visually-hidden"> ${label}</span></button>`;

/** Text with a Copy button, which is hidden without JavaScript. */
export function copyable(text: string, label: string): Markup {
  return html`<span class="copyable"><code>${text}</code>${copyButton(text, label)}</span>`;
}

export function copyableBlock(text: string, label: string): Markup {
  return html`<div class="sample"><pre tabindex="0"><code>${text}</code></pre>${copyButton(text, label)}</div>`;
}

/** Renders epoch milliseconds in UTC. `portal.js` adds the local time. */
export function time(ms: number): Markup {
  const iso = new Date(ms).toISOString();
  return html`<time datetime="${iso}">${iso.slice(0, 10)} ${iso.slice(11, 19)} UTC</time>`;
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

/** A table that scrolls horizontally on narrow screens. @param caption announced by screen readers */
export function table(caption: string, headers: readonly string[], rows: readonly (readonly HtmlValue[])[]): Markup {
  return html`<div class="scroll" tabindex="0" role="region" aria-label="${caption}"><table><caption class="visually-hidden">${caption}</caption>
<thead><tr>${headers.map((header) => html`<th scope="col">${header}</th>`)}</tr></thead>
<tbody>${rows.map((row) => html`<tr>${row.map((cell) => html`<td>${cell}</td>`)}</tr>\n`)}</tbody></table></div>`;
}

/** Replaces an empty list. `content` explains what will appear and how to get it. */
export function emptyState(title: string, content: HtmlValue): Markup {
  return html`<section class="empty"><h2>${title}</h2>${content}</section>`;
}

/** A collapsible section that works without JavaScript. */
export function disclosure(title: string, content: HtmlValue, isOpen = false): Markup {
  return html`<details class="disclosure"${isOpen ? html` open` : ''}><summary>${title}</summary>${content}</details>`;
}
