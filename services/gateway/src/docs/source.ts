import type { DocsSource, KeySpec, PartCodes } from '@playline/api-docs';
import { ERRORS, REJECTIONS } from '@playline/errors';
import { createCookbook } from './cookbook.ts';
import { type DocsSettings, type ExampleContext, keyHeadersOf } from './examples/context.ts';
import { createNowhereExamples } from './examples/nowhere.ts';
import { createFirstPage } from './first-page.ts';
import { createOperations } from './operations.ts';
import { refineSchemas } from './schemas.ts';

/** The interface of the gateway, which every form of its documentation is made of. */
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
    first: createFirstPage(operations),
    operations,
    refineSchemas,
    errors: ERRORS,
    partCodes: REJECTION_CODES,
    nowhere: createNowhereExamples(context),
    articles: [createCookbook()],
  };
}

function createNotes(settings: DocsSettings): string[] {
  const { publishable, secret } = keyHeadersOf(settings);
  return [
    `Messages and consent need a publishable key in the header \`${publishable}\`, erasure a secret key in \`${secret}\`.`,
    'Send a request again only after 429 (wait `Retry-After` seconds), 500 or a broken connection, with the same message ids. Never send it again after another 4xx.',
    'Unknown members are ignored. null in an optional member means that it is absent.',
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
      note: 'For servers alone: never part of a game or a page.',
    },
  ];
}

/** Why single messages of a batch are refused. */
const REJECTION_CODES: PartCodes = {
  folder: 'rejections',
  entries: REJECTIONS,
  occursIn: (code, { body }) => JSON.stringify(body?.rejections ?? []).includes(`"${code}"`),
  words: {
    navigation: 'Rejections of messages',
    heading: 'Rejections of single messages',
    textHeading: 'Rejection codes',
    also: ', and so has every message of a batch that is refused',
    index: 'The batch was judged; this message of it was refused. The others are not affected.',
    lead: 'A message of a batch was refused. The others are judged on their own.',
    again: 'No: the same message is refused again.',
  },
};
