import { randomBytes } from 'node:crypto';
import { createKey, createLoggedKeyStore, type KeyRecord, PROJECTS } from '@playline/access-keys';
import { FRAME_BYTES, projectCodec, TOPICS } from '@playline/contracts';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createProjectsCommand, type ProjectsContext } from '../commands/projects.ts';
import { createRecordSources } from '../records/record-sources.ts';
import { openTestKeyLog } from '../test/open-stores.ts';
import { openRecordPlaces, type RecordPlaces } from '../test/record-places.ts';
import { runHere } from '../test/run-here.ts';

let places: RecordPlaces;
beforeAll(async () => {
  places = await openRecordPlaces();
});
afterAll(() => places?.close());

const openLog = () => openTestKeyLog(places.storesOn(), places.topicPrefix + TOPICS.accessKeys.name);

function createContext(changedBy: string): ProjectsContext {
  const author = { changedBy, requestId: randomBytes(4).toString('hex') };
  const sourcesOf = createRecordSources(places.storesOn(), { topicPrefix: places.topicPrefix, author });
  return { openView: places.storesOn().openKeyView, openLog, projects: sourcesOf(PROJECTS) };
}

/** Runs a command as a process of the given user. */
async function run(changedBy: string, ...words: string[]) {
  const commands = [createProjectsCommand(createContext(changedBy))];
  const { code, results } = await runHere(commands, ['projects', ...words, '--json']);
  return { code, records: results.map((line) => JSON.parse(line)) };
}

async function logged() {
  const records = await places.storesOn().readTopic(places.topicPrefix + TOPICS.projects.name);
  return records.map(({ value }) => projectCodec.decode(value!.subarray(FRAME_BYTES)));
}

/** Creates a key as a release without projects does. */
async function createOldKey(projectId: string): Promise<KeyRecord> {
  const [view, keyLog] = [await places.storesOn().openKeyView(), await openLog()];
  const owner = {
    projectId,
    environmentId: `${projectId}-production`,
    environment: 'production',
    kind: 'secret',
  } as const;
  const { record } = await createKey({ store: createLoggedKeyStore(view, keyLog), prefix: 'svcapik' }, owner);
  await Promise.all([view.close(), keyLog.close()]);
  return record;
}

describe('commands about projects on Kafka and Redis', () => {
  it('adopt what the log of keys shows once, with both environments, even in simultaneous commands', async () => {
    await createOldKey('outlands');
    await Promise.all(['ada', 'bob', 'eve'].map((name) => run(name, 'list')));
    expect(await logged()).toMatchObject([
      { id: 'outlands', revision: 1, environments: [{ id: 'outlands-production' }, { id: 'outlands-development' }] },
    ]);
  });

  it('write every change to the log as the whole project, with its author and request id', async () => {
    await run('ada', 'add-environment', '--project', 'outlands', '--name', 'staging', '--kind', 'development');
    await run('bob', 'limit', '--project', 'outlands', '--environment', 'staging', '--cap', '5/10', '--limit', '4/8');
    const changes = (await logged()).filter(({ id }) => id === 'outlands').slice(-2);
    expect(changes).toMatchObject([
      { revision: 2, changedBy: 'ada', environments: [{}, {}, { id: 'outlands-staging', cap: null }] },
      {
        revision: 3,
        changedBy: 'bob',
        environments: [{}, {}, { cap: { perSecond: 5, burst: 10 }, limit: { burst: 8 } }],
      },
    ]);
    expect(changes[0]!.requestId).not.toBe(changes[1]!.requestId);
  });

  it('lose none of several simultaneous changes', async () => {
    const names = ['a', 'b', 'c', 'd'];
    const add = (name: string) =>
      run('ada', 'add-environment', '--project', 'outlands', '--name', name, '--kind', 'development');
    await Promise.all(names.map(add));
    const [project] = (await run('ada', 'show', '--project', 'outlands')).records;
    expect(project.environments.map(({ name }: { name: string }) => name)).toEqual(expect.arrayContaining(names));
  });

  it('know all projects again after Redis was emptied', async () => {
    const before = (await run('ada', 'list')).records;
    await places.redis.client.flushdb();
    expect((await run('ada', 'list')).records).toEqual(before);
  });
});
