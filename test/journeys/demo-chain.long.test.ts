/**
 * The chain of a local stack: the demo project's objects on it, its cost while idle, and recovery after parts are lost.
 */
import { readFileSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import type { CollectionRecord, SignableKeyRecord } from '@playline/access-keys';
import { createSigner, parseSignerKeys } from '@playline/access-keys/signer';
import { callRpc, ROLES } from '@playline/infra/chain';
import { type Stack, startStack } from '@playline/infra/local';
import { testStackFolder, until } from '@playline/testkit';
import { CONTRACT_ABIS } from '@playline/testkit/chain';
import { Redis } from 'ioredis';
import { type Address, createPublicClient, http, recoverMessageAddress } from 'viem';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

const START_MS = 240_000;
const directory = testStackFolder('demo-chain');
const lines: string[] = [];
let stack: Stack;

const start = () =>
  startStack({ directory, services: ['gateway'], chain: true, report: (line) => void lines.push(line) });

beforeAll(async () => {
  stack = await start();
}, START_MS);

afterAll(async () => {
  await stack?.stop();
  rmSync(directory, { recursive: true, force: true });
}, START_MS);

const chainOf = () => stack.file.chain!;
const openChainClient = () => createPublicClient({ transport: http(chainOf().rpc, { retryCount: 0 }), cacheTime: 0 });

async function readRecords<R>(kind: string): Promise<R[]> {
  const redis = new Redis(stack.inside.redis);
  const texts = await redis.hvals(`access:${kind}`).finally(() => redis.disconnect());
  return texts.map((text) => JSON.parse(text.slice(text.indexOf('{'))) as R);
}

const hasRole = (contract: string, role: Address) =>
  openChainClient().readContract({
    address: contract as Address,
    abi: CONTRACT_ABIS['demo-erc721'],
    functionName: 'hasRole',
    args: [role, chainOf().signer as Address],
  });

async function expectSignerAdmitted() {
  const { contracts, signer } = chainOf();
  for (const contract of Object.values(contracts))
    for (const role of Object.values(ROLES)) expect(await hasRole(contract, role)).toBe(true);
  expect(await openChainClient().getBalance({ address: signer as Address })).toBeGreaterThan(10n ** 18n);
}

function cpuSecondsOf(pid: number): number {
  const [, fields = ''] = /\) (.*)$/s.exec(readFileSync(`/proc/${pid}/stat`, 'utf8')) ?? [];
  const [user, system] = fields.split(' ').slice(11, 13).map(Number);
  return (user! + system!) / 100;
}

/** The latest block, when no other follows for three times the usual interval. */
async function headAtRest(): Promise<bigint> {
  for (;;) {
    const head = await openChainClient().getBlockNumber();
    const endAt = performance.now() + 3_000;
    await until('three seconds have passed', () => performance.now() > endAt);
    if (head === (await openChainClient().getBlockNumber())) return head;
  }
}

async function restartWithout(...lost: string[]) {
  await stack.stop();
  for (const name of lost) rmSync(join(directory, name), { recursive: true, force: true });
  lines.length = 0;
  stack = await start();
}

describe('the demo project', () => {
  it('has a key that may mint on all contracts, and that only the signer of this stack can open', async () => {
    await expectSignerAdmitted();
    const [record, ...others] = await readRecords<SignableKeyRecord>('signable-keys');
    expect(others).toEqual([]);
    expect(record).toMatchObject({ address: chainOf().signer, environmentId: 'demo-development', state: 'live' });
    const { signerKeys } = JSON.parse(readFileSync(join(directory, 'secrets.json'), 'utf8'));
    const signer = createSigner({ privateKeys: parseSignerKeys(signerKeys) });
    const signature = (await signer.signMessage(record!, 'hello')) as Address;
    expect((await recoverMessageAddress({ message: 'hello', signature })).toLowerCase()).toBe(chainOf().signer);
  });

  it('has both collections of the chain linked, under the addresses in the stack file', async () => {
    const { contracts } = chainOf();
    const linked = await readRecords<CollectionRecord>('collections');
    expect(linked.map(({ id, projectId, state }) => [id, projectId, state]).sort()).toEqual(
      [contracts.erc721, contracts.erc1155].map((address) => [`demo-chain:${address}`, 'demo', 'linked']).sort(),
    );
    for (const contract of Object.values(contracts))
      expect(await openChainClient().getCode({ address: contract as Address })).toMatch(/^0x6/);
  });
});

