import { type HtmlValue, html, type Markup } from '@playline/api-docs';

/** Text with a button that copies it; without JavaScript the text alone. */
export function copyable(text: string, label: string): Markup {
  return html`<span class="copyable"><code>${text}</code><button type="button" class="copy" data-copy="${text}" hidden>Copy<span class="unseen"> ${label}</span></button></span>`;
}

/** Several lines to copy, such as a command. */
export function copyableBlock(text: string, label: string): Markup {
  return html`<div class="sample"><pre tabindex="0"><code>${text}</code></pre><button type="button" class="copy" data-copy="${text}" hidden>Copy<span class="unseen"> ${label}</span></button></div>`;
}

/** A time in UTC; `portal.js` puts the reader's own time in front. @param ms epoch milliseconds */
export function time(ms: number): Markup {
  const iso = new Date(ms).toISOString();
  return html`<time datetime="${iso}">${iso.slice(0, 10)} ${iso.slice(11, 19)} UTC</time>`;
}

/** A number with thin spaces between thousands, and its unit. */
export function number(value: number, unit = ''): string {
  const text = value.toLocaleString('en-US').replaceAll(',', '\u202f');
  return unit === '' ? text : `${text}\u00a0${unit}`;
}

const SPAN_UNITS: readonly (readonly [name: string, ms: number])[] = [
  ['d', 86_400_000],
  ['h', 3_600_000],
  ['min', 60_000],
  ['s', 1000],
];

/** A span of time in its largest unit of which there are two. @param ms milliseconds; below 0 counts as none */
export function span(ms: number): string {
  const [name, unit] = SPAN_UNITS.find(([, each]) => ms >= 2 * each) ?? (['s', 1000] as const);
  return number(Math.max(0, Math.round(ms / unit)), name);
}

/** A share as a percentage with one digit behind the point. */
export function share(part: number, whole: number): string {
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
  readonly charactersMax?: number;
}

let fields = 0;

/** A label names its field by an id; forms of one page have fields of one name. */
function createFieldId(name: string): string {
  fields = (fields + 1) % 1_000_000;
  return `field-${name}-${fields}`;
}

/** A labelled field of a form. */
export function field(options: FieldOptions): Markup {
  const { name, label, value = '', hint, type = 'text', autocomplete = 'off', isRequired = false } = options;
  const id = createFieldId(name);
  return html`<div class="field"><label for="${id}">${label}</label>
<input id="${id}" name="${name}" type="${type}" value="${value}" autocomplete="${autocomplete}" maxlength="${options.charactersMax ?? 300}"${isRequired ? html` required` : ''}${hint === undefined ? '' : html` aria-describedby="${id}-hint"`}>
${hint === undefined ? '' : html`<span class="hint" id="${id}-hint">${hint}</span>`}</div>`;
}

/** What a form sends that nobody types. */
export function hidden(name: string, value: string): Markup {
  return html`<input type="hidden" name="${name}" value="${value}">`;
}

/** A labelled field of several lines. */
export function lines({
  name,
  label,
  value = '',
  hint = '',
}: Pick<FieldOptions, 'name' | 'label' | 'value' | 'hint'>): Markup {
  const id = createFieldId(name);
  // A line break right behind the tag is not part of the text.
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

/** A labelled choice of one. */
export function choice({ name, label, value, choices }: ChoiceOptions): Markup {
  const id = createFieldId(name);
  return html`<div class="field"><label for="${id}">${label}</label>
<select id="${id}" name="${name}">${choices.map(
    (each) => html`<option value="${each.value}"${each.value === value ? html` selected` : ''}>${each.text}</option>`,
  )}</select></div>`;
}

/** A table; on a narrow screen it scrolls by itself. @param caption what it shows, for those who do not see it */
export function table(caption: string, heads: readonly string[], rows: readonly (readonly HtmlValue[])[]): Markup {
  return html`<div class="scroll" tabindex="0" role="region" aria-label="${caption}"><table><caption class="unseen">${caption}</caption>
<thead><tr>${heads.map((head) => html`<th scope="col">${head}</th>`)}</tr></thead>
<tbody>${rows.map((row) => html`<tr>${row.map((cell) => html`<td>${cell}</td>`)}</tr>\n`)}</tbody></table></div>`;
}

/** What to do where nothing is to be seen yet. */
export function emptyState(title: string, content: HtmlValue): Markup {
  return html`<section class="empty"><h2>${title}</h2>${content}</section>`;
}

/** A part that is opened to do something: a form that would be in the way otherwise; works without JavaScript. */
export function disclosure(title: string, content: HtmlValue, isOpen = false): Markup {
  return html`<details class="disclosure"${isOpen ? html` open` : ''}><summary>${title}</summary>${content}</details>`;
}
