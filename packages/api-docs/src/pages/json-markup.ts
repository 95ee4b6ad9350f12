import { type HtmlValue, html, type Markup } from './html.ts';

/** Returns the address that a text member links to, relative to the page; null for no link. */
export type LinkOf = (member: string, value: string) => string | null;

/**
 * A text followed by a colon, which is the name of a member, or another value. The script of the forms uses the same
 * pattern.
 */
const TOKEN = /("(?:[^"\\]|\\.)*")(\s*:)?|(?<![\w.-])(-?\d[\d.eE+-]*|true|false|null)(?![\w.-])/g;

/** Marks the parts of JSON, or of a text that contains some, and adds links. The text itself stays the same. */
export function toJsonMarkup(text: string, linkOf: LinkOf = () => null): Markup {
  const parts: HtmlValue[] = [];
  let end = 0;
  let member = '';
  for (const { 0: all, 1: quoted, 2: colon, index } of text.matchAll(TOKEN)) {
    parts.push(text.slice(end, index));
    end = index + all.length;
    if (quoted === undefined) parts.push(html`<span class="value">${all}</span>`);
    else if (colon === undefined) parts.push(toText(quoted, linkOf(member, quoted.slice(1, -1))));
    else {
      member = quoted.slice(1, -1);
      parts.push(html`<span class="name">${quoted}</span>${colon}`);
    }
  }
  return html`${[...parts, text.slice(end)]}`;
}

function toText(quoted: string, href: string | null): Markup {
  if (href === null) return html`<span class="text">${quoted}</span>`;
  return html`<span class="text">"<a href="${href}">${quoted.slice(1, -1)}</a>"</span>`;
}
