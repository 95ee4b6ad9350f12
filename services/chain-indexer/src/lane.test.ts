import { type ChainNode, createReadActivities, NodeFault, type ReadBlocks } from '@playline/chain';
import { runsOf } from '@playline/testkit/runs';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { createFaultyNode, NODE_FAULTS, type NodeFaultName } from './test/faulty-node.ts';
import { CHAIN, createTestLane, stepToEnd } from './test/lanes.ts';
import { createStateNode, type LogDraft, MemoryChain, rangeDraft, transferDraft } from './test/memory-chain.ts';
import { MemoryIndexLogs, type PublishOutcome } from './test/memory-index-logs.ts';

const DEPTH = 4;

function idsOf(blocks: ReadBlocks): string[] {
  const read = createReadActivities({ chain: CHAIN.name, nativeSymbol: 'ETH', marketplaces: [], bridges: [] });
  return [...read(blocks)].flatMap(({ reading }) => reading.records.map(({ id }) => id.toString('hex')));
}
const publishedIds = ({ activities }: MemoryIndexLogs) => activities.map(({ id }) => id.toString('hex'));

const transfers: fc.Arbitrary<LogDraft> = fc
  .record({ contract: fc.integer({ min: 1, max: 4 }), from: fc.nat(2), to: fc.nat(2), value: fc.nat(1_000) })
  .map(({ contract, from, to, value }) => transferDraft(contract, [from, to], value));
/** Two ranges exceed the budget of a block whose time equals its parent's, but no other block's budget. */
const ranges = fc.integer({ min: 10, max: 14 }).map((contract) => rangeDraft(contract, 270));
const draft = fc.oneof({ weight: 9, arbitrary: transfers }, { weight: 1, arbitrary: ranges });
const drafts = fc.array(draft, { maxLength: 7 });

const action = fc.oneof(
  { weight: 5, arbitrary: fc.record({ kind: fc.constant('mine' as const), drafts }) },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant('reorg' as const),
      depth: fc.integer({ min: 1, max: DEPTH }),
      drafts: fc.array(drafts, { maxLength: 3 }),
    }),
  },
  { weight: 6, arbitrary: fc.record({ kind: fc.constant('step' as const), count: fc.integer({ min: 1, max: 6 }) }) },
  // Starts another process. The earlier process is killed or keeps running.
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('start' as const), isOldKilled: fc.boolean() }) },
);
const faultNames: fc.Arbitrary<NodeFaultName> = fc.oneof(
  { weight: 12, arbitrary: fc.constant('none' as const) },
  { weight: 13, arbitrary: fc.constantFrom(...NODE_FAULTS) },
);
const outcomes: fc.Arbitrary<PublishOutcome> = fc.oneof(
  { weight: 6, arbitrary: fc.constant('published' as const) },
  { weight: 1, arbitrary: fc.constant('lost' as const) },
  { weight: 1, arbitrary: fc.constant('published without a response' as const) },
);
const scenario = fc.record({
  actions: fc.array(action, { minLength: 5, maxLength: 40 }),
  faults: fc.array(faultNames, { minLength: 1, maxLength: 60 }),
  outcomes: fc.array(outcomes, { minLength: 1, maxLength: 20 }),
  picks: fc.array(fc.nat(1_000), { minLength: 1, maxLength: 20 }),
  nodes: fc.integer({ min: 1, max: 3 }),
  finality: fc.constantFrom('finalized' as const, DEPTH),
  rangeBlocks: fc.constantFrom(1, 3, 40),
  blocksBefore: fc.constantFrom(0, 0, 0, 150),
});
type Scenario = typeof scenario extends fc.Arbitrary<infer T> ? T : never;

const createCycle = <T>(values: readonly T[]) => {
  let at = 0;
  return () => values[at++ % values.length]!;
};

async function play({ actions, faults, outcomes: publishOutcomes, picks, ...options }: Scenario) {
  const chain = new MemoryChain(DEPTH);
  const logs = new MemoryIndexLogs();
  const [nextFault, nextPick] = [createCycle(faults), createCycle(picks)];
  let isFaultless = false;
  for (let block = 0; block < options.blocksBefore; block++)
    chain.mine([transferDraft(1 + (block % 4), [0, 1], block)]);
  logs.outcome = createCycle(publishOutcomes);
  const nodes: ChainNode[] = Array.from({ length: options.nodes }, (_, index) =>
    createFaultyNode(chain, {
      name: String(index),
      draw: () => (isFaultless ? 'none' : nextFault()),
      pick: (below) => nextPick() % below,
    }),
  );
  const indexed = { ...CHAIN, finality: options.finality, rangeBlocks: options.rangeBlocks };
  const start = () => createTestLane(nodes, logs, { chain: indexed });
  let lanes = [start()];
  for (const step of actions) {
    if (step.kind === 'mine') chain.mine(step.drafts);
    else if (step.kind === 'reorg') chain.reorg(step.depth, step.drafts);
    else if (step.kind === 'start') lanes = step.isOldKilled ? [start()] : [...lanes.slice(-2), start()];
    else
      for (let count = 0; count < step.count; count++)
        for (const { lane, clock } of lanes) {
          await lane.step().catch(() => {});
          clock.nowMs += 500;
        }
  }
  isFaultless = true;
  logs.outcome = () => 'published';
  await stepToEnd(start());
  return { chain, logs };
}

