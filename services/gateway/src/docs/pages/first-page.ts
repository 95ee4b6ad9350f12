import type { Operation } from '../operation.ts';
import type { DocsSource } from '../source.ts';
import { toExamplePair } from './example.ts';
import { type HtmlValue, html } from './html.ts';
import { toOperationLink } from './navigation.ts';
import { toPage, toTop } from './page.ts';
import { toTryForm } from './try-form.ts';
import { toCodeSpans } from './words.ts';

const PATH = '/docs';
const TOP = toTop(PATH);

/** The first page: what the product is, a first event, and where to read on. */
export function createFirstPage(source: DocsSource): string {
  const { operations, context } = source;
  const [ingest] = operations;
  const content = html`<p class="lead">Playline takes the events of your game over HTTP, stores each of them exactly once, and lets you query them a second later, under the person they belong to.</p>
${ingest === undefined ? '' : toFirstEvent(ingest, source)}
<h2>What comes next</h2>
<dl class="rows">
${operations.map((operation) => html`<div><dt>${toOperationLink(operation, TOP)}</dt><dd>${toCodeSpans(operation.description[0] ?? '')}</dd></div>\n`)}<div><dt><a href="${TOP}docs/errors">Error codes</a></dt><dd>What each code means and what to do. The <code>link</code> in every error opens its page.</dd></div>
<div><dt><a href="${TOP}openapi.json">OpenAPI 3.1</a></dt><dd>Every operation and schema, for generators of clients.</dd></div>
<div><dt><a href="${TOP}collection.json">Collection</a></dt><dd>Every example as a request, for Postman and Bruno.</dd></div>
<div><dt><a href="${TOP}llms.txt">llms.txt</a></dt><dd>The whole interface in one text, for language models.</dd></div>
</dl>
<p>Base address: <code>${context.publicUrl}</code></p>`;
  return toPage(source, { title: 'Playline', path: PATH, content, forms: true });
}

function toFirstEvent(ingest: Operation, source: DocsSource): HtmlValue {
  const [example] = ingest.examples;
  if (example === undefined) return '';
  return html`<h2 id="first-event">Send your first event</h2>
<p>You need one thing: the publishable key of an environment. Take <code>development</code> for a try. On your own machine, <code>npm start</code> prints it; else ask whoever runs this service, who makes one with <code>npm run keys -- create --environment development --kind publishable</code>.</p>
${toTryForm(ingest, source, PATH)}
<p>A 200 means that the event is on the log, on all replicas. A second later it is in ClickHouse:</p>
<div class="block"><p class="label" id="query">Query</p>
<pre tabindex="0" role="region" aria-labelledby="query">SELECT received_at, event_name, properties
FROM events_exact
WHERE anonymous_id = '${anonymousIdOf(example.request.body)}'
ORDER BY received_at DESC LIMIT 5</pre></div>
<details class="fold"><summary>The same event as a command</summary>
${toExamplePair(example, { publicUrl: source.context.publicUrl, top: TOP })}
</details>`;
}

/** Whose event an example is. */
function anonymousIdOf(body: string | null): string {
  return /"anonymousId": "([^"]*)"/.exec(body ?? '')?.[1] ?? '';
}
