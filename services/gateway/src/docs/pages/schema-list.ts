import { createComponentSchemas, type JsonSchema } from '../schemas.ts';
import { type HtmlValue, html, type Markup } from './html.ts';
import { toCodeSpans } from './page.ts';

/** The members of every named schema: what may stand in them, in words. */
export function toSchemaList(): Markup[] {
  return Object.entries(createComponentSchemas()).map(
    ([name, schema]) => html`<h3 id="schema-${name}">${name}</h3>
<dl>
${Object.entries((schema.properties ?? {}) as Record<string, JsonSchema>).map(([member, value]) => {
  const required = ((schema.required ?? []) as string[]).includes(member) ? ', required' : '';
  return html`<dt><code>${member}</code>${required}</dt>
<dd>${toWords(value)}${toDescription(value)}</dd>
`;
})}</dl>
`,
  );
}

/** Says a schema in a few words; a named one as a link to it. */
function toWords(schema: JsonSchema): HtmlValue {
  const { $ref, anyOf, enum: values, items, type, format, maxLength } = schema;
  if (typeof $ref === 'string') {
    const name = $ref.split('/').at(-1) ?? '';
    return html`<a href="#schema-${name}">${name}</a>`;
  }
  if (Array.isArray(anyOf)) return anyOf.map((one: JsonSchema, index) => [index === 0 ? '' : ' or ', toWords(one)]);
  if (Array.isArray(values)) return `one of ${values.join(', ')}`;
  if (items !== undefined) {
    const { minItems = 0, maxItems } = schema;
    const bound = maxItems === undefined ? `at least ${minItems}` : `${minItems} to ${maxItems}`;
    return [`array of ${bound}: `, toWords(items as JsonSchema)];
  }
  const length = maxLength === undefined ? '' : `, at most ${maxLength} characters`;
  return `${[type].flat().join(' or ')}${format === undefined ? '' : ` (${format})`}${length}`;
}

function toDescription({ description }: JsonSchema): HtmlValue {
  return description === undefined ? '' : ['. ', toCodeSpans(String(description)), '.'];
}
