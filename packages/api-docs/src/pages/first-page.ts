import type { Operation } from '../operation.ts';
import { articlePath, type DocsSource } from '../source.ts';
import { toExamplePair } from './example.ts';
import { type HtmlValue, html, toCodeSpans } from './html.ts';
import { toOperationLink } from './navigation.ts';
import { toPage, toTop } from './page.ts';
import { toTryForm } from './try-form.ts';

const PATH = '/docs';
const TOP = toTop(PATH);

/** The first page: what the product is, a first request, and where to read on. */
export function createFirstPage(source: DocsSource): string {
  const { operations, publicUrl, first, articles } = source;
  const [tried] = operations;
  const content = html`<p class="lead">${first.lead}</p>
${tried === undefined ? '' : toFirstRequest(tried, source)}
<h2>What comes next</h2>
<dl class="rows">
${operations.map((operation) => html`<div><dt>${toOperationLink(operation, TOP)}</dt><dd>${toCodeSpans(operation.description[0] ?? '')}</dd></div>\n`)}<div><dt><a href="${TOP}docs/errors">Error codes</a></dt><dd>What each code means and what to do. The <code>link</code> in every error opens its page.</dd></div>
${articles.map((article) => html`<div><dt><a href="${TOP}${articlePath(article).slice(1)}">${article.title}</a></dt><dd>${article.summary}</dd></div>\n`)}<div><dt><a href="${TOP}openapi.json">OpenAPI 3.1</a></dt><dd>Every operation and schema, for generators of clients.</dd></div>
<div><dt><a href="${TOP}collection.json">Collection</a></dt><dd>Every example as a request, for Postman and Bruno.</dd></div>
<div><dt><a href="${TOP}llms.txt">llms.txt</a></dt><dd>The whole interface in one text, for language models.</dd></div>
</dl>
<p>Base address: <code>${publicUrl}</code></p>`;
  return toPage(source, { title: first.title, path: PATH, content, forms: true });
}

function toFirstRequest(tried: Operation, source: DocsSource): HtmlValue {
  const [example] = tried.examples;
  if (example === undefined) return '';
  const { heading, anchor, before, after, command } = source.first;
  return html`<h2 id="${anchor}">${heading}</h2>
${before}
${toTryForm(tried, source, PATH)}
${after}
<details class="fold"><summary>${command}</summary>
${toExamplePair(example, { source, top: TOP })}
</details>`;
}
