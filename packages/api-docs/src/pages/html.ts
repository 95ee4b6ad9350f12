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

const ENTITIES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
};

function toMarkupText(value: HtmlValue): string {
  if (value instanceof Markup) return value.text;
  if (typeof value === 'object') return value.map(toMarkupText).join('');
  return String(value).replace(/[&<>"']/g, (character) => ENTITIES[character] ?? character);
}

/** Converts text between backticks to `<code>` elements. */
export function toCodeSpans(text: string): HtmlValue[] {
  return text.split('`').map((part, index) => (index % 2 === 1 ? html`<code>${part}</code>` : part));
}
