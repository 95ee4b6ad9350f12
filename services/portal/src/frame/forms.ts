/** Forms and their fields. */
import { type HtmlValue, html, type Markup } from '@playline/api-docs';
import { invalidField } from '@playline/errors';
import type { FormValues, Visit } from './page.ts';

export interface FieldOptions {
  readonly name: string;
  readonly label: string;
  readonly value?: string;
  readonly hint?: string;
  readonly type?: 'text' | 'password' | 'number' | 'email' | 'date';
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

/** The one-line form above a list. `more` contains rare filters; `beside` contains filters with forms of their own. */
export const filterBar = (
  { path }: Pick<Visit, 'path'>,
  fields: HtmlValue,
  { more = '', beside = '' }: { readonly more?: HtmlValue; readonly beside?: HtmlValue } = {},
): Markup =>
  html`<div class="toolbar"><form class="filters" method="get" aria-label="Filter">${fields}
<button class="outline">Filter</button> <a href="${path}">Show all</a>${more}</form>${beside}</div>`;

/** @throws PublicError VALIDATION_ERROR with the message if the field is not a whole number from 1 to `max` */
export function readWholeNumber(values: FormValues, name: string, max: number, message: string): number {
  const text = values.text(name);
  if (/^\d{1,8}$/.test(text) && Number(text) >= 1 && Number(text) <= max) return Number(text);
  throw invalidField(name, message);
}

/** A form that consists of a button, for an action on the object `name`. `value` identifies the object. */
export function buttonForm(
  visit: Visit,
  action: string,
  { text, name, kind = 'outline', field, value }: ButtonFormOptions,
): Markup {
  const label = html`${text}<span class="visually-hidden"> ${name}</span>`;
  const button = html`${hidden(field, value)}<button class="${kind}">${label}</button>`;
  return visit.form(action, button, { className: 'inline' });
}

type ButtonFormOptions = Readonly<Record<'text' | 'name' | 'field' | 'value', string>> & {
  readonly kind?: 'outline' | 'danger';
};
