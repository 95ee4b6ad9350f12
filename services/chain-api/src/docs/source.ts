import { type DocsSource, html } from '@playline/api-docs';
import { createNowhereExamples, type DocsSettings } from './examples.ts';
import { createOperations, RATE_LIMIT_KEY } from './operations.ts';

/** The interface of the chain API, which every form of its documentation is made of. */
export function createChainDocs(settings: DocsSettings): DocsSource {
  return {
    publicUrl: settings.publicUrl,
    title: 'Playline chain interface',
    version: '1.0.0',
    summary: 'Tokens and activities of chains',
    about: 'Gives tokens of a chain, and the history of its activities for replicas that follow it. JSON over HTTP.',
    notes: [
      'No key is needed. A rate limit key in `x-api-key` counts calls by the plan of its owner instead of the client address; one that is not valid is refused.',
      'Send a request again after 429 (wait `Retry-After` seconds), 500 or a broken connection.',
      'Times are UTC with microseconds. Numbers of chains are strings of digits.',
    ],
    tag: { name: 'chains', description: 'What is known of chains' },
    keys: [
      {
        kind: RATE_LIMIT_KEY,
        header: 'x-api-key',
        label: 'Rate limit key',
        isPublic: false,
        note: 'For servers of partners alone. No operation needs it.',
      },
    ],
    first: {
      title: 'Playline chains',
      lead: 'Read tokens and activities of a chain over HTTP, and follow its history without missing anything.',
      heading: 'Read your first token',
      anchor: 'first-token',
      before: html`<p>You need a chain that is served and the address of a token on it; no key.</p>`,
      after: html`<p>To copy all activities, ask for the history without a cursor, and from then on with the last <code>next_cursor</code>: store it with what you copied.</p>`,
      command: 'The same token as a command',
    },
    operations: createOperations(settings),
    errors: ERROR_WORDS,
    partCodes: null,
    nowhere: createNowhereExamples(settings),
    articles: [],
  };
}

const ERROR_WORDS: DocsSource['errors'] = {
  VALIDATION_ERROR: {
    cause:
      'A parameter has a value that it cannot have, is given twice, or is a cursor that belongs to another chain or to other filters. Headers that are too long have this code and status 431.',
    mend: 'Read `details.errors`: it has each parameter that is wrong, and what it must be. The same request fails again.',
  },
  AUTHENTICATION_ERROR: {
    cause:
      'The request has a rate limit key in `x-api-key` that is not valid: nobody has it, or it was replaced, revoked or has expired.',
    mend: 'Use a current key, or leave the header out: no operation needs one.',
  },
  RESOURCE_NOT_FOUND: {
    cause: 'The chain is not served, the token is not known, or path and method are not part of the interface.',
    mend: 'Compare the name of the chain, the address and the path; all paths start with `/v1/chains`.',
  },
  TOO_MANY_REQUESTS_ERROR: {
    cause: 'The client address, or the rate limit key, has made as many calls as it may within one window.',
    mend: 'Send the same request again after the number of seconds in the `Retry-After` header.',
  },
  INTERNAL_SERVER_ERROR: {
    cause: 'Something inside the service failed or did not answer in time. The request itself was not refused.',
    mend: 'Send the same request again; cursors stay good. If it lasts, give the operator the `trace_id`.',
  },
};