it('despite all faults, a lane publishes exactly what a new index of the final chain would contain, in order', async () => {
  await fc.assert(
    fc.asyncProperty(scenario, async (drawnScenario) => {
      const { chain, logs } = await play(drawnScenario);
      expect(publishedIds(logs)).toEqual(idsOf(chain.readFinal()));
    }),
    { numRuns: runsOf({ quick: 100, all: 400 }) },
  );
});

function createBusyChain(blocks: number, salt = ''): MemoryChain {
  const chain = new MemoryChain(DEPTH, salt);
  for (let block = 0; block < blocks; block++)
    chain.mine([transferDraft(1, [0, 1], block), transferDraft(2, [1, 2], block)]);
  return chain;
}
const honestNode = (chain: MemoryChain) => createStateNode('honest', DEPTH, () => chain.state);

const LARGE_BLOCK = 7;
function createStrictNode(chain: MemoryChain): ChainNode {
  const honest = honestNode(chain);
  const refuse = () => Promise.reject(new NodeFault('too-large', 'too many blocks'));
  const large = chain.state[LARGE_BLOCK]!.hash;
  const logsOf = (hash: string) => (hash === large ? refuse() : honest.logsOf(hash));
  return { ...honest, name: 'strict', logsOf, logsByReceipts: logsOf, logsIn: refuse };
}

it('a reorganisation below the horizon halts the chain until a node returns the indexed block again', async () => {
  const chain = createBusyChain(20);
  const logs = new MemoryIndexLogs();
  const testLane = createTestLane([honestNode(chain)], logs);
  await stepToEnd(testLane);
  const [before, stopped] = [publishedIds(logs), chain.state];
  chain.replace(DEPTH + 3, []);
  for (let block = 0; block < 2 * DEPTH; block++) chain.mine([transferDraft(1, [0, 2], 900 + block)]);
  for (let poll = 0; poll < 5; poll++) {
    await expect(testLane.lane.step()).rejects.toThrow('no node responds');
    testLane.clock.nowMs += 120_000;
  }
  expect(testLane.lane.isHalted).toBe(true);
  expect(publishedIds(logs)).toEqual(before);
  expect(await testLane.metrics.text()).toMatch(/playline_chain_indexer_halted\{.*\} 1/);
  const other = createTestLane([honestNode(chain)], logs);
  await expect(other.lane.step()).rejects.toThrow('no node responds');
  expect(publishedIds(logs)).toEqual(before);

  chain.states.push(stopped);
  for (let block = 0; block < 2 * DEPTH; block++) chain.mine([transferDraft(1, [0, 2], 900 + block)]);
  other.clock.nowMs += 120_000;
  await stepToEnd(other);
  expect(other.lane.isHalted).toBe(false);
  expect(publishedIds(logs)).toEqual(idsOf(chain.readFinal()));
});

it('a node that lags behind the index does not count as a reorganisation', async () => {
  const chain = createBusyChain(30);
  const logs = new MemoryIndexLogs();
  const lagging = createStateNode('lagging', DEPTH, () => chain.states[10]!);
  const testLane = createTestLane([honestNode(chain)], logs);
  await stepToEnd(testLane);
  const next = createTestLane([lagging, honestNode(chain)], logs);
  chain.mine();
  await stepToEnd(next);
  expect(publishedIds(logs)).toEqual(idsOf(chain.readFinal()));
  expect(next.lane.isHalted).toBe(false);
  expect(await next.metrics.text()).toMatch(
    /playline_chain_indexer_faults_total\{.*node="lagging",kind="behind".*\} 1/,
  );
});

it('a lane publishes nothing from a node that omits logs', async () => {
  const chain = createBusyChain(40);
  const logs = new MemoryIndexLogs();
  const omissions: readonly NodeFaultName[] = ['omits all logs', 'omits the last log', 'omits a log'];
  const faulty = createFaultyNode(chain, { name: 'faulty', draw: createCycle(omissions), pick: (below) => below >> 1 });
  const testLane = createTestLane([faulty], logs, { chain: { ...CHAIN, rangeBlocks: 30 } });
  for (let poll = 0; poll < 6; poll++) {
    await expect(testLane.lane.step()).rejects.toThrow('no node responds');
    testLane.clock.nowMs += 120_000;
  }
  expect(logs.activities).toEqual([]);
});

