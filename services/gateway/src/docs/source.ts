import {
  type DocsSource,
  type Example,
  envelope,
  html,
  type KeySpec,
  Markup,
  type Operation,
} from '@playline/api-docs';
import { ERRORS, REJECTIONS } from '@playline/errors';
import { createSite } from '@playline/guides';
import { createCookbook } from './cookbook.ts';
import { type DocsSettings, type ExampleContext, getKeyHeaderNames } from './examples.ts';
import { createCodeDetails, createLimitsArticle, createMessagesArticle } from './messages.ts';
import { createOperations, refineSchemas } from './operations.ts';

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
    rejections: REJECTIONS,
    rejectionDetails: createCodeDetails(context),
    otherExamples: createNotFoundExamples(context),
    articles: [...guides, createMessagesArticle(context), createLimitsArticle(context), createCookbook(context)],
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
