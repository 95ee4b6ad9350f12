import { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { TOPICS } from '@playline/contracts';
import type { LogReader, StreamRecord } from '@playline/stream';
import { describe, expect, it, onTestFinished } from 'vitest';
import { createBackupFolder, findBackup, type Manifest } from './folder.ts';
import { compareLog, moveGroups, readCommits } from './log-state.ts';
import { restoreSchemas } from './schemas.ts';
import { compareSecrets, listSecrets } from './secrets.ts';

const EMPTY: Omit<Manifest, 'format' | 'id'> = {
  finishedAt: '2026-01-02T03:04:05.000Z',
  schema: {},
  generation: 0,
  propertyColumns: [],
  tables: [],
  commits: [],
  topics: [],
  schemas: [],
  secrets: [],
  accounts: [],
};
const [OLDER, NEWER, KILLED] = ['20260101T000000000Z', '20260102T000000000Z', '20260103T000000000Z'];

async function openFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'playline-backups-'));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  return folder;
}

describe('a folder of backups', () => {
  it('offers the newest finished backup, or the named one together with the erasures of the newest', async () => {
    const folder = await openFolder();
    for (const id of [OLDER, NEWER]) await (await createBackupFolder(folder, id)).finish(EMPTY);
    const idsOf = async (path: string) => {
      const { chosen, newest } = await findBackup(path);
      return [chosen.manifest.id, newest.manifest.id];
    };
    expect(await idsOf(folder)).toEqual([NEWER, NEWER]);
    expect(await idsOf(join(folder, OLDER))).toEqual([OLDER, NEWER]);
  });

  it('does not offer a backup that was killed, and removes it with the next one', async () => {
    const folder = await openFolder();
    const killed = await createBackupFolder(folder, KILLED);
    await writeFile(join(killed.folder, 'events.native'), 'half');
    await expect(findBackup(folder)).rejects.toThrow('contains no finished backup');
    await (await createBackupFolder(folder, NEWER)).finish(EMPTY);
    expect(await readdir(folder)).toEqual([NEWER]);
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
