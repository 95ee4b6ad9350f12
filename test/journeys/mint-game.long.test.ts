/** A game that mints on a stack with a chain, and what an operator does about a failed asset. */
import { randomBytes, randomUUID } from 'node:crypto';
import { readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { FRAME_BYTES, frameRecord, mintRequestCodec, mintStateCodec, TOPICS, toSignerKey } from '@playline/contracts';
import { ADMIN, callRpc, ROLES } from '@playline/infra/chain';
import { type Stack, startStack } from '@playline/infra/local';
import { createSchemaRegistry, openProducer, readTopic } from '@playline/stream/kafka';
import { testStackFolder, until } from '@playline/testkit';
import { CONTRACT_ABIS } from '@playline/testkit/chain';
import { type Address, createPublicClient, encodeFunctionData, http } from 'viem';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { OPERATOR, query, runProgram } from './stack.ts';

const START_MS = 240_000;
/** Time for a game, or for a handful of assets that become final one after the other. */
const GAME_MS = 280_000;
const OWNER = `0x${'12'.repeat(20)}`;
const toBytes = (hex: string) => Buffer.from(hex.slice(2), 'hex');
const root = testStackFolder('mint-game');
let stack: Stack;

beforeAll(async () => {
  const services = ['gateway', 'chain-api', 'activity-writer', 'chain-indexer', 'minter'] as const;
  // This test polls often, with more requests than one address may send.
  const settings = { RATE_LIMIT_CALLS: '50000' };
  stack = await startStack({ directory: join(root, '.playline'), services, settings, chain: true });
}, START_MS);

afterAll(async () => {
  await stack?.stop();
  rmSync(root, { recursive: true, force: true });
}, START_MS);

const chainOf = () => stack.file.chain!;
const contract = () => chainOf().contracts.erc721;
const mintsUrl = () => `${stack.file.chainApi}/v1/chains/demo-chain/collections/${contract()}/nfts/mint-requests`;
const headers = () => ({
  'x-service-api-key': stack.file.keys!.development.secret,
  'content-type': 'application/json',
});

/** Requests a token of the ERC-721 with this id. @returns its reference id */
async function requestMint(tokenId: string, owner: string): Promise<string> {
  const referenceId = `journey-${randomUUID()}`;
  const assets = [{ reference_id: referenceId, owner_address: owner, token_id: tokenId }];
  const answer = await fetch(mintsUrl(), { method: 'POST', headers: headers(), body: JSON.stringify({ assets }) });
  expect(answer.status).toBe(202);
  return referenceId;
}

const ended = (referenceId: string) => {
  const readResult = async () => {
    const answer = await fetch(`${mintsUrl()}/${referenceId}`, { headers: headers() });
    const { result } = (await answer.json()) as { result: { status: string; error: { message: string } | null }[] };
    if (result[0]?.status === 'pending') throw new Error('it is pending');
    return result[0]!;
  };
  return until(`${referenceId} has ended`, readResult, 120_000);
};

async function sendAsAdmin(functionName: 'burn' | 'grantRole' | 'revokeRole', args: readonly unknown[]): Promise<void> {
  const { rpc } = chainOf();
  const data = encodeFunctionData({ abi: CONTRACT_ABIS['demo-erc721'], functionName, args } as never);
  const hash = await callRpc<string>(rpc, 'eth_sendTransaction', [{ from: ADMIN, to: contract(), data }]);
  await until('the administrator’s transaction is in a block', async () => {
    const receipt = await callRpc<{ status: string } | null>(rpc, 'eth_getTransactionReceipt', [hash]);
    return receipt?.status === '0x1';
  });
}

const ownerOf = (tokenId: string) =>
  createPublicClient({ transport: http(chainOf().rpc) }).readContract({
    address: contract() as Address,
    abi: CONTRACT_ABIS['demo-erc721'],
    functionName: 'ownerOf',
    args: [BigInt(tokenId)],
  });

const retry = (referenceId: string) => {
  const request = ['--chain', 'demo-chain', '--contract', contract(), '--reference', referenceId];
  return runProgram(OPERATOR, ['mints', 'retry', ...request], { cwd: root });
};

/** Puts a request on the log, as the chain API does. */
async function publish(request: Parameters<typeof mintRequestCodec.encode>[0]): Promise<void> {
  const { kafka: brokers, registry: url } = stack.file;
  const topic = TOPICS.mintRequests.name;
  const producer = await openProducer({ brokers, clientId: 'test', topics: [topic] });
  const id = await createSchemaRegistry({ url }).idOf(`${topic}-value`, mintRequestCodec.schema);
  const value = frameRecord(id, mintRequestCodec.encode(request));
  await producer.sendForOffset({ topic, key: Buffer.from(toSignerKey(request)), value });
  await producer.close();
}

describe('a game that mints', { timeout: GAME_MS }, () => {
  it('ends with one token or one clear failure for each reference id, and all sources agree about it', async () => {
    const game = ['--mint', '--assets', '60', '--rate', '0', '--seed', '5', '--json'];
    const { code, out, err } = await runProgram('test/simulate/main.ts', game, { cwd: root });
    const result = JSON.parse(out || 'null');
    expect(result?.differences, err).toEqual([]);
    expect(code).toBe(0);
    expect(result.ended.succeeded).toBeGreaterThan(30);
    expect(result.ended.failed).toBeGreaterThan(3);
    expect(result.ended.succeeded + result.ended.failed + result.assets.again).toBe(result.assets.accepted);
    const { succeeded } = result.ended;
    expect(result.found).toMatchObject({ tokens: succeeded, activities: succeeded, attempts: result.assets.accepted });
    expect(result.assets.waitedForRole).toBeGreaterThan(0);
    expect(result.assets.again).toBeGreaterThan(0);
    expect(result.assets.conflicts).toBeGreaterThan(5);
    expect(result.calls.made).toBeLessThan(1_000);
  });
});

describe('the command `mints retry`', { timeout: GAME_MS }, () => {
  it('mints one token for a failed asset, once the cause of the failure is gone', { timeout: GAME_MS }, async () => {
    expect(await ended(await requestMint('5', ADMIN))).toMatchObject({ status: 'succeeded' });
    const failed = await requestMint('5', OWNER);
    expect(await ended(failed)).toMatchObject({ status: 'failed', error: { message: 'TokenAlreadyMinted(5)' } });
    await sendAsAdmin('burn', [5n]);
    // Two concurrent commands must start only one attempt, whichever of them reports it.
    const runs = await Promise.all([retry(failed), retry(failed)]);
    expect(runs.map(({ code }) => code)).toContain(0);
    for (const { code, out, err } of runs)
      if (code === 0) expect(out).toContain(`${failed}: accepted again`);
      else expect(err).toMatch(/this one is pending|taken|claimed/);
    expect(await ended(failed)).toMatchObject({ status: 'succeeded', error: null });
    expect((await ownerOf('5')).toLowerCase()).toBe(OWNER);
    const attempts = await until('the rows have both attempts', async () => {
      const rows = await query<{ status: string }>(
        stack.file.clickhouse,
        `SELECT status FROM mint_requests FINAL WHERE reference_id = '${failed}' ORDER BY requested_at`,
      );
      expect(rows.at(-1)?.status).toBe('succeeded');
      return rows.map(({ status }) => status);
    });
    expect(attempts).toEqual(['failed', 'succeeded']);
    const { code, err } = await retry(failed);
    expect([code, err]).toEqual([
      1,
      expect.stringContaining('only a failed asset can be retried: this one is token 5'),
    ]);
  });

  it('is refused for a pending asset, whose mint is not affected', { timeout: GAME_MS }, async () => {
    const role = [ROLES.MINTER_ROLE, chainOf().signer] as const;
    await sendAsAdmin('revokeRole', role);
    const pending = await requestMint('6', OWNER);
    const { code, err } = await retry(pending);
    expect([code, err]).toEqual([
      1,
      expect.stringContaining('only a failed asset can be retried: this one is pending'),
    ]);
    await sendAsAdmin('grantRole', role);
    expect(await ended(pending)).toMatchObject({ status: 'succeeded' });
  });

  it('is refused for an unknown reference id', async () => {
    const { code, err } = await retry('nothing');
    expect([code, err]).toEqual([1, expect.stringContaining('has no mint request nothing of this collection')]);
  });
});

describe('a mint request on the log', { timeout: GAME_MS }, () => {
  it('of the demo project becomes a token of the demo contract, and only the minter has the keys that open sealed keys', async () => {
    const { kafka, chain } = stack.file;
    const { contracts, signer } = chain!;
    await publish({
      chain: 'demo-chain',
      contractAddress: toBytes(contracts.erc721),
      signer: toBytes(signer),
      referenceId: 'journey-logged',
      attemptId: randomBytes(16),
      projectId: 'demo',
      environmentId: 'demo-development',
      metadata: null,
      ownerAddress: toBytes(OWNER),
      tokenId: '7777',
      amount: null,
      requestedAt: Date.now(),
      traceId: '0'.repeat(32),
    });
    const state = await until('it has succeeded', async () => {
      const records = await readTopic({ brokers: kafka, topic: TOPICS.mintStates.name });
      const states = records.map(({ value }) => mintStateCodec.decode(value!.subarray(FRAME_BYTES)));
      const state = states.findLast(({ referenceId }) => referenceId === 'journey-logged');
      if (state?.status === 'succeeded') return state;
      throw new Error(`${state?.stage} ${state?.reason}`);
    });
    expect(state).toMatchObject({ referenceId: 'journey-logged', tokenId: '7777', error: null, stage: 'settled' });
    expect(state.activityId).toHaveLength(16);
    const secret = JSON.parse(readFileSync(`${stack.paths.state}/secrets.json`, 'utf8')).signerKeys as string;
    const environmentOf = (name: string) => readFileSync(`/proc/${stack.file.processes[name]}/environ`, 'utf8');
    expect(environmentOf('minter')).toContain(secret);
    for (const name of ['gateway', 'chain-api', 'activity-writer', 'chain-indexer'])
      expect(environmentOf(name), name).not.toContain(secret);
  });
});
