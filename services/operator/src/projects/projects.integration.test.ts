import { randomBytes } from 'node:crypto';
import { ACCESS_KEYS, PROJECTS } from '@playline/access-keys';
import { FRAME_BYTES, projectCodec, TOPICS } from '@playline/contracts';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { createProjectsCommand, type ProjectsContext } from '../commands/projects.ts';
import { createRecordSources } from '../records/record-sources.ts';
import { openRecordStores, type RecordStores } from '../test/record-stores.ts';
import { runInProcess } from '../test/run-in-process.ts';

let recordStores: RecordStores;
beforeAll(async () => {
  recordStores = await openRecordStores();
});
afterAll(() => recordStores?.close());

function createContext(changedBy: string): ProjectsContext {
  const author = { changedBy, requestId: randomBytes(4).toString('hex') };
  const sourcesOf = createRecordSources(recordStores.storesOn(), { topicPrefix: recordStores.topicPrefix, author });
  return { keys: sourcesOf(ACCESS_KEYS), projects: sourcesOf(PROJECTS) };
}

/** Runs a command as a process of the given user. */
async function run(changedBy: string, ...args: string[]) {
  const commands = [createProjectsCommand(createContext(changedBy))];
  const { code, results } = await runInProcess(commands, ['projects', ...args, '--json']);
  return { code, records: results.map((line) => JSON.parse(line)) };
}

async function logged() {
  const records = await recordStores.storesOn().readTopic(recordStores.topicPrefix + TOPICS.projects.name);
  return records.map(({ value }) => projectCodec.decode(value!.subarray(FRAME_BYTES)));
}

it('project commands create demo once where there is no project, with both environments, even in simultaneous commands', async () => {
  await Promise.all(['ada', 'bob', 'eve'].map((name) => run(name, 'list')));
  expect(await logged()).toMatchObject([
    { id: 'demo', revision: 1, environments: [{ id: 'demo-production' }, { id: 'demo-development' }] },
  ]);
});

it('project commands write every change to the log as the whole project, with its author and request id', async () => {
  await run('ada', 'add-environment', '--project', 'demo', '--name', 'staging', '--kind', 'development');
  await run('bob', 'limit', '--project', 'demo', '--environment', 'staging', '--cap', '5/10', '--limit', '4/8');
  const changes = (await logged()).filter(({ id }) => id === 'demo').slice(-2);
  expect(changes).toMatchObject([
    { revision: 2, changedBy: 'ada', environments: [{}, {}, { id: 'demo-staging', cap: null }] },
    {
      revision: 3,
      changedBy: 'bob',
      environments: [{}, {}, { cap: { perSecond: 5, burst: 10 }, limit: { burst: 8 } }],
    },
  ]);
  expect(changes[0]!.requestId).not.toBe(changes[1]!.requestId);
});
