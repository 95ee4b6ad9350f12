import { ERRORS, type ErrorCode } from '@playline/errors';
import {
  type Example,
  errorPath,
  type JsonSchema,
  type KeyUse,
  type Operation,
  type Parameter,
  type ResponseSpec,
} from '../operation.ts';
import { createComponentSchemas, toSchema } from '../schemas.ts';
import {
  allExamples,
  type CodeText,
  type DocsSource,
  errorCodesOf,
  examplesOfError,
  examplesOfRejection,
  keyOf,
  operationsOfError,
  rejectionPath,
} from '../source.ts';
import { describeValues, placeholdersIn, toShellVariable } from '../values.ts';
import { toExampleList } from './example.ts';
import { type HtmlValue, html, type Markup, toCodeSpans } from './html.ts';
import { toMethod, toOperationLink } from './navigation.ts';
import { relativeRoot, toPage } from './page.ts';
import { toTryForm } from './try-form.ts';

const PATH = '/docs/reference';
const TOP = relativeRoot(PATH);

export function createReferencePage(source: DocsSource): string {
  const { operations, publicUrl } = source;
  const content = html`<p class="lead">Every operation, with a form that sends real requests to this service.</p>
<p>Base URL: <code>${publicUrl}</code>. ${toVariables(source)}Also available as <a href="${TOP}openapi.json">OpenAPI 3.1</a>, a <a href="${TOP}collection.json">Postman collection</a> and <a href="${TOP}llms.txt">llms.txt</a>.</p>
<ul class="plain">
${operations.map((operation) => html`<li>${toOperationLink(operation, TOP)} <span class="quiet">${operation.summary}</span></li>\n`)}</ul>
${operations.map((operation) => toSection(operation, source))}
<section class="operation" aria-labelledby="schemas">
<h2 id="schemas">Schemas</h2>
${toSchemaList(source)}</section>`;
  return toPage(source, { title: 'Reference', path: PATH, content, forms: true });
}

/** Lists the shell variables that the example commands use. */
function toVariables(source: DocsSource): HtmlValue {
  const names = placeholdersIn(source, allExamples(source)).map((one) => toShellVariable(one).slice(1));
  if (names.length === 0) return '';
  const last = names.length - 1;
  const list = names.map((name, index) => [
    index === 0 ? '' : index === last ? ' and ' : ', ',
    html`<code>${name}</code>`,
  ]);
  return html`The example commands use the shell variable${last === 0 ? '' : 's'} ${list}. `;
}

function toSection(operation: Operation, source: DocsSource): Markup {
  const { id, method, path, summary, description, responses, examples } = operation;
  return html`<section class="operation" aria-labelledby="${id}">
<h2 id="${id}">${summary}</h2>
<p class="route">${toMethod(method)} <code>${path}</code></p>
${description.map((text) => html`<p>${toCodeSpans(text)}</p>\n`)}
${toRequest(operation, source)}<h3>Responses</h3>
<dl class="rows">
${responses.map(toResponse)}</dl>
${toTryForm(operation, source, PATH)}
<details class="fold"><summary>${examples.length} examples</summary>
${toExampleList(examples, { source, top: TOP }, false)}
</details>
</section>
`;
}

/** Empty if the operation has no keys, no parameters and no body. */
function toRequest({ keys, parameters, body }: Operation, source: DocsSource): HtmlValue {
  if (keys.length + parameters.length === 0 && body === null) return '';
  return html`<h3>Request</h3>
<dl class="rows">
${keys.map((key) => toKey(key, source))}${parameters.map(toParameter)}${body === null ? '' : html`<div><dt>${describeSchema(toSchema(body.schema))} <span class="quiet">body, required</span></dt><dd>${toCodeSpans(body.description)}</dd></div>\n`}</dl>
`;
}

const describeRequirement = (required: boolean): string => (required ? 'required' : 'optional');

function toKey({ kind, required }: KeyUse, source: DocsSource): Markup {
  const { header, label } = keyOf(source, kind);
  return html`<div><dt><code>${header}</code> <span class="quiet">header, ${describeRequirement(required)}</span></dt><dd>The ${label.toLowerCase()}.</dd></div>
`;
}

function toParameter(parameter: Parameter): Markup {
  const { name, required, description, schema } = parameter;
  const facts = [parameter.in, describeRequirement(required), ...describeValues(schema)];
  return html`<div><dt><code>${name}</code> <span class="quiet">${facts.join(', ')}</span></dt><dd>${toCodeSpans(description)}</dd></div>
`;
}

function toResponse({ status, codes, schema, description }: ResponseSpec): Markup {
  const links: HtmlValue[] = codes.map(
    (code) => html` <a href="${TOP}${errorPath(code).slice(1)}"><code>${code}</code></a>`,
  );
  if (schema !== null) links.push(' ', describeSchema(toSchema(schema, 'output')));
  return html`<div><dt><b>${status}</b>${links}</dt><dd>${toCodeSpans(description)}</dd></div>
`;
}

function toSchemaList(source: DocsSource): Markup[] {
  return Object.entries(createComponentSchemas(source)).map(
    ([name, schema]) => html`<h3 id="schema-${name}">${name}</h3>
${schema.properties === undefined ? html`<p>${describeSchema(schema)}${toDescription(schema)}</p>\n` : toMembers(schema)}`,
  );
}

function toMembers(schema: JsonSchema): Markup {
  return html`<dl class="rows">
${Object.entries(schema.properties as Record<string, JsonSchema>).map(([member, value]) => {
  const required = ((schema.required ?? []) as string[]).includes(member)
    ? html` <span class="quiet">required</span>`
    : '';
  return html`<div><dt><code>${member}</code>${required}</dt>
<dd>${describeSchema(value)}${toDescription(value)}</dd></div>
`;
})}</dl>
`;
}

