import { readdirSync, readFileSync } from 'node:fs';
import { TABLE_DISTRIBUTIONS } from '@playline/contracts';
import { type ErasureStore, REDIS_STORES, SWEPT_TABLES, TABLES, TOPIC_STORES } from '@playline/erasure';
import { allTopics } from '@playline/infra/kafka';
import { describe, expect, it } from 'vitest';
import { findNameGaps, findTableGaps, type RealColumn } from './gaps.ts';

const ROOT = new URL('../..', import.meta.url);
const read = (path: string) => readFileSync(new URL(path, ROOT), 'utf8');

/** All registered columns, as ClickHouse would describe them. */
const registeredColumns = (): RealColumn[] =>
  TABLES.flatMap(({ name: table, columns, clearing }) => {
    const swept =
      clearing.by === 'sweep'
        ? [...clearing.ownKeys, ...clearing.carriedKeys.flatMap(({ key, idColumns }) => [key, ...idColumns])]
        : [];
    const times = clearing.by === 'sweep' ? clearing.timeColumns : [];
    const plain = [...new Set([...Object.keys(columns), ...swept])];
    return [
      ...plain.map((name) => ({ table, name, type: 'String', inSortingKey: false })),
      ...times.map((name) => ({ table, name, type: "DateTime64(3, 'UTC')", inSortingKey: false })),
    ];
  });
const column = (table: string, name: string, fields: Partial<RealColumn> = {}): RealColumn => ({
  table,
  name,
  type: 'String',
  inSortingKey: false,
  ...fields,
});
const withColumn = (added: RealColumn) => findTableGaps([...registeredColumns(), added], TABLES);

describe('the registry of stores', () => {
  it('findTableGaps returns no gaps for the registered columns', () => {
    expect(findTableGaps(registeredColumns(), TABLES)).toEqual([]);
  });

  it.each([
    ['a table', column('sessions', 'started_at'), /^table sessions is not registered: add it to .*tables\.ts/],
    ['a key in a swept table', column('events', 'friend_key'), /^column events\.friend_key is not registered: add it/],
    ['a raw id in a swept table', column('events', 'email_id'), /^column events\.email_id is not registered/],
    [
      'keys in a swept table',
      column('consent_log', 'device_keys'),
      /^column consent_log\.device_keys is not registered/,
    ],
    [
      'a hash with another name',
      column('events', 'who', { type: 'FixedString(16)' }),
      /^column events\.who is not registered/,
    ],
    ['a list of hashes', column('events', 'whom', { type: 'Array(FixedString(16))' }), /^column events\.whom is not/],
    ['a column in a table that is not swept', column('message_rejections', 'note'), /^column message_rejections\.note/],
  ])('findTableGaps reports an unregistered column: %s', (_what, added, sentence) => {
    const gaps = withColumn(added);
    expect(gaps).toEqual([expect.stringMatching(sentence)]);
  });

  it('columns for event properties need no registration', () => {
    for (const name of ['property_friend_id', 'game_version']) expect(withColumn(column('events', name))).toEqual([]);
    expect(withColumn(column('consent_log', 'property_friend_id'))).toEqual([
      expect.stringMatching(/^column consent_log\.property_friend_id is not registered/),
    ]);
  });

  it('findTableGaps reports registered tables and columns that do not exist', () => {
    const gaps = findTableGaps(
      registeredColumns().filter(({ table, name }) => table !== 'consent_log' && name !== 'device_id'),
      TABLES,
    );
    expect(gaps).toEqual([
      expect.stringMatching(/^column events\.device_id is registered but does not exist/),
      expect.stringMatching(/^table consent_log is registered but does not exist/),
    ]);
  });

  it('findTableGaps reports columns that cannot be blanked or compared with a cut-off', () => {
    const columns = registeredColumns().map((each) => ({
      ...each,
      inSortingKey: each.name === 'anonymous_key',
      type: each.name === 'linked_at' ? 'DateTime' : each.type,
    }));
    expect(findTableGaps(columns, TABLES)).toEqual([
      expect.stringMatching(/^column events\.anonymous_key is in the sorting key and cannot be blanked/),
      expect.stringMatching(/^column identity_overrides\.linked_at is DateTime: use DateTime64\(3\)/),
    ]);
  });

  it('every table with a distribution in a cluster of ClickHouse is registered', () => {
    const registered = TABLES.map(({ name }) => name);
    expect(registered).toEqual(expect.arrayContaining(Object.keys(TABLE_DISTRIBUTIONS)));
  });

  it('every topic and dead-letter topic is registered', () => {
    const kind = { what: 'topic', file: 'store.ts' };
    expect(
      findNameGaps(
        allTopics().map(({ name }) => name),
        TOPIC_STORES,
        kind,
      ),
    ).toEqual([]);
    expect(findNameGaps(['audience.sessions.v1'], [], kind)).toEqual([
      expect.stringMatching(/^topic audience\.sessions\.v1 is not registered: add it to .*store\.ts/),
    ]);
  });

  it('registered retention times include the time that a segment covers', () => {
    const retentionOf = (store: ErasureStore | undefined) =>
      store?.clearing.by === 'ttl' ? store.clearing.windowMs : null;
    for (const topic of allTopics()) {
      const windowMs = retentionOf(TOPIC_STORES.find(({ name }) => name === topic.name));
      if (windowMs !== null) expect([topic.name, windowMs]).toEqual([topic.name, topic.retentionMs + topic.segmentMs]);
    }
  });

  it('every Redis key family in the Redis README is registered', () => {
    const tables = read('infra/redis/README.md').split('## Required settings')[0]!;
    const families = tables
      .split('\n')
      .flatMap((line) => /^\| (`[^|]+) \|/.exec(line)?.[1]?.match(/[^`, ][^`]*(?=`)/g) ?? []);
    expect(families.length).toBeGreaterThan(15);
    // The README omits rate-limit keys because a rebuild does not restore them.
    expect(findNameGaps([...families, 'rate:<id>'], REDIS_STORES, { what: 'Redis family', file: 'store.ts' })).toEqual(
      [],
    );
  });

  it('every Redis key family in the packages is registered', () => {
    const sources = readdirSync(new URL('packages', ROOT), { recursive: true, encoding: 'utf8' }).filter(
      (path) => /^[^/]+\/src\/(.+\/)?redis\/[^/]+\.ts$/.test(path) && !path.endsWith('.test.ts'),
    );
    const starts = sources.flatMap((path) =>
      [...read(`packages/${path}`).matchAll(/(?:\$\{namespace\}|toFamily\(options, ['`])([a-z][a-z:-]*)/g)].map(
        ([, start]) => ({
          path,
          start: start!,
        }),
      ),
    );
    expect(starts.length).toBeGreaterThan(10);
    const unregistered = starts.filter(({ start }) => !REDIS_STORES.some(({ name }) => name.startsWith(start)));
    expect(unregistered).toEqual([]);
  });

  it('every swept table has own keys and time columns, and no own key is blanked', () => {
    for (const { name, clearing } of SWEPT_TABLES) {
      const { ownKeys, carriedKeys, timeColumns } = clearing;
      expect([name, ownKeys.length > 0, timeColumns.length > 0]).toEqual([name, true, true]);
      expect(carriedKeys.filter(({ key }) => ownKeys.includes(key))).toEqual([]);
    }
  });
});
