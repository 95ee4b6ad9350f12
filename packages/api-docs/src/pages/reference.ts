import { type AnswerSpec, errorPath, type KeyUse, type Operation, type Parameter } from '../operation.ts';
import { placeholdersIn, toShellVariable } from '../placeholders.ts';
import { toSchema } from '../schemas.ts';
import { allExamples, type DocsSource, keyOf } from '../source.ts';
import { toValueWords } from '../values.ts';
import { toExampleList } from './example.ts';
import { type HtmlValue, html, type Markup, toCodeSpans } from './html.ts';
import { toMethod, toOperationLink } from './navigation.ts';
import { toPage, toTop } from './page.ts';
import { toSchemaList, toSchemaWords } from './schema-list.ts';
import { toTryForm } from './try-form.ts';

const PATH = '/docs/reference';
const TOP = toTop(PATH);

/** The reference: each operation with a form that sends real requests to the service that serves the page. */
export function createReferencePage(source: DocsSource): string {
  const { operations, publicUrl } = source;
  const content = html`<p class="lead">Every operation, with a form that sends real requests to this service.</p>
<p>Base address: <code>${publicUrl}</code>. ${toVariables(source)}For programs: <a href="${TOP}openapi.json">OpenAPI 3.1</a>, a <a href="${TOP}collection.json">collection</a>, <a href="${TOP}llms.txt">llms.txt</a>.</p>
<ul class="plain">
${operations.map((operation) => html`<li>${toOperationLink(operation, TOP)} <span class="quiet">${operation.summary}</span></li>\n`)}</ul>
${operations.map((operation) => toSection(operation, source))}
<section class="operation" aria-labelledby="schemas">
<h2 id="schemas">Schemas</h2>
${toSchemaList(source)}</section>`;
  return toPage(source, { title: 'Reference', path: PATH, content, forms: true });
}

/** What a reader sets before pasting a command into a shell. */
function toVariables(source: DocsSource): HtmlValue {
  const names = placeholdersIn(source, allExamples(source)).map((one) => toShellVariable(one).slice(1));
  if (names.length === 0) return '';
  const last = names.length - 1;
  const list = names.map((name, index) => [
    index === 0 ? '' : index === last ? ' and ' : ', ',
    html`<code>${name}</code>`,
  ]);
  return html`The commands in examples read the shell variable${last === 0 ? '' : 's'} ${list}. `;
}

function toSection(operation: Operation, source: DocsSource): Markup {
  const { id, method, path, summary, description, answers, examples } = operation;
  return html`<section class="operation" aria-labelledby="${id}">
<h2 id="${id}">${summary}</h2>
<p class="route">${toMethod(method)} <code>${path}</code></p>
${description.map((words) => html`<p>${toCodeSpans(words)}</p>\n`)}
${toRequest(operation, source)}<h3>Answers</h3>
<dl class="rows">
${answers.map(toAnswer)}</dl>
${toTryForm(operation, source, PATH)}
<details class="fold"><summary>${examples.length} examples</summary>
${toExampleList(examples, { source, top: TOP }, false)}
</details>
</section>
`;
}

/** Nothing for an operation whose request is only its address. */
function toRequest({ keys, parameters, body }: Operation, source: DocsSource): HtmlValue {
  if (keys.length + parameters.length === 0 && body === null) return '';
  return html`<h3>Request</h3>
<dl class="rows">
${keys.map((key) => toKey(key, source))}${parameters.map(toParameter)}${body === null ? '' : html`<div><dt>${toSchemaWords(toSchema(body.schema))} <span class="quiet">body, required</span></dt><dd>${toCodeSpans(body.description)}</dd></div>\n`}</dl>
`;
}

const toNeed = (required: boolean): string => (required ? 'required' : 'optional');

function toKey({ kind, required }: KeyUse, source: DocsSource): Markup {
  const { header, label } = keyOf(source, kind);
  return html`<div><dt><code>${header}</code> <span class="quiet">header, ${toNeed(required)}</span></dt><dd>The ${label.toLowerCase()}.</dd></div>
`;
}

function toParameter(parameter: Parameter): Markup {
  const { name, required, description, schema } = parameter;
  const facts = [parameter.in, toNeed(required), ...toValueWords(schema)];
  return html`<div><dt><code>${name}</code> <span class="quiet">${facts.join(', ')}</span></dt><dd>${toCodeSpans(description)}</dd></div>
`;
}

function toAnswer({ status, codes, schema, description }: AnswerSpec): Markup {
  const links: HtmlValue[] = codes.map(
    (code) => html` <a href="${TOP}${errorPath(code).slice(1)}"><code>${code}</code></a>`,
  );
  if (schema !== null) links.push(' ', toSchemaWords(toSchema(schema, 'output')));
  return html`<div><dt><b>${status}</b>${links}</dt><dd>${toCodeSpans(description)}</dd></div>
`;
}
