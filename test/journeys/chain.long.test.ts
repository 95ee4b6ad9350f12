/** Tests minting on a stack with a chain, the storage of private keys, and recovery after data loss. */
import { randomUUID } from 'node:crypto';
import { mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { CollectionRecord, SignableKeyRecord } from '@playline/access-keys';
import { createSigner, parseSignerKeys } from '@playline/access-keys/signer';
import { ADMIN, callRpc, ROLES } from '@playline/infra/chain';
import { type ServiceName, type Stack, startStack } from '@playline/infra/local';
import { testStackFolder, until } from '@playline/testkit';
import { CONTRACT_ABIS } from '@playline/testkit/chain';
import { type Address, createPublicClient, encodeFunctionData, http, recoverMessageAddress } from 'viem';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { findInBytes } from '../erasure/traces/needle.ts';
import { createKeyAndDumpMemory, searchFiles, searchMemory, searchRedis, toNeedles } from '../sealed-keys/search.ts';
import { OPERATOR, query, readRecords, runProgram } from './stack.ts';

const START_MS = 240_000;
/** Time limit for a simulated game, or for several assets to become final one after another. */
const GAME_MS = 280_000;
const OWNER = `0x${'12'.repeat(20)}`;
const root = testStackFolder('chain');
const directory = join(root, '.playline');
const lines: string[] = [];
let stack: Stack;

async function start(...services: readonly ServiceName[]) {
  lines.length = 0;
  // This test polls more often than the default limit per address allows.
  const settings = { RATE_LIMIT_CALLS: '50000' };
  stack = await startStack({ directory, services, settings, chain: true, report: (line) => void lines.push(line) });
}

async function restartWithout(...lost: string[]) {
  await stack.stop();
  for (const name of lost) rmSync(join(directory, name), { recursive: true, force: true });
  await start('gateway');
}

beforeAll(async () => {
  // Simulates the file of an earlier chain whose records are lost.
  mkdirSync(directory, { recursive: true });
  writeFileSync(join(directory, 'chain.json'), JSON.stringify({ genesis: '0x', signer: OWNER }));
  await start('gateway', 'chain-api', 'activity-writer', 'chain-indexer', 'minter');
}, START_MS);

afterAll(async () => {
  await stack?.stop();
  rmSync(root, { recursive: true, force: true });
}, START_MS);

const chainOf = () => stack.file.chain!;
const contract = () => chainOf().contracts.erc721;
const openChainClient = () => createPublicClient({ transport: http(chainOf().rpc, { retryCount: 0 }), cacheTime: 0 });
const signableKeys = () => readRecords<SignableKeyRecord>(stack.plaintext.redis, 'signable-keys');
const collections = () => readRecords<CollectionRecord>(stack.plaintext.redis, 'collections');
const signerKeys = (): string => JSON.parse(readFileSync(join(directory, 'secrets.json'), 'utf8')).signerKeys;
const openSigner = () => createSigner({ privateKeys: parseSignerKeys(signerKeys()) });

function read<T>(address: string, functionName: 'hasRole' | 'ownerOf', args: readonly unknown[]): Promise<T> {
  const call = { address: address as Address, abi: CONTRACT_ABIS['demo-erc721'], functionName, args };
  return openChainClient().readContract(call as never) as Promise<T>;
}

async function expectSignerHasRoles() {
  const { contracts, signer } = chainOf();
  for (const address of Object.values(contracts))
    for (const role of Object.values(ROLES)) expect(await read(address, 'hasRole', [role, signer])).toBe(true);
  expect(await openChainClient().getBalance({ address: signer as Address })).toBeGreaterThan(10n ** 18n);
}

const mintsUrl = () => `${stack.file.chainApi}/v1/chains/demo-chain/collections/${contract()}/nfts/mint-requests`;
const headers = () => ({
  'x-service-api-key': stack.file.keys!.development.secret,
  'content-type': 'application/json',
});

async function requestMint(tokenId: string, owner: string): Promise<string> {
  const referenceId = `journey-${randomUUID()}`;
  const assets = [{ reference_id: referenceId, owner_address: owner, token_id: tokenId }];
  const response = await fetch(mintsUrl(), { method: 'POST', headers: headers(), body: JSON.stringify({ assets }) });
  expect(response.status).toBe(202);
  return referenceId;
}

const settled = (referenceId: string) => {
  const readResult = async () => {
    const response = await fetch(`${mintsUrl()}/${referenceId}`, { headers: headers() });
    const { result } = (await response.json()) as { result: { status: string; error: { message: string } | null }[] };
    if (result[0]?.status === 'pending') throw new Error('the mint is still pending');
    return result[0]!;
  };
  return until(`${referenceId} is settled`, readResult, 120_000);
};

async function burn(tokenId: bigint): Promise<void> {
  const data = encodeFunctionData({ abi: CONTRACT_ABIS['demo-erc721'], functionName: 'burn', args: [tokenId] });
  const hash = await callRpc<string>(chainOf().rpc, 'eth_sendTransaction', [{ from: ADMIN, to: contract(), data }]);
  await until('the burn is in a block', async () => {
    const receipt = await callRpc<{ status: string } | null>(chainOf().rpc, 'eth_getTransactionReceipt', [hash]);
    return receipt?.status === '0x1';
  });
}

function cpuSecondsOf(pid: number): number {
  const [, fields = ''] = /\) (.*)$/s.exec(readFileSync(`/proc/${pid}/stat`, 'utf8')) ?? [];
  const [user, system] = fields.split(' ').slice(11, 13).map(Number);
  return (user! + system!) / 100;
}

