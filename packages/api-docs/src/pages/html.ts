import { escapeText } from '@playline/guides';

/** Safe markup, created with the `html` template tag. */
export class Markup {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }
}

export type HtmlValue = string | number | Markup | readonly HtmlValue[];

/** Template tag that escapes values for text and double-quoted attributes. `Markup` values are not escaped. */
export function html(parts: TemplateStringsArray, ...values: readonly HtmlValue[]): Markup {
  return new Markup(parts.map((part, index) => part + toMarkupText(values[index] ?? '')).join(''));
}

function toMarkupText(value: HtmlValue): string {
  if (value instanceof Markup) return value.text;
  if (typeof value === 'object') return value.map(toMarkupText).join('');
  return escapeText(String(value));
}

/** Converts text between backticks to `<code>` elements. */
export function toCodeSpans(text: string): HtmlValue[] {
  return text.split('`').map((part, index) => (index % 2 === 1 ? html`<code>${part}</code>` : part));
}

/** The keyboard can reach the table, because it can scroll horizontally. */
export const toTable = (headers: readonly HtmlValue[], rows: readonly (readonly HtmlValue[])[]): Markup =>
  html`<div class="scroll" tabindex="0" role="group" aria-label="Table"><table>
<thead><tr>${headers.map((one) => html`<th scope="col">${one}</th>`)}</tr></thead>
<tbody>
${rows.map((row) => html`<tr>${row.map((cell) => html`<td>${cell}</td>`)}</tr>\n`)}</tbody>
</table></div>
`;

export const toCodeBlock = (id: string, label: string, code: string): Markup =>
  html`<div class="block"><p class="label" id="${id}">${label}</p>
<pre tabindex="0" role="region" aria-labelledby="${id}">${code}</pre></div>
`;
