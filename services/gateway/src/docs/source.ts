import {
  type Article,
  type DocsSource,
  type Example,
  envelope,
  type HtmlValue,
  html,
  type KeySpec,
  type Operation,
  type PartCodes,
  toCodeSpans,
} from '@playline/api-docs';
import { ERRORS, REJECTIONS } from '@playline/errors';
import { type Recipe, readRecipes } from '@playline/events';
import { type DocsSettings, type ExampleContext, keyHeadersOf } from './examples.ts';
import { createOperations, refineSchemas } from './operations.ts';

const NAME = 'cookbook';

/** The pages and the downloads are made from the same files. */
function createCookbook(): Article {
  const recipes = readRecipes();
  return {
    name: NAME,
    title: 'Cookbook',
    summary: 'SQL for common queries of events: activity, retention, actions, payments and consent.',
    content: html`<p>Each recipe is a file that can be piped to ClickHouse, and begins with the description on this page. Names in braces, such as <code>{since: Date}</code>, are parameters; their values are sent with the request. Days and times are UTC. A test runs every file against the traffic of a simulated game.</p>
<p>The commands take the address from <code>CLICKHOUSE_URL</code> and the password from <code>CLICKHOUSE_PASSWORD</code>. Over HTTP, <code>default_format=PrettyCompact</code> in the address makes a table of the answer.</p>
${recipes.map(toSection)}`,
    files: recipes.map(({ file, text }) => ({ name: file, text })),
  };
}

function toSection({ file, title, about, parameters, cost, commands, query }: Recipe): HtmlValue {
  const id = file.replace('.sql', '');
  const [overHttp = '', byClient = ''] = commands;
  return html`<h2 id="${id}">${title}</h2>
${about.map((text) => html`<p>${toCodeSpans(text)}</p>\n`)}<ul>
${parameters.map(({ names, description }) => html`<li>${names.map((name, index) => html`${index === 0 ? '' : ', '}<code>${name}</code>`)}: ${description}</li>\n`)}</ul>
<p>Cost: ${cost}</p>
<p>File: <a href="${NAME}/${file}"><code>${file}</code></a></p>
<details class="fold"><summary>Query and commands</summary>
<div class="examples">
${toBlock(`${id}-query`, 'Query', query)}
${toBlock(`${id}-http`, 'Over HTTP', overHttp)}
${toBlock(`${id}-client`, 'With a client', byClient)}
</div>
</details>
`;
}

function toBlock(id: string, label: string, sample: string): HtmlValue {
  return html`<div class="block"><p class="label" id="${id}">${label}</p>
<pre tabindex="0" role="region" aria-labelledby="${id}">${sample}</pre></div>`;
}

/** The description of the gateway's interface. */
export function createGatewayDocs(context: ExampleContext): DocsSource {
  const operations = createOperations(context);
  return {
    publicUrl: context.publicUrl,
    title: 'Playline audience interface',
    version: '1.0.0',
    summary: 'Events of games, consent and erasure',
    about:
      'Takes batches of game events, keeps the tracking consent of visitors, and erases one person on request. JSON over HTTP.',
    notes: createNotes(context),
    tag: { name: 'audience', description: 'Messages, consent and erasure of players and visitors' },
    keys: createKeys(context),
    firstPage: createFirstPage(operations),
    operations,
    refineSchemas,
    errors: ERRORS,
    partCodes: REJECTION_CODES,
    otherExamples: createNowhereExamples(context),
    articles: [createCookbook()],
  };
}

function createFirstPage([ingest]: readonly Operation[]): DocsSource['firstPage'] {
  return {
    title: 'Playline',
    lead: 'Playline takes the events of your game over HTTP and stores each exactly once. A second later you can query them by person.',
    heading: 'Send your first event',
    anchor: 'first-event',
    before: html`<p>You need the publishable key of an environment, such as <code>development</code>. On your own machine, <code>npm start</code> prints it. Otherwise the operator of this service creates one with <code>npm run keys -- create --environment development --kind publishable</code>.</p>`,
    after: html`<p>A 200 means that the event is stored on all replicas of the log. A second later it is in ClickHouse:</p>
<div class="block"><p class="label" id="query">Query</p>
<pre tabindex="0" role="region" aria-labelledby="query">SELECT received_at, event_name, properties
FROM events_exact
WHERE anonymous_id = '${anonymousIdOf(ingest?.examples[0]?.request.body ?? '')}'
ORDER BY received_at DESC LIMIT 5</pre></div>`,
    command: 'The same event as a command',
  };
}

function anonymousIdOf(body: string): string {
  return /"anonymousId": "([^"]*)"/.exec(body)?.[1] ?? '';
}

function createNowhereExamples(context: ExampleContext): Example[] {
  const message = 'No operation has this path and method.';
  const answer = envelope(context, 'RESOURCE_NOT_FOUND', { message });
  return [
    {
      name: 'unknown-path',
      title: 'An unknown path',
      request: { method: 'POST', target: '/v1/audience/message', headers: {}, body: null },
      answer,
    },
    {
      name: 'wrong-method',
      title: 'A method that the path does not have',
      request: { method: 'GET', target: '/v1/audience/messages', headers: {}, body: null },
      answer,
    },
  ];
}

function createNotes(settings: DocsSettings): string[] {
  const { publishable, secret } = keyHeadersOf(settings);
  return [
    `Messages and consent need a publishable key in the header \`${publishable}\`, erasure a secret key in \`${secret}\`.`,
    'Send a request again only after 429 (wait `Retry-After` seconds), 500 or a broken connection, with the same message ids. Never resend it after another 4xx.',
    'Unknown members are ignored. null in an optional member means absent.',
  ];
}

function createKeys(settings: DocsSettings): KeySpec[] {
  const { publishable, secret } = keyHeadersOf(settings);
  return [
    {
      kind: 'publishable',
      header: publishable,
      label: 'Publishable key',
      isPublic: true,
      note: 'Public: may be part of a game or a page.',
    },
    {
      kind: 'secret',
      header: secret,
      label: 'Secret key',
      isPublic: false,
      note: 'For servers only: never part of a game or a page.',
    },
  ];
}

const REJECTION_CODES: PartCodes = {
  folder: 'rejections',
  entries: REJECTIONS,
  occursIn: (code, { body }) => JSON.stringify(body?.rejections ?? []).includes(`"${code}"`),
  texts: {
    navigation: 'Rejections of messages',
    heading: 'Rejections of single messages',
    textHeading: 'Rejection codes',
    introSuffix: ', and so has every rejected message of a batch',
    index: 'The batch was processed; this message was rejected. The others are not affected.',
    lead: 'A message of a batch was rejected. The others are not affected.',
    resend: 'No: the same message is rejected again.',
  },
};
