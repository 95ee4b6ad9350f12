import { randomBytes } from 'node:crypto';
import { openRateLimitKeyFinder, PROJECTS, RATE_LIMIT_KEYS } from '@playline/access-keys';
import { openRedisRecords } from '@playline/access-keys/redis';
import { FRAME_BYTES, rateLimitKeyCodec, TOPICS } from '@playline/contracts';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { createKeysCommand, type KeysContext } from '../commands/keys.ts';
import { createRecordSources } from '../records/record-sources.ts';
import { createMemoryAccess, createMemorySources } from '../test/memory-sources.ts';
import { openRecordStores, type RecordStores } from '../test/record-stores.ts';
import { runInProcess } from '../test/run-in-process.ts';

const KEY_PREFIX = 'svcapik';
let recordStores: RecordStores;
beforeAll(async () => {
  recordStores = await openRecordStores();
});
afterAll(() => recordStores?.close());

function createSources() {
  const author = { changedBy: 'ada', requestId: randomBytes(4).toString('hex') };
  return createRecordSources(recordStores.storesOn(), { topicPrefix: recordStores.topicPrefix, author })(
    RATE_LIMIT_KEYS,
  );
}

async function run(args: string[], between: Partial<KeysContext['rateLimitKeys']> = {}) {
  const context: KeysContext = {
    ...createMemoryAccess(),
    rateLimitKeys: { ...createSources(), ...between },
    kinds: [createSources() as unknown as KeysContext['kinds'][number]],
    projects: createMemorySources(PROJECTS),
    prefix: KEY_PREFIX,
    publish: () => Promise.reject(new Error('no stack shows keys of partners')),
  };
  const ofPartners = args[0] === 'rebuild' ? [] : ['--kind', 'rate-limit'];
  const { code, results, progress } = await runInProcess(
    [createKeysCommand(context)],
    ['keys', ...args, ...ofPartners, '--json'],
  );
  return { code, made: results.map((line) => JSON.parse(line)), progress };
}

const create = (partner: string, ...args: string[]) =>
  run(['create', '--partner', partner, '--calls', '6000', ...args]);

/** The answer of a service with an empty cache for a key. */
async function verdictOf(key: string): Promise<string> {
  const view = await openRedisRecords(RATE_LIMIT_KEYS, { url: recordStores.redis.url });
  const finder = openRateLimitKeyFinder({ view, prefix: KEY_PREFIX, readEveryMs: 0 });
  try {
    const found = await finder.find(key);
    return found?.keyId ?? 'refused';
  } catch (fault) {
    return (fault as Error).name;
  } finally {
    finder.close();
    await view.close();
  }
}

it('rate limit key commands write every change to the log under its key id, with hashes only and with its author', async () => {
  const [made] = (await create('Acme', '--expires', '2999-01-31')).made;
  expect(made).toMatchObject({ partner: 'Acme', calls: 6000, windowS: 300, expiresAt: Date.UTC(2999, 0, 31) });
  await run(['revoke', '--id', made.keyId]);
  const records = await recordStores.storesOn().readTopic(recordStores.topicPrefix + TOPICS.rateLimitKeys.name);
  const own = records.filter(({ key }) => String(key) === made.keyId);
  const states = own.map(({ value }) => rateLimitKeyCodec.decode(value!.subarray(FRAME_BYTES)));
  expect(states).toMatchObject([
    { revision: 1, revokedAt: null, changedBy: 'ada' },
    { revision: 2, revokedAt: expect.any(Number), changedBy: 'ada' },
  ]);
  expect(new Set(states.map(({ requestId }) => requestId)).size).toBe(2);
  expect(records.map(({ value }) => value!.toString('latin1')).join()).not.toContain(made.key.slice(-36));
});

it('rate limit key commands replace a key by its successor under the same id, and change its plan only on request', async () => {
  const [first] = (await create('Beta', '--window-s', '60')).made;
  const [second] = (await run(['refresh', '--id', first.keyId, '--calls', '9'])).made;
  expect(second).toMatchObject({ keyId: first.keyId, partner: 'Beta', calls: 9, windowS: 60 });
  expect([await verdictOf(first.key), await verdictOf(second.key)]).toEqual(['refused', first.keyId]);
  await run(['revoke', '--id', first.keyId]);
  expect(await verdictOf(second.key)).toBe('refused');
  const again = await run(['refresh', '--id', first.keyId]);
  expect(again).toMatchObject({ code: 1, made: [], progress: expect.stringContaining('revoked') });
});

it('rate limit key commands list keys of a partner without text and hash, expired ones as expired', async () => {
  const [made] = (await create('Gamma', '--expires', '2020-01-31T12:00Z')).made;
  const listed = await run(['list', '--partner', 'Gamma']);
  expect(listed.made).toMatchObject([{ keyId: made.keyId, state: 'expired', last4: made.key.slice(-4) }]);
  expect(JSON.stringify(listed)).not.toMatch(new RegExp(`hash|${made.key.slice(-36)}`));
  expect(await verdictOf(made.key)).toBe('refused');
});

it.each([
  ['a key for unknown', ['create', '--calls', '5'], '--partner: expected'],
  ['a plan without calls', ['create', '--partner', 'P'], '--calls: expected'],
  ['half a call', ['create', '--partner', 'P', '--calls', '1.5'], 'Expected a whole number'],
  [
    'a window of a week',
    ['create', '--partner', 'P', '--calls', '5', '--window-s', '604800'],
    'Expected a number from 1 to',
  ],
  [
    'an expiry without an offset',
    ['create', '--partner', 'P', '--calls', '5', '--expires', '2027-01-31T12:00'],
    '--expires: expected',
  ],
  ['an environment', ['list', '--environment', 'production'], '--environment: not with --kind rate-limit'],
  ['a refresh of no key', ['refresh'], '--id: expected'],
])('rate limit key commands refuse %s with exit code 2, before anything is opened', async (_what, args, sentence) => {
  const nowhere = () => Promise.reject(new Error('opened'));
  const { code, made, progress } = await run(args, { openView: nowhere, openLog: nowhere });
  expect({ code, made }).toEqual({ code: 2, made: [] });
  expect(progress).toContain(sentence);
});
