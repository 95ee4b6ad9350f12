import {
  type AnswerSpec,
  type ExampleRequest,
  errorPath,
  keyHeadersOf,
  type Operation,
  type QueryParameter,
} from '../operation.ts';
import type { DocsSource } from '../source.ts';
import { type HtmlValue, html, type Markup } from './html.ts';
import { toCodeSpans, toExampleMarkup, toPage } from './page.ts';
import { toSchemaList } from './schema-list.ts';

const PATH = '/docs/reference';

/** The reference: each operation with a form that sends real requests to the service that serves the page. */
export function createReferencePage(source: DocsSource): string {
  const { operations, context } = source;
  const content = html`<p>The forms send real requests to this service. Keys that you type stay in this page.</p>
<noscript><p>The forms need JavaScript; the commands do not.</p></noscript>
<ul>
${operations.map(({ id, method, path, summary }) => html`<li><a href="#${id}">${summary}</a> <code>${method} ${path}</code></li>\n`)}</ul>
${operations.map((operation) => toSection(operation, source))}
<h2 id="schemas">Schemas</h2>
<p>As text for programs: <a href="../openapi.json">openapi.json</a>. All codes are <a href="../docs">explained</a>. Base address: <code>${context.publicUrl}</code></p>
${toSchemaList()}`;
  return toPage({ title: 'Reference', path: PATH, content, script: 'reference.js' });
}

function toSection(operation: Operation, { context }: DocsSource): Markup {
  const { id, method, path, summary, description, key, query, answers, examples } = operation;
  return html`<section class="operation" aria-labelledby="${id}">
<h2 id="${id}">${summary}</h2>
<p><code class="route">${method} ${path}</code></p>
${description.map((words) => html`<p>${toCodeSpans(words)}</p>\n`)}
<p>Key: <code>${keyHeadersOf(context)[key]}</code></p>
${query.length === 0 ? '' : html`<dl>${query.map(toParameter)}</dl>`}
<h3>Answers</h3>
<dl>${answers.map(toAnswer)}</dl>
${toForm(operation, keyHeadersOf(context)[key])}
<details><summary>Examples of ${summary.toLowerCase()}</summary>
${examples.map((example) => toExampleMarkup(example, context.publicUrl))}
</details>
</section>
`;
}

function toParameter({ name, required, description }: QueryParameter): Markup {
  return html`<dt><code>${name}</code> query, ${required ? 'required' : 'optional'}</dt><dd>${description}</dd>`;
}

function toAnswer({ status, codes, description }: AnswerSpec): Markup {
  const links = codes.map((code) => html` <a href="..${errorPath(code)}"><code>${code}</code></a>`);
  return html`<dt>${status}${links}</dt><dd>${toCodeSpans(description)}</dd>`;
}

/** The request of the first example, to be changed and sent. */
function toForm({ id, method, path, summary, query, examples }: Operation, keyHeader: string): Markup {
  const request = examples[0]?.request;
  const given = new URL(request?.target ?? path, 'http://any').searchParams;
  return html`<form data-method="${method}" data-path="..${path}" data-key-header="${keyHeader}" aria-label="Try: ${summary}">
<h3>Try it</h3>
<p><label for="${id}-key">${keyHeader}</label>
<input id="${id}-key" name="key" autocomplete="off" spellcheck="false" autocapitalize="off"></p>
${query.map(
  ({ name, required }) => html`<p><label for="${id}-${name}">${name}${required ? ' (required)' : ''}</label>
<input id="${id}-${name}" data-query="${name}" value="${given.get(name) ?? ''}" autocomplete="off" spellcheck="false"></p>
`,
)}${toBodyField(id, request)}<p><button>Send ${method}</button></p>
<div role="status" aria-live="polite" data-outcome></div>
<pre tabindex="0" role="region" aria-label="Answer to ${summary.toLowerCase()}" data-answer hidden></pre>
</form>`;
}

function toBodyField(id: string, request: ExampleRequest | undefined): HtmlValue {
  const body = request?.body ?? null;
  if (body === null) return '';
  const rows = body.split('\n').length;
  return html`<p><label for="${id}-body">Body (application/json)</label>
<textarea id="${id}-body" name="body" rows="${rows}" spellcheck="false" autocapitalize="off">
${body}</textarea></p>
`;
}
