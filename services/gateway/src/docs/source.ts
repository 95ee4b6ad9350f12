import {
  type Article,
  type DocsSource,
  type Example,
  envelope,
  type HtmlValue,
  html,
  type ItemErrors,
  type KeySpec,
  Markup,
  type Operation,
  toCodeSpans,
} from '@playline/api-docs';
import { ERRORS, REJECTIONS } from '@playline/errors';
import { type Recipe, readRecipes } from '@playline/events';
import { createSite } from '@playline/guides';
import { type DocsSettings, type ExampleContext, getKeyHeaderNames } from './examples.ts';
import { createCodeDetails, createLimitsArticle, createMessagesArticle } from './messages.ts';
import { createOperations, refineSchemas } from './operations.ts';

const COOKBOOK = 'cookbook';

/** The page and its downloads come from the same files. */
function createCookbook(): Article {
  const recipes = readRecipes();
  return {
    name: COOKBOOK,
    area: 'Analysts',
    title: 'Cookbook',
    summary: 'SQL queries for player activity, retention, actions, payments and consent.',
    content: html`<p>Each recipe is a SQL file that you can pipe to ClickHouse. The file starts with the description shown here. Names in braces, such as <code>{since: Date}</code>, are query parameters: pass their values with the request. All dates and times are in UTC. A test runs every recipe against the traffic of a simulated game.</p>
<p>The commands read the server address from <code>CLICKHOUSE_URL</code> and the password from <code>CLICKHOUSE_PASSWORD</code>. To get a readable table over HTTP, add <code>default_format=PrettyCompact</code> to the URL.</p>
${recipes.map(toSection)}`,
    files: recipes.map(({ file, text }) => ({ name: file, text })),
  };
}

function toSection({ file, title, about, parameters, cost, commands, query }: Recipe): HtmlValue {
  const id = file.replace('.sql', '');
  const [httpCommand = '', clientCommand = ''] = commands;
  return html`<h2 id="${id}">${title}</h2>
${about.map((text) => html`<p>${toCodeSpans(text)}</p>\n`)}<ul>
${parameters.map(({ names, description }) => html`<li>${names.map((name, index) => html`${index === 0 ? '' : ', '}<code>${name}</code>`)}: ${description}</li>\n`)}</ul>
<p>Cost: ${cost}</p>
<p>File: <a href="${COOKBOOK}/${file}"><code>${file}</code></a></p>
<details class="fold"><summary>Query and commands</summary>
<div class="examples">
${toBlock(`${id}-query`, 'Query', query)}
${toBlock(`${id}-http`, 'Over HTTP', httpCommand)}
${toBlock(`${id}-client`, 'With clickhouse-client', clientCommand)}
</div>
</details>
`;
}

function toBlock(id: string, label: string, sample: string): HtmlValue {
  return html`<div class="block"><p class="label" id="${id}">${label}</p>
<pre tabindex="0" role="region" aria-labelledby="${id}">${sample}</pre></div>`;
}

/** The source of the gateway's API documentation. */
export function createGatewayDocs(context: ExampleContext): DocsSource {
  const operations = createOperations(context);
  const { publicUrl, chainApiUrl = null, headerPrefix, downloads = new Map() } = context;
  const site = createSite({
    own: 'events',
    urls: { events: publicUrl, chain: chainApiUrl },
    headerPrefix,
  });
  const guides = site.guides.map((guide) => Object.assign({}, guide, { content: new Markup(guide.content) }));
  return {
    area: 'Events',
    elsewhere: site.elsewhere,
    publicUrl: context.publicUrl,
    title: 'Playline Audience API',
    version: '1.0.0',
    summary: 'Game events, consent and erasure',
    about:
      'Accepts batches of game events, stores the tracking consent of visitors, and erases all data about a person on request. JSON over HTTP.',
    notes: createNotes(context),
    tag: { name: 'audience', description: 'Messages, consent and erasure for players and visitors' },
    keys: createKeys(context),
    firstPage: createFirstPage(operations),
    operations,
    refineSchemas,
    errors: ERRORS,
    itemErrors: Object.assign({ details: createCodeDetails(context) }, REJECTION_CODES),
    otherExamples: createNotFoundExamples(context),
    articles: [...guides, createMessagesArticle(context), createLimitsArticle(context), createCookbook()],
    downloads,
  };
}