/** Waits until no block is created for three times the usual interval. @returns the latest block */
async function readIdleHead(): Promise<bigint> {
  for (;;) {
    const head = await openChainClient().getBlockNumber();
    const endAt = performance.now() + 3_000;
    await until('three seconds pass', () => performance.now() > endAt);
    if (head === (await openChainClient().getBlockNumber())) return head;
  }
}

describe('the demo project of a stack', () => {
  it('the demo project is linked to both collections at the addresses in the stack file', async () => {
    const { contracts } = chainOf();
    expect((await collections()).map(({ id, projectId, state }) => [id, projectId, state]).sort()).toEqual(
      [contracts.erc721, contracts.erc1155].map((address) => [`demo-chain:${address}`, 'demo', 'linked']).sort(),
    );
  });

  it('the demo project gets a new key that can mint on all contracts if the records of the previous key were lost', async () => {
    expect(lines).toContainEqual(expect.stringContaining('the chain lost its state and started from its first block'));
    await expectSignerHasRoles();
    const [record, ...others] = await signableKeys();
    expect(others).toEqual([]);
    expect(record).toMatchObject({ address: chainOf().signer, environmentId: 'demo-development', state: 'live' });
    const signature = (await openSigner().signMessage(record!, 'hello')) as Address;
    expect((await recoverMessageAddress({ message: 'hello', signature })).toLowerCase()).toBe(chainOf().signer);
  });
});

describe('a game that mints', { timeout: GAME_MS }, () => {
  it('a game ends with one token or one clear failure per reference id, and all data sources agree', async () => {
    const game = ['--mint', '--assets', '60', '--rate', '0', '--seed', '5', '--json'];
    const { code, out, err } = await runProgram('test/simulate/main.ts', game, { cwd: root });
    const result = JSON.parse(out || 'null');
    expect(result?.differences, err).toEqual([]);
    expect(code).toBe(0);
    const { succeeded, failed } = result.ended;
    expect([succeeded > 30, failed > 3]).toEqual([true, true]);
    expect(succeeded + failed + result.assets.again).toBe(result.assets.accepted);
    expect(result.found).toMatchObject({ tokens: succeeded, activities: succeeded, attempts: result.assets.accepted });
    expect(result.assets.waitedForRole).toBeGreaterThan(0);
    expect(result.assets.again).toBeGreaterThan(0);
    expect(result.assets.conflicts).toBeGreaterThan(5);
    expect(result.calls.made).toBeLessThan(1_000);
  });

  it('`mints retry` mints one token for a failed asset once the cause of the failure is removed', async () => {
    expect(await settled(await requestMint('5', ADMIN))).toMatchObject({ status: 'succeeded' });
    const failed = await requestMint('5', OWNER);
    expect(await settled(failed)).toMatchObject({ status: 'failed', error: { message: 'TokenAlreadyMinted(5)' } });
    await burn(5n);
    // Two concurrent commands must start only one attempt, which either command may report.
    const args = ['mints', 'retry', '--chain', 'demo-chain', '--contract', contract(), '--reference', failed];
    const runs = await Promise.all([1, 2].map(() => runProgram(OPERATOR, args, { cwd: root })));
    expect(runs.map(({ code }) => code)).toContain(0);
    for (const { code, out, err } of runs)
      if (code === 0) expect(out).toContain(`${failed}: accepted again`);
      else expect(err).toMatch(/the asset is pending|already used|claim/);
    expect(await settled(failed)).toMatchObject({ status: 'succeeded', error: null });
    expect((await read<string>(contract(), 'ownerOf', [5n])).toLowerCase()).toBe(OWNER);
    const attempts = await until('both attempts are stored', async () => {
      const sql = `SELECT status FROM mint_requests FINAL WHERE reference_id = '${failed}' ORDER BY requested_at`;
      const rows = await query<{ status: string }>(stack.file.clickhouse, sql);
      expect(rows.at(-1)?.status).toBe('succeeded');
      return rows.map(({ status }) => status);
    });
    expect(attempts).toEqual(['failed', 'succeeded']);
  });
});

