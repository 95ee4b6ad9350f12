import { hashClosure } from '@playline/erasure';
import { expect, it } from 'vitest';
import { EXIT } from '../command.ts';
import { toAgeText, toDurationText } from './subcommands.ts';
import { createOperator, ENVIRONMENT, NOW, newKey, put, T } from './test/operator.ts';

it.each([
  ['no subcommand', [], 'Usage: npm run erasures'],
  ['an unknown subcommand', ['unknown'], 'expected a subcommand: list, show, verify, scrub, remove'],
  ['a personal id as a subcommand', ['bob'], 'expected a subcommand'],
  ['show without an id', ['show'], "missing required argument 'id'"],
  ['verify without an id', ['verify'], "missing required argument 'id'"],
  ['an invalid id', ['show', 'bob'], 'expected an erasure id'],
  ['an id that is too long', ['verify', `${'0'.repeat(32)}0`], 'expected an erasure id'],
  ['two ids', ['show', '0'.repeat(32), '0'.repeat(32)], 'too many arguments'],
  ['scrub with an argument', ['scrub', '0'.repeat(32)], 'too many arguments'],
  ['an option of another subcommand', ['remove', '--state', 'erased'], "unknown option '--state'"],
  ['an unknown state', ['list', '--state', 'unknown'], 'Allowed choices are waiting, erased, physically-erased'],
  ['an invalid environment', ['list', '--environment', 'moon'], '--environment: expected'],
  ['a maximum above the limit', ['list', '--max', '1001'], 'Expected a number from 1 to 1000'],
  ['an invalid id in --after', ['list', '--after', 'bob'], 'expected an erasure id'],
])('the erasures command refuses %s with exit code 2 before stores are opened', async (_what, args, message) => {
  const { run, opened } = await createOperator();
  const { code, progress, results } = await run(...args);
  expect(code).toBe(EXIT.usage);
  expect(progress).toContain(message);
  expect(progress).not.toContain('bob');
  expect(results).toEqual([]);
  expect(opened).toEqual([]);
});

it('erasures show and verify report that an erasure without a receipt is unfinished or unknown', async () => {
  const { run, records } = await createOperator();
  const { id } = await put(records, { requestedAt: NOW - 5 * 60_000 });
  for (const subcommand of ['show', 'verify']) {
    const unfinished = await run(subcommand, id);
    expect(unfinished).toMatchObject({ code: EXIT.failed, results: [] });
    expect(unfinished.progress).toContain(`erasure ${id} of ${ENVIRONMENT} is unfinished: requested`);
    expect(unfinished.progress).toContain('5 min ago');
    const unknown = await run(subcommand, '0192f3a4-5b6c-7d8e-9f00-112233445566');
    expect(unknown).toMatchObject({ code: EXIT.failed, results: [] });
    expect(unknown.progress).toContain('erasure 0192f3a4-5b6c-7d8e-9f00-112233445566 does not exist');
  }
});

it('erasures list shows pages of erasures, newest first, filtered by state and environment', async () => {
  const { run, records } = await createOperator();
  const requestedBefore = (hours: number) => ({ requestedAt: NOW - hours * 3_600_000 });
  const done = await put(records, {
    ...requestedBefore(30),
    receipt: { physicallyErasedAt: T + 1, logExpiredAt: T + 2 },
  });
  const clean = await put(records, { ...requestedBefore(20), receipt: { physicallyErasedAt: T + 1 } });
  const otherGame = await put(records, { ...requestedBefore(10), environmentId: 'other-development', receipt: {} });
  const waiting = await put(records, requestedBefore(3));
  const { results } = await run('list');
  expect(results).toEqual([
    expect.stringMatching(new RegExp(`^${waiting.id}  demo-production  waiting +requested \\S+Z, 3 h ago$`)),
    expect.stringContaining(`${otherGame.id}  other-development  erased            `),
    expect.stringContaining(`${clean.id}  demo-production  physically erased  `),
    expect.stringMatching(new RegExp(`^${done.id}  demo-production  log expired +.*30 h ago.*identities 1$`)),
  ]);
  const idsOf = async (...more: string[]) => {
    const page = await run('list', '--json', ...more);
    expect(page.code).toBe(EXIT.ok);
    return page.results.map((line) => JSON.parse(line).erasureId);
  };
  expect(await idsOf('--state', 'physically-erased')).toEqual([clean.id]);
  expect(await idsOf('--environment', 'production')).toEqual([waiting.id, clean.id, done.id]);
  expect(await idsOf('--environment', 'development', '--project', 'other')).toEqual([otherGame.id]);
  expect(await idsOf('--environment', 'other-development', '--state', 'waiting')).toEqual([]);
  const first = await run('list', '--max', '3');
  expect(first.results).toHaveLength(3);
  expect(first.progress).toBe(`more erasures: --after ${clean.id}`);
  expect(await idsOf('--max', '3', '--after', clean.id)).toEqual([done.id]);
  expect((await run('list', '--after', clean.id.replaceAll('-', ''))).results).toHaveLength(1);
  const unknown = await run('list', '--after', '0'.repeat(32));
  expect(unknown).toMatchObject({ code: EXIT.usage, results: [] });
  expect((await run('list', '--environment', 'unknown-production')).results).toEqual(['no erasures']);
});

