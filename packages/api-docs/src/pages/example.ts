import { toAnswerText, toCommand } from '../formats/text.ts';
import type { Example } from '../operation.ts';
import { type DocsSource, partCodePath } from '../source.ts';
import { type HtmlValue, html, type Markup } from './html.ts';
import { toMethod } from './navigation.ts';

/** The page on which an example is shown. */
export interface ExampleContext {
  source: DocsSource;
  /** Relative address of the root of the service. */
  top: string;
}

/** A list of collapsed examples; `open` expands the first one. */
export function toExampleList(examples: readonly Example[], page: ExampleContext, open: boolean): Markup {
  return html`<div class="examples">
${examples.map((example, index) => toFolded(example, page, open && index === 0))}</div>`;
}

function toFolded(example: Example, page: ExampleContext, open: boolean): Markup {
  const { name, title, request, answer } = example;
  const [path = ''] = request.target.split('?');
  return html`<details id="${name}"${open ? html` open` : ''}>
<summary><span>${title}</span> <span class="quiet"><b>${answer.status}</b> ${toMethod(request.method)} <code>${path}</code></span></summary>
${toExamplePair(example, page)}
</details>
`;
}

/** A request as a command beside its answer. */
export function toExamplePair(example: Example, page: ExampleContext): Markup {
  const { name, answer } = example;
  const sent = splitAt(toCommand(example, page.source.publicUrl), '--data-binary');
  const answered = splitAt(toAnswerText(answer), '\n\n');
  return html`<div class="pair">
${toBlock({ id: `${name}-request`, label: 'Request', content: [sent.head, toJsonMarkup(sent.rest)] })}
${toBlock({ id: `${name}-answer`, label: 'Answer', content: [answered.head, toJsonMarkup(answered.rest, createLinkOf(page))] })}
</div>`;
}

/** Splits a text where a mark begins. */
function splitAt(text: string, mark: string): { head: string; rest: string } {
  const at = text.includes(mark) ? text.indexOf(mark) : text.length;
  return { head: text.slice(0, at), rest: text.slice(at) };
}

/** A text that may be wider than the screen: it scrolls, so it must be reachable by keyboard. */
function toBlock({ id, label, content }: { id: string; label: string; content: HtmlValue }): Markup {
  return html`<div class="block"><p class="label" id="${id}">${label}</p>
<pre tabindex="0" role="region" aria-labelledby="${id}"><code>${content}</code></pre></div>`;
}

/** Links codes and the links of envelopes to pages of the same service. */
function createLinkOf({ source, top }: ExampleContext): LinkOf {
  const { errors, partCodes } = source;
  return (member, value) => {
    if (member === 'link') return top + value.slice(value.indexOf('/docs/') + 1);
    if (member !== 'code') return null;
    if (value in errors) return `${top}docs/errors/${value}`;
    return partCodes !== null && value in partCodes.entries ? top + partCodePath(partCodes, value).slice(1) : null;
  };
}

/** Returns the relative address that a text member links to; null for no link. */
type LinkOf = (member: string, value: string) => string | null;

/** A name (a text before a colon) or a value. The script of the forms uses the same pattern. */
const TOKEN = /("(?:[^"\\]|\\.)*")(\s*:)?|(?<![\w.-])(-?\d[\d.eE+-]*|true|false|null)(?![\w.-])/g;

/** Marks the tokens of JSON within a text, and adds links. */
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