describe('the private key of a signable key', { timeout: START_MS }, () => {
  let created: Awaited<ReturnType<typeof createKeyAndDumpMemory>>;
  beforeAll(async () => {
    created = await createKeyAndDumpMemory(stack.file, signerKeys());
  });
  afterAll(() => created?.close());

  it('no file in the stack contains the private key: logs, append-only file, tables, process logs, records', () => {
    const { keyMatches, locationsOf } = searchFiles(directory, created);
    // The log and the append-only file contain the sealed key, which proves that the search works.
    expect(locationsOf('sealed')).toEqual(['data/kafka', 'data/redis']);
    expect(locationsOf('table')).toContain('data/clickhouse');
    expect(keyMatches).toEqual([]);
  });

  it('no key in Redis contains the private key', async () => {
    const found = await searchRedis(stack.file.redis, created);
    expect(found).toEqual({ addressMatches: expect.arrayContaining([expect.anything()]), keyMatches: [] });
  });

  it('the memory of the process that created the key does not contain the private key', () => {
    expect(searchMemory(created)).toEqual({ addressMatches: ['heap.heapsnapshot', 'memory'], keyMatches: [] });
  });

  it('the search finds the private key in every encoding', () => {
    const needles = toNeedles(created.key);
    for (const { bytes } of needles) {
      const around = Buffer.concat([Buffer.alloc(7), bytes, Buffer.alloc(3)]);
      expect(findInBytes('somewhere', around, needles)).not.toEqual([]);
    }
    for (const before of [0, 1, 2]) {
      const longer = Buffer.concat([Buffer.alloc(before, 1), created.key, Buffer.alloc(5)]);
      for (const form of ['base64', 'base64url'] as const)
        expect(findInBytes('somewhere', Buffer.from(longer.toString(form)), needles)).not.toEqual([]);
    }
  });

  it('only the minter can decrypt the private key, because no other process has SIGNER_KEYS', () => {
    const environmentOf = (name: string) => readFileSync(`/proc/${stack.file.processes[name]}/environ`, 'utf8');
    expect(environmentOf('minter')).toContain(signerKeys());
    for (const name of ['gateway', 'chain-api', 'activity-writer', 'chain-indexer'])
      expect(environmentOf(name), name).not.toContain(signerKeys());
  });
});

describe('the chain of a stack', { timeout: START_MS }, () => {
  it('the stack restores contracts and roles on a chain that has lost its state, and reports the loss', async () => {
    const before = chainOf();
    await restartWithout('data/chain');
    expect(chainOf()).toEqual(before);
    await expectSignerHasRoles();
    expect(lines).toContainEqual(expect.stringContaining('the chain lost its state and started from its first block'));
  });

  it('an idle chain creates no blocks, uses no CPU and writes no data', async () => {
    const head = await readIdleHead();
    const { number: final } = await openChainClient().getBlock({ blockTag: 'finalized' });
    expect([head - final <= 4n, head > 4n]).toEqual([true, true]);
    const pid = stack.file.processes.chain ?? 0;
    const state = join(directory, 'data', 'chain', 'state.json');
    const [before, writtenAt] = [cpuSecondsOf(pid), statSync(state).mtimeMs];
    expect(await readIdleHead()).toBe(head);
    expect(cpuSecondsOf(pid) - before).toBeLessThan(0.05);
    expect(statSync(state).mtimeMs).toBe(writtenAt);
  });

  it('a chain rejects requests from web pages on other origins', async () => {
    const headers = { origin: 'https://evil.example', 'access-control-request-method': 'POST' };
    const response = await fetch(chainOf().rpc, { method: 'OPTIONS', headers });
    expect(response.headers.get('access-control-allow-origin')).toBeNull();
  });

  it('a killed chain restarts at the same address with all final blocks', async () => {
    const head = await openChainClient().getBlock({ blockTag: 'finalized' });
    const { chain: killed } = stack.file.processes;
    process.kill(killed ?? 0, 'SIGKILL');
    await until('a new process is running', () => ![undefined, killed].includes(stack.file.processes.chain));
    await until('the node responds', () => callRpc(chainOf().rpc, 'eth_chainId'));
    expect((await openChainClient().getBlock({ blockNumber: head.number })).hash).toBe(head.hash);
    await expectSignerHasRoles();
  });

  it('a chain is unchanged after a restart, even if Redis and chain.json were lost', async () => {
    const [head, before] = [await readIdleHead(), chainOf()];
    const genesis = await openChainClient().getBlock({ blockNumber: 0n });
    const keys = (await signableKeys()).length;
    await restartWithout('chain.json', 'data/redis');
    // A loss is reported only once, by the start that detects the loss.
    expect(lines).not.toContainEqual(expect.stringContaining('lost its state'));
    expect(chainOf()).toEqual(before);
    // The restart adds only the empty blocks that make the last blocks final.
    expect(await readIdleHead()).toBe(head + 4n);
    expect((await openChainClient().getBlock({ blockNumber: 0n })).hash).toBe(genesis.hash);
    expect(await signableKeys()).toHaveLength(keys);
    expect(await collections()).toHaveLength(2);
  });
});
