/**
 * Links per second through the graph in Redis, beside a floor of two plain, pipelined HSETs for each identity.
 * REDIS_URL=redis://… node test/bench/identity-links.ts [links]
 * Its keys have the prefix `bench:` and are removed at the end.
 */
import { randomBytes } from 'node:crypto';
import type { IdentityKind } from '@playline/contracts';
import { DEFAULT_LIMITS, type GraphFact, type IdentityGraph } from '@playline/people';
import { openRedisPeople } from '@playline/people/redis';
import { Redis } from 'ioredis';

const url = process.env.REDIS_URL ?? 'redis://127.0.0.1:6379';
const links = Number(process.argv[2] ?? 100_000);
/** Number of facts that a consumer passes on at once. */
const BLOCK_FACTS = 1_000;
const namespace = 'bench:';
const environmentId = 'bench';

/**
 * Keys in scattered order. `orderedKeyAt` gives keys in order: with ascending keys the new identity keeps the person's
 * root, with descending keys it becomes the root.
 */
function keyAt(at: number): Buffer {
  const key = Buffer.alloc(16);
  key.writeUInt16BE((at * 40_503) & 0xffff);
  key.writeUInt32BE(at, 2);
  return key;
}

function orderedKeyAt(at: number): Buffer {
  const key = Buffer.alloc(16);
  key.writeUInt32BE(at);
  return key;
}

interface Pair {
  a: Buffer;
  aKind: IdentityKind;
  b: Buffer;
  bKind: IdentityKind;
  link: 'identify' | 'alias';
}

function toFact({ a, aKind, b, bKind, link }: Pair, offset: number): GraphFact {
  const step = { link, aKey: a, aKind, bKey: b, bKind, blocked: false, otherKeys: [] };
  return { environmentId, offset, receivedAt: 1_700_000_000_000, eventTime: 1_700_000_000_000, steps: [step] };
}

async function measure(name: string, work: () => Promise<number>): Promise<void> {
  const start = performance.now();
  const done = await work();
  const seconds = (performance.now() - start) / 1000;
  console.log(`${name.padEnd(44)} ${Math.round(done / seconds).toLocaleString('en')} links/s`);
}

async function applyAll(graph: IdentityGraph, partition: number, facts: GraphFact[]): Promise<number> {
  let after = -1;
  for (let at = 0; at < facts.length; at += BLOCK_FACTS) {
    const block = facts.slice(at, at + BLOCK_FACTS);
    const through = block.at(-1)!.offset;
    await graph.apply({ generation: 0, partition, after, through, facts: block });
    await graph.trim({ generation: 0, partition }, through, [environmentId]);
    after = through;
  }
  return facts.length;
}

async function floor(redis: Redis): Promise<number> {
  for (let at = 0; at < links; at += BLOCK_FACTS) {
    const pipeline = redis.pipeline();
    for (let link = at; link < Math.min(at + BLOCK_FACTS, links); link++)
      for (const key of [keyAt(2 * link), keyAt(2 * link + 1)]) {
        pipeline.hset(`${namespace}floor:i:${key.readUInt16BE(0) >> 2}`, key, key);
        pipeline.hset(`${namespace}floor:m:${link}`, key, 'a');
      }
    await pipeline.exec();
  }
  return links;
}

const random = Array.from({ length: links }, (_, at): GraphFact => {
  const pair = {
    a: randomBytes(16),
    aKind: 'anonymous',
    b: randomBytes(16),
    bKind: 'untyped',
    link: 'identify',
  } as const;
  return toFact(pair, at);
});
/** Persons that grow to a thousand identities, one after the other. */
const grown = (keyOf: (at: number) => Buffer) =>
  Array.from({ length: Math.min(links, 20_000) }, (_, at): GraphFact => {
    const first = Math.floor(at / 999) * 1_000;
    const pair = { a: keyOf(first), b: keyOf(first + 1 + (at % 999)) };
    return toFact({ ...pair, aKind: 'custom', bKind: 'custom', link: 'alias' }, at);
  });

const redis = new Redis(url);
const people = await openRedisPeople({ url, namespace, limits: DEFAULT_LIMITS });
await people.rebuild.mintEpoch();
const { graph } = people;
const memory = async () => Number(/used_memory:(\d+)/.exec(await redis.info('memory'))![1]);
try {
  await measure('floor: 4 HSET a link, pipelined', () => floor(redis));
  const before = await memory();
  await measure('random pairs', () => applyAll(graph, 0, random));
  console.log(`${'memory'.padEnd(44)} ${Math.round(((await memory()) - before) / (2 * links))} bytes an identity`);
  await measure('random pairs again: unchanged', () => applyAll(graph, 1, random));
  await measure('one component, root stays (to 1,000)', () =>
    applyAll(
      graph,
      2,
      grown((at) => orderedKeyAt(at + 1)),
    ),
  );
  await measure('one component, every link moves it (to 1,000)', () =>
    applyAll(
      graph,
      3,
      grown((at) => orderedKeyAt(0xfffffff0 - at)),
    ),
  );
} finally {
  for await (const names of redis.scanBufferStream({ match: `${namespace}*`, count: 10_000 }))
    if ((names as Buffer[]).length > 0) await redis.unlink(...(names as Buffer[]));
  await people.close();
  await redis.quit();
}
