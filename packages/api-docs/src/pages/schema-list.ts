import type { JsonSchema } from '../operation.ts';
import { createComponentSchemas } from '../schemas.ts';
import type { DocsSource } from '../source.ts';
import { type HtmlValue, html, type Markup, toCodeSpans } from './html.ts';

/** The members of every named schema, and in words which values they may have. */
export function toSchemaList(source: DocsSource): Markup[] {
  return Object.entries(createComponentSchemas(source)).map(
    ([name, schema]) => html`<h3 id="schema-${name}">${name}</h3>
${schema.properties === undefined ? html`<p>${toSchemaWords(schema)}${toDescription(schema)}</p>\n` : toMembers(schema)}`,
  );
}

function toMembers(schema: JsonSchema): Markup {
  return html`<dl class="rows">
${Object.entries(schema.properties as Record<string, JsonSchema>).map(([member, value]) => {
  const required = ((schema.required ?? []) as string[]).includes(member)
    ? html` <span class="quiet">required</span>`
    : '';
  return html`<div><dt><code>${member}</code>${required}</dt>
<dd>${toSchemaWords(value)}${toDescription(value)}</dd></div>
`;
})}</dl>
`;
}

/** Describes a schema in a few words, or links to it if it has a name. */
export function toSchemaWords(schema: JsonSchema): HtmlValue {
  const { $ref, anyOf, oneOf = anyOf, enum: values, items, type, format, maxLength } = schema;
  if (typeof $ref === 'string') {
    const name = $ref.split('/').at(-1) ?? '';
    return html`<a href="#schema-${name}">${name}</a>`;
  }
  if (Array.isArray(oneOf))
    return oneOf.map((one: JsonSchema, index) => [index === 0 ? '' : ' or ', toSchemaWords(one)]);
  if (Array.isArray(values))
    return ['one of ', values.map((value, index) => [index === 0 ? '' : ', ', html`<code>${String(value)}</code>`])];
  if (schema.const !== undefined) return html`<code>${String(schema.const)}</code>`;
  if (items !== undefined) {
    const { minItems = 0, maxItems } = schema;
    const bound = maxItems === undefined ? `at least ${minItems}` : `${minItems} to ${maxItems}`;
    return [`array of ${bound}: `, toSchemaWords(items as JsonSchema)];
  }
  if (schema.properties !== undefined) return toInline(schema.properties as Record<string, JsonSchema>);
  const length = maxLength === undefined ? '' : ` of at most ${maxLength} characters`;
  return `${[type].flat().join(' or ')}${format === undefined ? '' : ` (${format})`}${length}`;
}

/** An object without a name of its own. */
function toInline(properties: Readonly<Record<string, JsonSchema>>): HtmlValue {
  return [
    'object of ',
    Object.entries(properties).map(([member, value], index) => [
      index === 0 ? '' : ', ',
      html`<code>${member}</code>: `,
      toSchemaWords(value),
    ]),
  ];
}

function toDescription({ description }: JsonSchema): HtmlValue {
  return description === undefined ? '' : ['. ', toCodeSpans(String(description)), '.'];
}
