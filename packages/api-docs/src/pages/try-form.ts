import type { KeyUse, Operation, Parameter } from '../operation.ts';
import { toWholeSchema } from '../schemas.ts';
import { type DocsSource, keyOf } from '../source.ts';
import { isPlaceholder, valuesIn } from '../values.ts';
import { type HtmlValue, html, type Markup, toCodeSpans } from './html.ts';
import { relativeRoot } from './page.ts';

/** How forms treat keys. A key that is visible in its field is also remembered. */
const KEY_FIELDS = {
  public: {
    type: 'text',
    hint: 'For all forms. Kept in this tab’s session storage until you close this tab, never in an address.',
  },
  secret: {
    type: 'password',
    hint: 'For this page alone: forgotten when you leave or reload it, never stored, never in an address.',
  },
} as const;

/** Keeps the button Send visible on a laptop screen. */
const BODY_LINES_MAX = 14;

/** The data attribute by which scripts find the field of a parameter. */
const FIELD_OF = { path: 'path-name', query: 'query' } as const;

/** Browsers normalise path segments of dots, which would change the address. */
const NO_DOTS = html` pattern="(?!\\.\\.?$).+" title="Not dots alone"`;

/** Keeps browsers from storing or correcting what is typed. */
const AS_TYPED = html`autocomplete="off" spellcheck="false" autocapitalize="off"`;

/**
 * A form that sends a request and shows the answer. It starts with the first example. Fields have no names, so that a
 * browser without scripts puts nothing into an address.
 */
export function toTryForm(operation: Operation, source: DocsSource, page: string): Markup {
  const { id, method, path, summary, keys, answers } = operation;
  const texts = Object.fromEntries(answers.map(({ status, description }) => [status, description.replaceAll('`', '')]));
  return html`<form class="try" autocomplete="off" aria-label="Try: ${summary}" data-method="${method}" data-path="${relativeRoot(page)}${path.slice(1)}" data-answers="${JSON.stringify(texts)}">
<div>
<h3>Try it</h3>
${keys.map((key, index) => toKeyField(key, source, `${id}-key${index === 0 ? '' : `-${index + 1}`}`))}${toParameterFields(operation)}${toBodyField(operation)}<p class="actions"><button type="submit">Send ${method}</button>${toPageButtons(operation)}</p>
<noscript><p class="hint">Sending needs JavaScript; the commands on this page do not.</p></noscript>
</div>
<div>
<h3>Answer</h3>
<p role="status" class="quiet" data-outcome>Nothing sent yet.</p>
<pre tabindex="0" role="region" aria-label="Answer to ${summary.toLowerCase()}" data-answer hidden></pre>
</div>
${toConfirmation(operation)}</form>`;
}

function toKeyField({ kind, required }: KeyUse, source: DocsSource, id: string): Markup {
  const { header, label, isPublic } = keyOf(source, kind);
  const { type, hint } = KEY_FIELDS[isPublic ? 'public' : 'secret'];
  return html`<p><label for="${id}">${label} <code class="quiet">${header}</code>${required ? '' : html` <span class="quiet">optional</span>`}</label>
<input id="${id}" type="${type}" data-key="${kind}" data-key-header="${header}"${required ? html` required` : ''} aria-describedby="${id}-hint" ${AS_TYPED}>
<span class="hint" id="${id}-hint">${hint}</span></p>
`;
}

/** Filled from the example, unless the request destroys something. */
function toParameterFields(operation: Operation): Markup[] {
  const { id, parameters, confirmation: caution, examples } = operation;
  const [example] = examples;
  const given = example === undefined || caution !== null ? new Map<string, string>() : valuesIn(operation, example);
  return parameters.map((parameter) => {
    const { name, required } = parameter;
    const value = given.get(name) ?? '';
    return html`<p><label for="${id}-${name}"><code>${name}</code>${required ? html` <span class="quiet">required</span>` : ''}</label>
${toParameterField(parameter, `${id}-${name}`, isPlaceholder(value) ? '' : value)}</p>
`;
  });
}

/** A field without validation, so that a reader can see how the service answers. */
function toParameterField({ name, in: location, required, schema }: Parameter, id: string, value: string): Markup {
  const { enum: choices, type } = toWholeSchema(schema);
  const need = required ? html` required` : '';
  if (Array.isArray(choices))
    return html`<select id="${id}" data-${FIELD_OF[location]}="${name}"${need}>
${[...(required ? [] : ['']), ...choices.map(String)].map((one) => html`<option${one === value ? html` selected` : ''}>${one}</option>\n`)}</select>`;
  const digits = type === 'integer' ? html` inputmode="numeric"` : '';
  const part = location === 'path' ? NO_DOTS : '';
  return html`<input id="${id}" data-${FIELD_OF[location]}="${name}" value="${value}"${need}${digits}${part} ${AS_TYPED}>`;
}

/** Hidden until an answer has cursors. */
function toPageButtons({ paging }: Operation): HtmlValue {
  if (paging === null) return '';
  const button = (label: string, members: readonly string[]) =>
    html` <button type="button" class="outline" data-cursor="${members.join('.')}" data-into="${paging.parameter}" hidden>${label}</button>`;
  return [button('Previous page', paging.previous), button('Next page', paging.next)];
}

function toBodyField({ id, body, examples }: Operation): HtmlValue {
  const text = examples[0]?.request.body ?? null;
  if (body === null || text === null) return '';
  const { fresh } = body;
  const hint = fresh === null ? '' : html`\n<span class="hint" id="${id}-body-hint">${toCodeSpans(fresh.hint)}</span>`;
  const made =
    fresh === null
      ? ''
      : html` data-fresh-ids="${fresh.ids.join(' ')}" data-fresh-times="${fresh.times.join(' ')}" aria-describedby="${id}-body-hint"`;
  return html`<p><label for="${id}-body">Body <code class="quiet">application/json</code></label>
<textarea id="${id}-body" data-body rows="${Math.min(text.split('\n').length, BODY_LINES_MAX)}" spellcheck="false" autocapitalize="off"${made}>
${text}</textarea>${hint}</p>
`;
}

/** The confirmation before a request that destroys something. Cancel has the focus. */
function toConfirmation({ id, confirmation: caution }: Operation): HtmlValue {
  if (caution === null) return '';
  return html`<dialog aria-labelledby="${id}-confirmation">
<h3 id="${id}-confirmation">${caution.prompt}</h3>
<p><code data-target></code></p>
<p>${caution.consequence}</p>
<p class="actions"><button type="button" class="outline" value="" autofocus>Cancel</button> <button type="button" class="danger" value="sure">${caution.confirmLabel}</button></p>
</dialog>
`;
}
