import { type AnswerSpec, errorPath, keyHeadersOf, type Operation, type QueryParameter } from '../operation.ts';
import { toSchema } from '../schemas.ts';
import type { DocsSource } from '../source.ts';
import { toExampleList } from './example.ts';
import { type HtmlValue, html, type Markup } from './html.ts';
import { toMethod, toOperationLink } from './navigation.ts';
import { toPage, toTop } from './page.ts';
import { toSchemaList, toSchemaWords } from './schema-list.ts';
import { toTryForm } from './try-form.ts';
import { toCodeSpans } from './words.ts';

const PATH = '/docs/reference';
const TOP = toTop(PATH);

/** The reference: each operation with a form that sends real requests to the service that serves the page. */
export function createReferencePage(source: DocsSource): string {
  const { operations, context } = source;
  const content = html`<p class="lead">Every operation, with a form that sends real requests to this service.</p>
<p>Base address: <code>${context.publicUrl}</code>. The commands in examples read the shell variables <code>PUBLISHABLE_KEY</code> and <code>SECRET_KEY</code>. For programs: <a href="${TOP}openapi.json">OpenAPI 3.1</a>, a <a href="${TOP}collection.json">collection</a>, <a href="${TOP}llms.txt">llms.txt</a>.</p>
<ul class="plain">
${operations.map((operation) => html`<li>${toOperationLink(operation, TOP)} <span class="quiet">${operation.summary}</span></li>\n`)}</ul>
${operations.map((operation) => toSection(operation, source))}
<section class="operation" aria-labelledby="schemas">
<h2 id="schemas">Schemas</h2>
${toSchemaList()}</section>`;
  return toPage(source, { title: 'Reference', path: PATH, content, forms: true });
}

function toSection(operation: Operation, source: DocsSource): Markup {
  const { id, method, path, summary, description, key, query, body, answers, examples } = operation;
  const { context } = source;
  return html`<section class="operation" aria-labelledby="${id}">
<h2 id="${id}">${summary}</h2>
<p class="route">${toMethod(method)} <code>${path}</code></p>
${description.map((words) => html`<p>${toCodeSpans(words)}</p>\n`)}
<h3>Request</h3>
<dl class="rows">
<div><dt><code>${keyHeadersOf(context)[key]}</code> <span class="quiet">header, required</span></dt><dd>The ${key} key.</dd></div>
${query.map(toParameter)}${body === null ? '' : html`<div><dt>${toSchemaWords(toSchema(body.schema))} <span class="quiet">body, required</span></dt><dd>${toCodeSpans(body.description)}</dd></div>\n`}</dl>
<h3>Answers</h3>
<dl class="rows">
${answers.map(toAnswer)}</dl>
${toTryForm(operation, source, PATH)}
<details class="fold"><summary>${examples.length} examples</summary>
${toExampleList(examples, { publicUrl: context.publicUrl, top: TOP }, false)}
</details>
</section>
`;
}

function toParameter({ name, required, description }: QueryParameter): Markup {
  return html`<div><dt><code>${name}</code> <span class="quiet">query, ${required ? 'required' : 'optional'}</span></dt><dd>${toCodeSpans(description)}</dd></div>
`;
}

function toAnswer({ status, codes, schema, description }: AnswerSpec): Markup {
  const links: HtmlValue[] = codes.map(
    (code) => html` <a href="${TOP}${errorPath(code).slice(1)}"><code>${code}</code></a>`,
  );
  if (schema !== null) links.push(' ', toSchemaWords(toSchema(schema)));
  return html`<div><dt><b>${status}</b>${links}</dt><dd>${toCodeSpans(description)}</dd></div>
`;
}
