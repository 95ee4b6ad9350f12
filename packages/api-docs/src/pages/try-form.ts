import type { KeyUse, Operation, Parameter } from '../operation.ts';
import { resolveSchema } from '../schemas.ts';
import { type DocsSource, keyOf, pathsOfCodes } from '../source.ts';
import { isPlaceholder, valuesIn } from '../values.ts';
import { type HtmlValue, html, type Markup, toCodeSpans } from './html.ts';
import { relativeRoot } from './page.ts';

/** Forms display and store public keys. They mask secret keys and never store them. */
const KEY_FIELDS = {
  public: {
    type: 'text',
    hint: 'Shared by all forms. Stored in session storage until you close this tab. Never part of a URL.',
  },
  secret: {
    type: 'password',
    hint: 'Used on this page only. Never stored, never part of a URL, and forgotten when you leave or reload the page.',
  },
} as const;

/** Small enough that the Send button stays visible on a laptop screen. */
const BODY_LINES_MAX = 14;

/** Data attributes by which scripts find the fields for parameters. */
const FIELD_ATTRIBUTES = { path: 'path-name', query: 'query' } as const;

/** Browsers resolve the path segments `.` and `..`, which would change the URL. */
const NO_DOTS = html` pattern="(?!\\.\\.?$).+" title="Must not be . or .."`;

/** Prevents browsers from storing or correcting the input. */
const VERBATIM = html`autocomplete="off" spellcheck="false" autocapitalize="off"`;

/**
 * Returns a form that sends a request and shows the response. The form is prefilled with the first example. Its fields
 * have no names, so that browsers without scripts cannot put the values into a URL.
 */
export function toTryForm(operation: Operation, source: DocsSource, page: string): Markup {
  const { id, method, path, summary, keys, responses } = operation;
  const toPlainText = (text: string) => text.replaceAll('`', '');
  const descriptions = Object.fromEntries(responses.map((spec) => [spec.status, toPlainText(spec.description)]));
  return html`<form class="try" autocomplete="off" aria-label="Try: ${summary}" data-method="${method}" data-path="${relativeRoot(page)}${path.slice(1)}" data-responses="${JSON.stringify(descriptions)}" data-codes="${JSON.stringify(pathsOfCodes(source))}">
<div>
<h3>Try it</h3>
${keys.map((key, index) => toKeyField(key, source, `${id}-key${index === 0 ? '' : `-${index + 1}`}`))}${toParameterFields(operation)}${toBodyField(operation)}<p class="actions"><button type="submit">Send ${method}</button>${toPageButtons(operation)}</p>
<noscript><p class="hint">Sending requests requires JavaScript. You can use the curl commands on this page instead.</p></noscript>
</div>
<div>
<h3>Response</h3>
<p role="status" class="quiet" data-outcome>Send the request to see the response.</p>
<pre tabindex="0" role="region" aria-label="Response to ${summary.toLowerCase()}" data-response hidden></pre>
</div>
${toConfirmation(operation)}</form>`;
}

function toKeyField({ kind, required }: KeyUse, source: DocsSource, id: string): Markup {
  const { header, label, isPublic } = keyOf(source, kind);
  const { type, hint } = KEY_FIELDS[isPublic ? 'public' : 'secret'];
  return html`<p><label for="${id}">${label} <code class="quiet">${header}</code>${required ? '' : html` <span class="quiet">optional</span>`}</label>
<input id="${id}" type="${type}" data-key="${kind}" data-key-header="${header}"${required ? html` required` : ''} aria-describedby="${id}-hint" ${VERBATIM}>
<span class="hint" id="${id}-hint">${hint}</span></p>
`;
}

/** Returns fields that are prefilled with the first example, unless the request is destructive. */
function toParameterFields(operation: Operation): Markup[] {
  const { id, parameters, confirmation, examples } = operation;
  const [example] = examples;
  const isPrefilled = example !== undefined && confirmation === null;
  const values = isPrefilled ? valuesIn(operation, example) : new Map<string, string>();
  return parameters.map((parameter) => {
    const { name, required } = parameter;
    const value = values.get(name) ?? '';
    return html`<p><label for="${id}-${name}"><code>${name}</code>${required ? html` <span class="quiet">required</span>` : ''}</label>
${toParameterField(parameter, `${id}-${name}`, isPlaceholder(value) ? '' : value)}</p>
`;
  });
}

/** The field does not validate values, so that readers can see how the service rejects invalid values. */
function toParameterField({ name, in: location, required, schema }: Parameter, id: string, value: string): Markup {
  const { enum: choices, type } = resolveSchema(schema);
  const requiredAttribute = required ? html` required` : '';
  if (Array.isArray(choices))
    return html`<select id="${id}" data-${FIELD_ATTRIBUTES[location]}="${name}"${requiredAttribute}>
${[...(required ? [] : ['']), ...choices.map(String)].map((one) => html`<option${one === value ? html` selected` : ''}>${one}</option>\n`)}</select>`;
  const inputMode = type === 'integer' ? html` inputmode="numeric"` : '';
  const pattern = location === 'path' ? NO_DOTS : '';
  return html`<input id="${id}" data-${FIELD_ATTRIBUTES[location]}="${name}" value="${value}"${requiredAttribute}${inputMode}${pattern} ${VERBATIM}>`;
}

/** Returns buttons that are hidden until a response contains cursors. */
function toPageButtons({ paging }: Operation): HtmlValue {
  if (paging === null) return '';
  const button = (label: string, members: readonly string[]) =>
    html` <button type="button" class="outline" data-cursor="${members.join('.')}" data-into="${paging.parameter}" hidden>${label}</button>`;
  return [button('Previous page', paging.previous), button('Next page', paging.next)];
}

function toBodyField({ id, body, examples }: Operation): HtmlValue {
  const text = examples[0]?.request.body ?? null;
  if (body === null || text === null) return '';
  const { refreshedFields: fields } = body;
  const hint =
    fields === null ? '' : html`\n<span class="hint" id="${id}-body-hint">${toCodeSpans(fields.hint)}</span>`;
  const fieldAttributes =
    fields === null
      ? ''
      : html` data-fresh-ids="${fields.ids.join(' ')}" data-fresh-times="${fields.times.join(' ')}" aria-describedby="${id}-body-hint"`;
  return html`<p><label for="${id}-body">Body <code class="quiet">application/json</code></label>
<textarea id="${id}-body" data-body rows="${Math.min(text.split('\n').length, BODY_LINES_MAX)}" spellcheck="false" autocapitalize="off"${fieldAttributes}>
${text}</textarea>${hint}</p>
`;
}

/** Returns the confirmation dialog for a destructive request. Cancel has the initial focus. */
function toConfirmation({ id, confirmation }: Operation): HtmlValue {
  if (confirmation === null) return '';
  return html`<dialog aria-labelledby="${id}-confirmation">
<h3 id="${id}-confirmation">${confirmation.prompt}</h3>
<p><code data-target></code></p>
<p>${confirmation.consequence}</p>
<p class="actions"><button type="button" class="outline" value="" autofocus>Cancel</button> <button type="button" class="danger" value="confirmed">${confirmation.confirmLabel}</button></p>
</dialog>
`;
}
