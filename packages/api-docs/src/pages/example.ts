import { toCommand, toResponseText } from '../formats/text.ts';
import type { Example } from '../operation.ts';
import { type DocsSource, pathsOfCodes } from '../source.ts';
import { type HtmlValue, html, type Markup } from './html.ts';
import { toMethod } from './navigation.ts';

/** Describes the page that shows an example. */
export interface ExampleContext {
  source: DocsSource;
  /** URL of the service root, relative to the page. */
  top: string;
}

/** Returns a list of collapsible examples. If `open` is true, the first example is expanded. */
export function toExampleList(examples: readonly Example[], page: ExampleContext, open: boolean): Markup {
  return html`<div class="examples">
${examples.map((example, index) => toCollapsible(example, page, open && index === 0))}</div>`;
}

function toCollapsible(example: Example, page: ExampleContext, open: boolean): Markup {
  const { name, title, request, response } = example;
  const [path = ''] = request.target.split('?');
  return html`<details id="${name}"${open ? html` open` : ''}>
<summary><span>${title}</span> <span class="quiet"><b>${response.status}</b> ${toMethod(request.method)} <code>${path}</code></span></summary>
${toExamplePair(example, page)}
</details>
`;
}

/** Shows the request as a curl command next to the response. */
export function toExamplePair(example: Example, page: ExampleContext): Markup {
  const { name } = example;
  const request = splitAt(toCommand(example, page.source), '--data-binary');
  const response = splitAt(toResponseText(example.response), '\n\n');
  const responseBody = toJsonMarkup(response.rest, createLinkOf(page));
  return html`<div class="pair">
${toBlock({ id: `${name}-request`, label: 'Request', content: [request.start, toJsonMarkup(request.rest)] })}
${toBlock({ id: `${name}-response`, label: 'Response', content: [response.start, responseBody] })}
</div>`;
}

/** Splits `text` at the start of the first `separator`. */
function splitAt(text: string, separator: string): { start: string; rest: string } {
  const index = text.includes(separator) ? text.indexOf(separator) : text.length;
  return { start: text.slice(0, index), rest: text.slice(index) };
}

/** Returns a code block that the keyboard can reach, because it can scroll horizontally. */
function toBlock({ id, label, content }: { id: string; label: string; content: HtmlValue }): Markup {
  return html`<div class="block"><p class="label" id="${id}">${label}</p>
<pre tabindex="0" role="region" aria-labelledby="${id}"><code>${content}</code></pre></div>`;
}

/** Creates links from error codes and from the `link` of an error to the documentation of the service. */
function createLinkOf({ source, top }: ExampleContext): LinkOf {
  const paths = pathsOfCodes(source);
  return (member, value) => {
    if (member === 'link') return top + value.slice(value.indexOf('/docs/') + 1);
    const path = member === 'code' ? paths[value] : undefined;
    return path === undefined ? null : top + path.slice(1);
  };
}

/** Returns the relative URL to which a string value links; null if it is not a link. */
type LinkOf = (member: string, value: string) => string | null;

/** Matches a property name (a string before a colon) or a value. Keep in sync with `assets/response.js`. */
const TOKEN = /("(?:[^"\\]|\\.)*")(\s*:)?|(?<![\w.-])(-?\d[\d.eE+-]*|true|false|null)(?![\w.-])/g;

/** Highlights JSON tokens in `text` and adds links. */
export function toJsonMarkup(text: string, linkOf: LinkOf = () => null): Markup {
  const parts: HtmlValue[] = [];
  let end = 0;
  let member = '';
  for (const { 0: token, 1: quoted, 2: colon, index } of text.matchAll(TOKEN)) {
    parts.push(text.slice(end, index));
    end = index + token.length;
    if (quoted === undefined) parts.push(html`<span class="value">${token}</span>`);
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