describe('the chain of a stack', { timeout: START_MS }, () => {
  it('makes no block, uses no CPU and writes nothing while there are no transactions', async () => {
    const head = await headAtRest();
    const { number: final } = await openChainClient().getBlock({ blockTag: 'finalized' });
    expect([head - final <= 4n, head > 4n]).toEqual([true, true]);
    const pid = stack.file.processes.chain ?? 0;
    const state = join(directory, 'data', 'chain', 'state.json');
    const [before, writtenAt] = [cpuSecondsOf(pid), statSync(state).mtimeMs];
    expect(await headAtRest()).toBe(head);
    expect(cpuSecondsOf(pid) - before).toBeLessThan(0.05);
    expect(statSync(state).mtimeMs).toBe(writtenAt);
  });

  it('cannot be used by web pages of other origins', async () => {
    const headers = { origin: 'https://evil.example', 'access-control-request-method': 'POST' };
    const answer = await fetch(chainOf().rpc, { method: 'OPTIONS', headers });
    expect(answer.headers.get('access-control-allow-origin')).toBeNull();
  });

  it('comes back at the same address when it is killed, with everything that was final', async () => {
    const head = await openChainClient().getBlock({ blockTag: 'finalized' });
    const { chain: killed } = stack.file.processes;
    process.kill(killed ?? 0, 'SIGKILL');
    await until('a new process', () => ![undefined, killed].includes(stack.file.processes.chain));
    await until('it answers', () => callRpc(chainOf().rpc, 'eth_chainId'));
    expect((await openChainClient().getBlock({ blockNumber: head.number })).hash).toBe(head.hash);
    await expectSignerAdmitted();
  });

  it('that has lost its state gets contracts and roles again, and this is reported', async () => {
    const before = chainOf();
    await restartWithout('data/chain');
    expect(chainOf()).toEqual(before);
    await expectSignerAdmitted();
    expect(lines).toContainEqual(expect.stringContaining('the chain lost its state and started from its first block'));
  });

  it('is unchanged after a restart, and nothing is created twice', async () => {
    const [head, before] = [await headAtRest(), chainOf()];
    const genesis = await openChainClient().getBlock({ blockNumber: 0n });
    await restartWithout();
    // A loss is reported once, by the start that found it.
    expect(lines).not.toContainEqual(expect.stringContaining('lost its state'));
    expect(chainOf()).toEqual(before);
    // Only the blocks that make the last ones final again. None of them has a transaction.
    expect(await headAtRest()).toBe(head + 4n);
    expect((await openChainClient().getBlock({ blockNumber: 0n })).hash).toBe(genesis.hash);
    expect(await readRecords('signable-keys')).toHaveLength(1);
  });

  it('is linked again from the records of the log when its file, or Redis, was lost', async () => {
    const before = chainOf();
    await restartWithout('chain.json', 'data/redis');
    expect(chainOf()).toEqual(before);
    expect(await readRecords('signable-keys')).toHaveLength(1);
    expect(await readRecords('collections')).toHaveLength(2);
  });

  it('gets another key, which may mint too, when all records were lost', async () => {
    const before = chainOf();
    await restartWithout('data/kafka', 'data/registry', 'data/redis', 'data/clickhouse', 'keys.json');
    expect(chainOf().contracts).toEqual(before.contracts);
    expect(chainOf().signer).not.toBe(before.signer);
    await expectSignerAdmitted();
    expect(await readRecords('collections')).toHaveLength(2);
  });
});
