import { type ExampleRequest, type KeyKind, keyHeadersOf, type Operation } from '../operation.ts';
import type { DocsSource } from '../source.ts';
import { type HtmlValue, html, type Markup } from './html.ts';
import { toTop } from './page.ts';

const KEY_WORDS: Readonly<Record<KeyKind, { label: string; type: string; hint: string }>> = {
  publishable: {
    label: 'Publishable key',
    type: 'text',
    hint: 'For all forms. Kept in this tab’s session storage until you close this tab, never in an address.',
  },
  secret: {
    label: 'Secret key',
    type: 'password',
    hint: 'For this page alone: forgotten when you leave or reload it, never stored, never in an address.',
  },
};

/** With more, Send lies below the screen of a laptop. */
const BODY_LINES_MAX = 14;

/**
 * A form that sends a real request, with room for the answer beside it; the request of the first example, to be
 * changed. No field has a name: a browser whose scripts did not load could put none of them into an address.
 */
export function toTryForm(operation: Operation, { context }: DocsSource, page: string): Markup {
  const { id, method, path, summary, key, answers } = operation;
  const keyHeader = keyHeadersOf(context)[key];
  const words = Object.fromEntries(answers.map(({ status, description }) => [status, description.replaceAll('`', '')]));
  return html`<form class="try" autocomplete="off" aria-label="Try: ${summary}" data-method="${method}" data-path="${toTop(page)}${path.slice(1)}" data-key-header="${keyHeader}" data-answers="${JSON.stringify(words)}">
<div>
<h3>Try it</h3>
${toKeyField(id, key, keyHeader)}${toQueryFields(operation)}${toBodyField(operation)}<p class="actions"><button type="submit">Send ${method}</button></p>
<noscript><p class="hint">Sending needs JavaScript; the commands on this page do not.</p></noscript>
</div>
<div>
<h3>Answer</h3>
<p role="status" class="quiet" data-outcome>Nothing sent yet.</p>
<pre tabindex="0" role="region" aria-label="Answer to ${summary.toLowerCase()}" data-answer hidden></pre>
</div>
${toQuestion(operation)}</form>`;
}

function toKeyField(id: string, kind: KeyKind, keyHeader: string): Markup {
  const { label, type, hint } = KEY_WORDS[kind];
  return html`<p><label for="${id}-key">${label} <code class="quiet">${keyHeader}</code></label>
<input id="${id}-key" type="${type}" data-key="${kind}" required aria-describedby="${id}-key-hint" autocomplete="off" spellcheck="false" autocapitalize="off">
<span class="hint" id="${id}-key-hint">${hint}</span></p>
`;
}

/** Filled in as the example is, but where the request destroys something. */
function toQueryFields({ id, path, query, caution, examples }: Operation): Markup[] {
  const given = new URL(examples[0]?.request.target ?? path, 'http://any').searchParams;
  return query.map(
    ({
      name,
      required,
    }) => html`<p><label for="${id}-${name}"><code>${name}</code>${required ? html` <span class="quiet">required</span>` : ''}</label>
<input id="${id}-${name}" data-query="${name}" value="${caution === null ? (given.get(name) ?? '') : ''}"${required ? html` required` : ''} autocomplete="off" spellcheck="false" autocapitalize="off"></p>
`,
  );
}

function toBodyField({ id, examples }: Operation): HtmlValue {
  const request: ExampleRequest | undefined = examples[0]?.request;
  const body = request?.body ?? null;
  if (body === null) return '';
  const hint = body.includes('"messageId"')
    ? html`
<span class="hint" id="${id}-body-hint">Each Send makes a new <code>messageId</code> and time. After a 429 or a 500 the same ones go again, as every client must do. Those that you type stay.</span>`
    : '';
  return html`<p><label for="${id}-body">Body <code class="quiet">application/json</code></label>
<textarea id="${id}-body" data-body rows="${Math.min(body.split('\n').length, BODY_LINES_MAX)}" spellcheck="false" autocapitalize="off"${hint === '' ? '' : html` aria-describedby="${id}-body-hint"`}>
${body}</textarea>${hint}</p>
`;
}

/** What is asked before a request that destroys something is sent. The way out has the focus. */
function toQuestion({ id, caution }: Operation): HtmlValue {
  if (caution === null) return '';
  return html`<dialog aria-labelledby="${id}-question">
<h3 id="${id}-question">${caution.question}</h3>
<p><code data-target></code></p>
<p>${caution.consequence}</p>
<p class="actions"><button type="button" class="outline" value="" autofocus>Cancel</button> <button type="button" class="danger" value="sure">${caution.consent}</button></p>
</dialog>
`;
}
