import { TOPICS } from '@playline/contracts';
import type { AtomicPublisher, LogReader } from '@playline/stream';
import { createSchemaRegistry, openAtomicPublisher, openLogReader } from '@playline/stream/kafka';
import { type OwnStores, openOwnStores, testStores, until } from '@playline/testkit';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { toFirstState } from '../lane/next-state.ts';
import type { LaneWriter, MintLog, SignerLane } from '../ports.ts';
import { CHAIN, SIGNERS, toRequest } from '../test/mint-requests.ts';
import { createMintLog } from './kafka-mint-log.ts';

const [ONE, OTHER] = SIGNERS.map((signer): SignerLane => ({ chain: CHAIN, signer })) as [SignerLane, SignerLane];
const NOTHING = { states: [], transactions: [], forgotten: [] };

let stores: OwnStores;
let reader: LogReader;
/** Times that the reader was asked where logs end. */
let asked = 0;
const opened: (AtomicPublisher | LaneWriter)[] = [];

beforeAll(async () => {
  // One partition: what one signer has open stands in front of what the other one writes.
  stores = await openOwnStores({ partitions: 1 });
  const real = openLogReader({ brokers: testStores().kafka, clientId: 'test' });
  const bounds: LogReader['bounds'] = (...question) => {
    asked++;
    return real.bounds(...question);
  };
  const { committed, read, close } = {
    committed: real.committed.bind(real),
    read: real.read.bind(real),
    close: real.close.bind(real),
  };
  reader = { bounds, committed, read, close };
});
afterAll(async () => {
  await Promise.all(opened.map((each) => each.close().catch(() => {})));
  await reader.close();
  await stores.close();
});

function createLog(beforeCommit?: () => Promise<void>): MintLog {
  const { kafka: brokers, registry } = testStores();
  const { schemaOf } = createSchemaRegistry({ url: registry });
  const topicOf = ({ name }: { name: string }) => ({
    name: stores.prefix + name,
    schemaId: async () => stores.schemaIdOf(stores.prefix + name),
  });
  return createMintLog({
    ...{ reader, schemaOf, states: topicOf(TOPICS.mintStates), transactions: topicOf(TOPICS.mintTransactions) },
    openPublisher: async (name) => {
      const publisher = await openAtomicPublisher({ brokers, name: stores.prefix + name, beforeCommit });
      opened.push(publisher);
      return publisher;
    },
  });
}

const stateOf = (lane: SignerLane, referenceId: string) =>
  toFirstState({ request: toRequest(referenceId, { signer: lane.signer }), partition: 0, offset: 0 }, 1);
const namesOf = ({ standing }: LaneWriter) => standing.states.map(({ referenceId }) => referenceId);

describe('the log of a lane', () => {
  it('ends whoever writes for the signer, and gives the next one all of it, of its own signer alone', async () => {
    const log = createLog();
    const before = await log.openWriter(ONE);
    await before.append({ ...NOTHING, states: [stateOf(ONE, 'a'), stateOf(ONE, 'b')] });
    await (await log.openWriter(OTHER)).append({ ...NOTHING, states: [stateOf(OTHER, 'theirs')] });
    const next = await log.openWriter(ONE);
    expect(namesOf(next)).toEqual(['a', 'b']);
    expect(next.standing.states[0]).toEqual(stateOf(ONE, 'a'));
    await expect(before.append({ ...NOTHING, states: [stateOf(ONE, 'late')] })).rejects.toThrow();
    expect(namesOf(await log.openWriter(ONE))).toEqual(['a', 'b']);
    expect(await log.lanesOf({ partition: 0, partitions: 1 })).toEqual([ONE, OTHER]);
    await log.others.look({ isWhole: true });
    expect(log.others.hold(ONE, stateOf(OTHER, 'theirs'))).toBe(true);
    expect(log.others.hold(ONE, stateOf(ONE, 'a'))).toBe(false);
  });

  it('is read past what another signer has open: a record that stands is never missed', async () => {
    const [sent, decided] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    const log = createLog();
    const before = await log.openWriter(ONE);
    const hanging = await createLog(() => {
      sent.resolve();
      return decided.promise;
    }).openWriter(OTHER);
    const appending = hanging.append({ ...NOTHING, states: [stateOf(OTHER, 'open')] });
    await sent.promise;
    // It stands, behind the open one, where readers of what is decided do not see it.
    await before.append({ ...NOTHING, states: [stateOf(ONE, 'behind')] });
    asked = 0;
    const taken = log.openWriter(ONE);
    await until('it waits for the open one', () => asked > 4);
    decided.resolve();
    await appending;
    expect(namesOf(await taken)).toContain('behind');
  });
});