it('erasures show prints the completed and pending steps of a receipt', async () => {
  const { run, records } = await createOperator();
  const keys = [newKey(), newKey()];
  const { id } = await put(records, { keys, receipt: {} });
  const { code, results, text } = await run('show', id);
  expect(code).toBe(EXIT.ok);
  expect(results).toEqual([
    `erasure     ${id}  demo-production  erased`,
    'accepted    2026-06-14T23:59:58.000Z  26 h ago',
    'cut-off     2026-06-15T00:00:00.000Z  26 h ago, data created or received up to this time is erased',
    'fenced      2026-06-15T00:00:01.000Z  25 h ago, 3 s after the request',
    'invisible   2026-06-15T00:00:10.000Z  25 h ago, 12 s after the request: queries return no rows',
    'physical    pending: removed tonight, or with npm run erasures -- remove',
    'log         pending: due 2026-06-18T06:00:00.000Z, in 2 d',
    'identities  2',
    `hash        ${hashClosure(keys).toString('hex')}  SHA-256 of the identity keys`,
    'stores      clickhouse.events  deleted 12, remaining 0',
    '            redis.i            deleted 2, remaining not counted',
    'log ends    audience.messages.v1/0  1234',
    '            audience.messages.v1/1  7',
    `trace       ${'c'.repeat(32)}`,
  ]);
  for (const key of keys) expect(text).not.toContain(key.toString('hex'));
});

it('erasures show prints the physical removal, and reports an overdue log expiry', async () => {
  const { run, records } = await createOperator();
  const overdue = await put(records, { receipt: { physicallyErasedAt: NOW - 60_000, logExpiresAt: NOW - 7_200_000 } });
  const { text } = await run('show', overdue.id);
  expect(text).toContain('physical    2026-06-16T01:59:00.000Z  60 s ago, no rows remain in files');
  expect(text).toContain('log         pending: OVERDUE SINCE 2026-06-16T00:00:00.000Z, 2 h ago');
  const done = await put(records, { receipt: { physicallyErasedAt: T + 1, logExpiredAt: NOW } });
  expect((await run('show', done.id)).text).toContain('log         2026-06-16T02:00:00.000Z  0 s ago');
  const { results } = await run('show', done.id, '--json');
  expect(JSON.parse(results[0]!)).toMatchObject({
    erasureId: done.id,
    state: 'log expired',
    closureCount: 1,
    logExpiredAt: '2026-06-16T02:00:00.000Z',
    deleted: { 'clickhouse.events': 12 },
  });
});

const createRow = (key: Buffer) => ({
  environment_id: ENVIRONMENT,
  event_time: T,
  received_at: T,
  identity_key: key,
  anonymous_key: Buffer.alloc(16),
  from_key: Buffer.alloc(16),
  to_key: Buffer.alloc(16),
});

it('erasures verify exits with code 0 if no data remains, and with code 1 if a row remains', async () => {
  const { run, records, rows } = await createOperator();
  const { id, keys } = await put(records, { receipt: {} });
  const clean = await run('verify', id);
  expect(clean.code).toBe(EXIT.ok);
  expect(clean.text).toContain('identities  1 of 1 searched');
  expect(clean.text).toContain('hash        matches');
  expect(clean.text).toContain('redis.i');
  expect(clean.results.at(-1)).toBe('verified: no data remains');
  rows.add('events', createRow(keys[0]!));
  const { code, text, results } = await run('verify', id);
  expect(code).toBe(EXIT.failed);
  expect(text).toMatch(/remaining {3}clickhouse\.events +1 {2}in files 1, removal pending/);
  expect(results.at(-1)).toMatch(/^NOT VERIFIED: data from before the cut-off remains/);
  expect(text).not.toContain(keys[0]!.toString('hex'));
  const json = JSON.parse((await run('verify', id, '--json')).results[0]!);
  expect(json).toMatchObject({ erasureId: id, isVerified: false, left: { 'clickhouse.events': 1, 'redis.c': 0 } });
});