it('a backfill requests ranges, halves the ranges that a node refuses, and enlarges them again', async () => {
  const chain = createBusyChain(2_000);
  const logs = new MemoryIndexLogs();
  const honest = honestNode(chain);
  const requested: number[] = [];
  const node: ChainNode = {
    ...honest,
    logsIn: (from, to) => {
      requested.push(to - from + 1);
      return honest.logsIn(from, to);
    },
  };
  const strict = { ...node, logsIn: async (from: number, to: number) => refuseAbove(100, node, [from, to]) };
  await stepToEnd(createTestLane([strict], logs, { chain: { ...CHAIN, rangeBlocks: 800 }, recordsMax: 1_000 }));
  expect(publishedIds(logs)).toEqual(idsOf(chain.readFinal()));
  expect(Math.max(...requested)).toBe(100);
  expect(requested.length).toBeLessThan(40);
});

it('a block that no node returns is reported, and all earlier blocks are published', async () => {
  const chain = createBusyChain(20);
  const logs = new MemoryIndexLogs();
  const strict = createStrictNode(chain);
  const testLane = createTestLane([strict, { ...strict, name: 'also strict' }], logs);
  await expect(stepToEnd(testLane, 50)).rejects.toThrow('not at the end');
  await expect(testLane.lane.step()).rejects.toThrow('no node returns the complete next block: too many blocks');
  expect(await testLane.metrics.text()).toMatch(/playline_chain_indexer_too_large\{.*\} 1/);
  const { blocks, ...final } = chain.readFinal();
  const before = blocks.slice(0, LARGE_BLOCK);
  const logsBefore = final.logs.filter(({ blockNumber }) => blockNumber < LARGE_BLOCK);
  expect(publishedIds(logs)).toEqual(idsOf({ ...final, blocks: before, logs: logsBefore }));
});

it('a node on another chain, or on a chain recreated with the same id, is not used', async () => {
  const logs = new MemoryIndexLogs();
  const chain = createBusyChain(20);
  await stepToEnd(createTestLane([honestNode(chain)], logs));
  const before = publishedIds(logs);
  const recreated = createBusyChain(60, 'again');
  await expect(createTestLane([honestNode(recreated)], logs).lane.step()).rejects.toThrow('the genesis block differs');
  const other = { ...honestNode(chain), chainId: async () => 1 };
  await expect(createTestLane([other], logs).lane.step()).rejects.toThrow('the node is on chain 1, not on chain 31337');
  expect(publishedIds(logs)).toEqual(before);
});

it('a lane does not overwrite a token that another process has published', async () => {
  const chain = createBusyChain(10);
  const logs = new MemoryIndexLogs();
  const testLane = createTestLane([honestNode(chain)], logs);
  await stepToEnd(testLane);
  const contractAddress = Buffer.from('a2'.padStart(40, '0'), 'hex');
  const [first] = logs.tokens;
  logs.tokens.push({ ...first!, contractAddress, verificationStatus: 'verified' });
  chain.mine([transferDraft(0xa2, [0, 1], 5), transferDraft(0xa4, [0, 1], 5)]);
  for (let block = 0; block < DEPTH; block++) chain.mine();
  await stepToEnd(testLane);
  const found = logs.tokens.filter((token) => token.contractAddress.equals(contractAddress));
  expect(found.map(({ verificationStatus }) => verificationStatus)).toEqual(['verified']);
  expect(logs.tokens.some((token) => token.contractAddress.at(-1) === 0xa4)).toBe(true);
});

it('a fenced indexer stays inactive until the other indexer stops making progress, and then takes over', async () => {
  const chain = createBusyChain(10);
  const logs = new MemoryIndexLogs();
  const [first, second] = [createTestLane([honestNode(chain)], logs), createTestLane([honestNode(chain)], logs)];
  await first.lane.step();
  await stepToEnd(second);
  chain.mine([transferDraft(1, [0, 1], 5)]);
  for (let block = 0; block < DEPTH; block++) chain.mine();
  expect(await first.lane.step()).toBe('inactive');
  for (let minute = 0; minute < 20; minute++) {
    first.clock.nowMs += 60_000;
    second.clock.nowMs += 60_000;
    chain.mine([transferDraft(1, [0, 1], 100 + minute)]);
    await second.lane.step();
    expect(await first.lane.step()).toBe('inactive');
  }
  // The other indexer has stopped and makes no more progress.
  for (let minute = 0; minute < 12; minute++) {
    first.clock.nowMs += 60_000;
    await first.lane.step();
  }
  chain.mine();
  await stepToEnd(first);
  expect(publishedIds(logs)).toEqual(idsOf(chain.readFinal()));
});

async function refuseAbove(most: number, node: ChainNode, [from, to]: readonly [number, number]) {
  if (to - from + 1 > most) throw new NodeFault('too-large', 'too many blocks');
  return node.logsIn(from, to);
}
