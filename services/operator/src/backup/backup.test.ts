import { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { TOPICS } from '@playline/contracts';
import type { LogReader, StreamRecord } from '@playline/stream';
import { describe, expect, it, onTestFinished } from 'vitest';
import { openFolder } from './folder.ts';
import { compareLog, moveGroups, readCommits } from './log-state.ts';
import { parseManifest } from './manifest.ts';
import { restoreSchemas } from './schemas.ts';
import { compareSecrets, listSecrets } from './secrets.ts';
import { EMPTY, FIRST, SECOND, testStoreContract, toContent } from './test/store-contract.ts';
import { compareTopicSettings } from './topic-settings.ts';

describe('a folder of backups', () => {
  testStoreContract(async () => {
    const location = await mkdtemp(join(tmpdir(), 'playline-backups-'));
    const remove = (path: string) => rm(path, { recursive: true, force: true });
    onTestFinished(() => remove(location));
    return {
      location,
      store: openFolder(location),
      remove: (id) => remove(join(location, id)),
      damage: (id, content) => {
        const path = join(location, id, 'events.all.native');
        return content === null ? remove(path) : writeFile(path, content);
      },
    };
  });

  it('contains nothing of a killed backup after the next one', async () => {
    const location = await mkdtemp(join(tmpdir(), 'playline-backups-'));
    onTestFinished(() => rm(location, { recursive: true, force: true }));
    const store = openFolder(location);
    const killed = await store.create(FIRST);
    await killed.write(killed.toFile('events.native'), toContent('half'));
    await (await store.create(SECOND)).finish(EMPTY);
    expect(await readdir(location)).toEqual([SECOND]);
  });
});

it('a manifest of a release that did not save topic settings can be read', () => {
  const { topicSettings: _, ...older } = EMPTY;
  expect(parseManifest('', JSON.stringify({ format: 1, id: FIRST, ...older })).topicSettings).toEqual([]);
});

describe('the topic settings of a backup', () => {
  const saved = [{ topic: 'one', settings: { 'retention.ms': '1000', 'min.insync.replicas': '2' } }];

  it('are compared with those of existing topics, and differences are reported with a command', () => {
    const toSettings = (settings: Record<string, string>) => [{ topic: 'one', settings }];
    expect(compareTopicSettings([], saved, 'p.')).toEqual([]);
    expect(compareTopicSettings(toSettings({ 'retention.ms': '1000' }), saved, 'p.')).toEqual([]);
    expect(compareTopicSettings(toSettings({ 'retention.ms': '2', 'segment.ms': '3' }), saved, 'p.')).toEqual([
      'topic p.one: retention.ms is 2 instead of 1000, segment.ms is 3 instead of not set. To restore: ' +
        'kafka-configs.sh --bootstrap-server "$KAFKA_BROKERS" --alter --entity-type topics --entity-name p.one ' +
        "--add-config 'retention.ms=[1000]' --delete-config segment.ms",
    ]);
  });
});

describe('the secrets of a backup', () => {
  const secrets = new Map([
    ['IDENTITY_PEPPER', 'a'.repeat(64)],
    ['PORTAL_SECRET', 'short'],
  ]);

  it('are listed without their values, and different secrets are reported', () => {
    const saved = listSecrets(secrets);
    for (const value of secrets.values()) expect(JSON.stringify(saved)).not.toContain(value);
    expect(compareSecrets(secrets, saved)).toEqual([]);
    const others = new Map([...secrets, ['PORTAL_SECRET', 'other'] as const]);
    expect(compareSecrets(others, saved)).toEqual(['secret PORTAL_SECRET is not the one of the backup']);
  });

  it('refuse a restore with another pepper, because no identity key would match', () => {
    const other = new Map([['IDENTITY_PEPPER', 'b'.repeat(64)]]);
    expect(() => compareSecrets(other, listSecrets(secrets))).toThrow('IDENTITY_PEPPER is not the one of the backup');
  });
});

const [ONE, TWO] = [TOPICS.messages.name, TOPICS.consents.name];

/** Creates a log with a partition per topic, whose records are texts. */
function createLog(topics: Readonly<Record<string, readonly string[]>>, start = 0): LogReader {
  return {
    bounds: async (topic) => (topics[topic] === undefined ? [] : [{ partition: 0, start, end: topics[topic].length }]),
    committed: async () => new Map(),
    async *read({ topic, partition, start: from, end }) {
      for (const [offset, text] of (topics[topic] ?? []).entries())
        if (offset >= Math.max(from, start) && offset < end)
          yield {
            topic,
            partition,
            offset,
            timestampMs: 1,
            key: null,
            value: Buffer.from(text),
            headers: {},
          } as StreamRecord;
    },
    close: async () => {},
  };
}

describe('the log of a backup', () => {
  const logged = { [ONE]: ['a', 'b', 'c'], [TWO]: ['d', 'e'] };
  const saveCommits = () =>
    readCommits({
      log: createLog(logged),
      topicPrefix: '',
      offsets: {
        list: async (group) =>
          group !== 'event-writer'
            ? []
            : [ONE, TWO].map((topic) => ({ topic, partition: 0, committed: 2, start: 0, decision: null }) as never),
        decide: async () => {},
        move: async () => true,
        close: async () => {},
      },
    });
  const compare = async (log: LogReader) =>
    compareLog({ log, topicPrefix: '', offsets: null as never }, await saveCommits());

  it('is recognised after it has grown, and after retention has deleted the saved records', async () => {
    const grown = { [ONE]: ['a', 'b', 'c', 'f'], [TWO]: ['d', 'e', 'g', 'h'] };
    expect(await compare(createLog(grown))).toBe('same');
    expect(await compare(createLog(grown, 2))).toBe('same');
  });

  it('is recognised as replaced if it is shorter, or has other records at the same offsets', async () => {
    expect(await compare(createLog({ [ONE]: [], [TWO]: [] }))).toBe('replaced');
    expect(await compare(createLog({ [ONE]: ['x', 'x', 'x'], [TWO]: ['x', 'x', 'x'] }))).toBe('replaced');
  });

  it('is refused if only a part of its topics was replaced', async () => {
    await expect(compare(createLog({ ...logged, [TWO]: ['x', 'x'] }))).rejects.toThrow('only a part of the log');
  });

  it('is read from its start by a group that had not read a partition when the backup was made', async () => {
    const found = { topic: ONE, partition: 0, committed: 3, start: 0, mark: null, decision: null };
    const moved: number[] = [];
    const offsets = {
      list: async (group: string) => (group === 'eraser' ? [found as never] : []),
      decide: async () => {},
      move: async (_group: string, _at: object, { from }: { from: number }) => {
        moved.push(from);
        return true;
      },
      close: async () => {},
    };
    expect(await moveGroups({ log: createLog(logged), topicPrefix: '', offsets }, [])).toEqual([]);
    expect(moved).toEqual([0]);
  });
});

describe('the schemas of a backup', () => {
  const saved = [{ id: 7, subject: 'one-value', schema: '{"type":"string"}' }];
  const restore = (current: string | null, log: 'same' | 'replaced') =>
    restoreSchemas(
      {
        schemas: { schemaOf: async () => current, idOf: async () => 0 },
        registrar: { register: async () => 8 },
      },
      saved,
      log,
    );

  it('keep their ids in the same registry, and get new ids for a new log', async () => {
    expect(await restore('{ "type": "string" }', 'same')).toEqual(new Map([[7, 7]]));
    expect(await restore(null, 'replaced')).toEqual(new Map([[7, 8]]));
  });

  it('refuse a registry with other ids than the records of the log', async () => {
    await expect(restore(null, 'same')).rejects.toThrow('records in the log contain id 7');
  });
});