it('erasures verify exits with code 1 if a consent from before the cut-off remains, or the key hash differs', async () => {
  const { run, records, people } = await createOperator();
  const { id, keys } = await put(records, { receipt: {} });
  const position = { partition: 0, offset: 1, loggedAtMs: T };
  const consent = { environmentId: ENVIRONMENT, identityKey: keys[0]!, status: 'full', receivedAt: T } as const;
  await people.consents.apply({ ...consent, position });
  const { code, text } = await run('verify', id);
  expect(code).toBe(EXIT.failed);
  expect(text).toMatch(/redis\.c +1/);
  const other = await put(records, { receipt: { closureHash: Buffer.alloc(32, 1) } });
  const differs = await run('verify', other.id);
  expect(differs.code).toBe(EXIT.failed);
  expect(differs.text).toContain('hash        DIFFERS');
});

it('erasures verify recommends verifying a later erasure if keys of the erasure are unknown', async () => {
  const { run, records } = await createOperator();
  const [named, other] = [newKey(), newKey()];
  const first = await put(records, { keys: [named], receipt: { closureCount: 2 } });
  const later = await put(records, { keys: [named, other] });
  const { code, text } = await run('verify', first.id);
  expect(code).toBe(EXIT.failed);
  expect(text).toContain('identities  1 of 2 searched');
  expect(text).toContain('cannot be checked: 1 unknown key');
  expect(text).toContain(`verify erasure ${later.id}, which covers the other keys`);
});

it('erasures verify fails while Redis has no epoch', async () => {
  const { run, records, people } = await createOperator();
  const { id } = await put(records, { receipt: {} });
  people.readEpoch = async () => null;
  const { code, progress, results } = await run('verify', id);
  expect({ code, results }).toEqual({ code: EXIT.failed, results: [] });
  expect(progress).toMatch(/^erasures verify: /);
});

it('erasures scrub and remove exit with code 1 if data is found, and with code 0 after the data was deleted', async () => {
  const { run, records, rows } = await createOperator();
  const { id, keys } = await put(records, { receipt: {} });
  rows.add('events', createRow(keys[0]!));
  const blocked = await run('remove');
  expect(blocked.code).toBe(EXIT.failed);
  expect(blocked.text).toContain('IN FILES    rows in events of demo-production by identity_key: 1');
  expect(blocked.text).toContain('receipts    0 marked');
  const found = await run('scrub');
  expect(found.code).toBe(EXIT.failed);
  expect(found.text).toContain('FOUND       rows in events of demo-production by identity_key: 1');
  expect(found.progress).toContain('pass 1 found');
  const clean = await run('scrub');
  expect(clean).toMatchObject({ code: EXIT.ok, results: ['searched    1 fence', 'no data remains'] });
  const removed = await run('remove', '--json');
  expect(removed.code).toBe(EXIT.ok);
  expect(JSON.parse(removed.results[0]!)).toEqual({ fences: 1, foundOnDisk: [], marked: 1, deferred: 0 });
  expect((await run('show', id)).text).toContain('physically erased');
  for (const { text, progress } of [blocked, found, clean, removed])
    expect(text + progress).not.toContain(keys[0]!.toString('hex'));
});

it('erasures scrub and remove can be interrupted and run again', async () => {
  const { run, records, stop, rows } = await createOperator();
  await put(records, { receipt: {} });
  stop.abort();
  for (const subcommand of ['scrub', 'remove']) {
    const { code, progress, results } = await run(subcommand);
    expect({ code, results }).toEqual({ code: EXIT.failed, results: [] });
    expect(progress).toContain('interrupted: run the command again');
  }
  expect(await rows.readBatches()).toEqual([]);
});

it('toDurationText uses the largest unit in which the value is at least two', () => {
  expect([0, 999, 1_000, 119_000, 120_000, 7_199_999, 7_200_000, 172_800_000].map(toDurationText)).toEqual([
    ...['0 s', '0 s', '1 s', '119 s', '2 min', '119 min', '2 h', '2 d'],
  ]);
  expect([toAgeText(1_000, 4_000), toAgeText(9_000, 4_000), toAgeText(4_000, 4_000)]).toEqual([
    ...['3 s ago', 'in 5 s', '0 s ago'],
  ]);
});