function createFirstPage([ingest]: readonly Operation[]): DocsSource['firstPage'] {
  return {
    title: 'Playline',
    lead: "Playline receives your game's events over HTTP and stores each event exactly once. A second later you can query the events by person.",
    heading: 'Send your first event',
    anchor: 'first-event',
    before: html`<p>You need the publishable key of an environment, such as <code>development</code>. If you run Playline locally, <code>npm start</code> prints it. Otherwise the operator of this service can create one with <code>npm run keys -- create --environment development --kind publishable</code>.</p>`,
    after: html`<p>A 200 response means that the event is stored on all in-sync replicas of the log. A second later you can query it in ClickHouse:</p>
<div class="block"><p class="label" id="query">Query</p>
<pre tabindex="0" role="region" aria-labelledby="query">SELECT received_at, event_name, properties
FROM events_exact
WHERE anonymous_id = '${readAnonymousId(ingest?.examples[0]?.request.body ?? '')}'
ORDER BY received_at DESC LIMIT 5</pre></div>`,
    command: 'Send the same event from the command line',
  };
}

function readAnonymousId(body: string): string {
  return /"anonymousId": "([^"]*)"/.exec(body)?.[1] ?? '';
}

function createNotFoundExamples(context: ExampleContext): Example[] {
  const message = 'No operation has this path and method.';
  const response = envelope(context, 'RESOURCE_NOT_FOUND', { message });
  return [
    {
      name: 'unknown-path',
      title: 'An unknown path',
      request: { method: 'POST', target: '/v1/audience/message', headers: {}, body: null },
      response,
    },
    {
      name: 'wrong-method',
      title: 'A method that the path does not support',
      request: { method: 'GET', target: '/v1/audience/messages', headers: {}, body: null },
      response,
    },
  ];
}

function createNotes(settings: DocsSettings): string[] {
  const { publishable, secret } = getKeyHeaderNames(settings);
  return [
    `Messages and consent require a publishable key in the \`${publishable}\` header. Erasure requires a secret key in the \`${secret}\` header.`,
    'Retry a request only after a 429 (wait for `Retry-After` seconds), a 500 or a broken connection, and keep the same message ids. Do not retry after any other 4xx.',
    'Unknown fields are ignored. An optional field that is null counts as absent.',
  ];
}

function createKeys(settings: DocsSettings): KeySpec[] {
  const { publishable, secret } = getKeyHeaderNames(settings);
  return [
    {
      kind: 'publishable',
      header: publishable,
      label: 'Publishable key',
      isPublic: true,
      note: 'Public: can be embedded in a game or a web page.',
    },
    {
      kind: 'secret',
      header: secret,
      label: 'Secret key',
      isPublic: false,
      note: 'For servers only: never embed it in a game or a web page.',
    },
  ];
}

const REJECTION_CODES: ItemErrors = {
  folder: 'rejections',
  entries: REJECTIONS,
  occursIn: (code, { body }) => JSON.stringify(body?.rejections ?? []).includes(`"${code}"`),
  texts: {
    navigation: 'Message rejections',
    heading: 'Message rejections',
    textHeading: 'Rejection codes',
    introSuffix: ', as does every rejected message in a batch',
    index: 'The batch was processed, but this message was rejected. Other messages in the batch are not affected.',
    lead: 'One message in a batch was rejected. Other messages in the batch are not affected.',
    resend: 'No. The same message would be rejected again.',
  },
};
