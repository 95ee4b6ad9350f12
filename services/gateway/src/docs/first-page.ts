import { type DocsSource, html, type Operation } from '@playline/api-docs';

/** What the first page says around the form that sends a first event. */
export function createFirstPage([ingest]: readonly Operation[]): DocsSource['first'] {
  return {
    title: 'Playline',
    lead: 'Playline takes the events of your game over HTTP, stores each of them exactly once, and lets you query them a second later, under the person they belong to.',
    heading: 'Send your first event',
    anchor: 'first-event',
    before: html`<p>You need one thing: the publishable key of an environment. Take <code>development</code> for a try. On your own machine, <code>npm start</code> prints it; else ask whoever runs this service, who makes one with <code>npm run keys -- create --environment development --kind publishable</code>.</p>`,
    after: html`<p>A 200 means that the event is on the log, on all replicas. A second later it is in ClickHouse:</p>
<div class="block"><p class="label" id="query">Query</p>
<pre tabindex="0" role="region" aria-labelledby="query">SELECT received_at, event_name, properties
FROM events_exact
WHERE anonymous_id = '${anonymousIdOf(ingest?.examples[0]?.request.body ?? '')}'
ORDER BY received_at DESC LIMIT 5</pre></div>`,
    command: 'The same event as a command',
  };
}

/** Whose event an example is. */
function anonymousIdOf(body: string): string {
  return /"anonymousId": "([^"]*)"/.exec(body)?.[1] ?? '';
}