/** Returns a short description of a schema, or a link if the schema is named. */
function describeSchema(schema: JsonSchema): HtmlValue {
  const { $ref, anyOf, oneOf = anyOf, enum: values, items, type, format, maxLength } = schema;
  if (typeof $ref === 'string') {
    const name = $ref.split('/').at(-1) ?? '';
    return html`<a href="#schema-${name}">${name}</a>`;
  }
  if (Array.isArray(oneOf))
    return oneOf.map((one: JsonSchema, index) => [index === 0 ? '' : ' or ', describeSchema(one)]);
  if (Array.isArray(values))
    return ['one of ', values.map((value, index) => [index === 0 ? '' : ', ', html`<code>${String(value)}</code>`])];
  if (schema.const !== undefined) return html`<code>${String(schema.const)}</code>`;
  if (items !== undefined) {
    const { minItems = 0, maxItems } = schema;
    const bound = maxItems === undefined ? `at least ${minItems}` : `${minItems} to ${maxItems}`;
    return [`array of ${bound}: `, describeSchema(items as JsonSchema)];
  }
  if (schema.properties !== undefined) return toInline(schema.properties as Record<string, JsonSchema>);
  const length = maxLength === undefined ? '' : ` of at most ${maxLength} characters`;
  return `${[type].flat().join(' or ')}${format === undefined ? '' : ` (${format})`}${length}`;
}

/** Describes an unnamed object by its fields. */
function toInline(properties: Readonly<Record<string, JsonSchema>>): HtmlValue {
  return [
    'object of ',
    Object.entries(properties).map(([member, value], index) => [
      index === 0 ? '' : ', ',
      html`<code>${member}</code>: `,
      describeSchema(value),
    ]),
  ];
}

function toDescription({ description }: JsonSchema): HtmlValue {
  return description === undefined ? '' : ['. ', toCodeSpans(`${String(description).replace(/\.$/, '')}.`)];
}

const INDEX = '/docs/errors';

/** Creates the index of error codes and a page for each code, keyed by path. */
export function createCodePages(source: DocsSource): Map<string, string> {
  return new Map([
    [INDEX, toIndex(source)],
    ...errorCodesOf(source).map((code) => [errorPath(code), toErrorPage(source, code)] as const),
    ...Object.keys(source.rejections).map((code) => [rejectionPath(code), toRejectionPage(source, code)] as const),
  ]);
}

function toIndex(source: DocsSource): string {
  const rejections = Object.entries(source.rejections);
  const content = html`<p class="lead">Every error response has a code${rejections.length === 0 ? '' : ', as does every rejected message in a batch'}.
The page for each code explains the cause and the fix, and shows example requests and responses.</p>
<h2 id="envelopes">Request errors</h2>
<p>The entire request failed. The <code>link</code> in the error response opens the page for its code.</p>
<dl class="rows">
${errorCodesOf(source).map((code) => toEntry(errorPath(code), html` <span class="quiet">${ERRORS[code].status}</span>`, ERRORS[code].message))}</dl>
${
  rejections.length === 0
    ? ''
    : html`<h2 id="rejections">Message rejections</h2>
<p>The batch was processed, but this message was rejected. Other messages in the batch are not affected.</p>
<dl class="rows">
${rejections.map(([code, { cause }]) => toEntry(rejectionPath(code), '', cause))}</dl>`
}`;
  return toPage(source, { title: 'Error codes', path: INDEX, content });
}

const toEntry = (path: string, note: HtmlValue, text: string): Markup =>
  html`<div><dt><a href="${relativeRoot(INDEX)}${path.slice(1)}"><code>${path.split('/').at(-1) ?? ''}</code></a>${note}</dt>
<dd>${toCodeSpans(text)}</dd></div>
`;

function toErrorPage(source: DocsSource, code: ErrorCode): string {
  const { status, message, retry } = ERRORS[code];
  const path = errorPath(code);
  const operations = operationsOfError(source, code).map(
    (operation) => html`<li>${toOperationLink(operation, relativeRoot(path))}</li>\n`,
  );
  const content = html`<p class="lead"><strong class="status">${status}</strong> ${message}</p>
${toAdvice(source.errors[code] ?? ERRORS[code])}
<h2>Retry</h2>
<p>${retry ? 'You can retry the request unchanged. It may succeed later.' : 'Do not retry the request unchanged. It will fail again.'}</p>
${operations.length === 0 ? '' : html`<h2>Operations</h2>\n<ul class="plain">\n${operations}</ul>`}
${toExamples(source, examplesOfError(source, code), path)}`;
  return toPage(source, { title: code, path, content });
}

function toRejectionPage(source: DocsSource, code: string): string {
  const path = rejectionPath(code);
  const content = html`<p class="lead">One message in a batch was rejected. Other messages in the batch are not affected.</p>
${toAdvice(source.rejections[code]!)}
${source.rejectionDetails?.(code) ?? ''}
<h2>Retry</h2>
<p>No. The same message would be rejected again.</p>
${toExamples(source, examplesOfRejection(source, code), path)}`;
  return toPage(source, { title: code, path, content });
}

const toAdvice = ({ cause, fix }: CodeText): HtmlValue => html`<h2>Cause</h2>
<p>${toCodeSpans(cause)}</p>
<h2>What to do</h2>
<p>${toCodeSpans(fix)}</p>`;

/** A code has no examples if no operation returns it. */
function toExamples(source: DocsSource, examples: readonly Example[], path: string): HtmlValue {
  return html`<h2>Examples</h2>
${examples.length === 0 ? html`<p>No operation of this service currently returns this code.</p>` : toExampleList(examples, { source, top: relativeRoot(path) }, true)}`;
}
