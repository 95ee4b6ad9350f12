import { type HtmlValue, html } from './html.ts';

/** Text between backticks is code. */
export function toCodeSpans(words: string): HtmlValue[] {
  return words.split('`').map((part, index) => (index % 2 === 1 ? html`<code>${part}</code>` : part));
}
