import { randomUUID } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import { ADMIN, callRpc, ROLES, readContract } from '@playline/infra/chain';
import { until } from '@playline/testkit';
import { CONTRACT_ABIS } from '@playline/testkit/chain';
import { type Address, encodeDeployData, encodeFunctionData, pad, toEventSelector, toHex } from 'viem';
import { openSockets, writeSlices } from './sockets.ts';
import type { AttackWorld } from './world.ts';

export interface Attack {
  name: string;
  /** Attacks for about `seconds`. @returns a summary of the findings @throws Error if the stack failed */
  run(world: AttackWorld, seconds: number): Promise<string>;
}

const READY_MAX_MS = 60_000;
/** Upper bound for slow machines. A flood normally ends earlier, when it reaches the limit under test. */
const FLOOD_MAX_MS = 90_000;
const LINKS = 130_000;

const tinyChunks: Attack = {
  name: 'bodies in one-byte chunks',
  run: async ({ stack, attacker, memoryOf }, seconds) => {
    const { gateway = '', portal = '' } = stack.file;
    const before = { gateway: memoryOf('gateway').currentMb, portal: memoryOf('portal').currentMb };
    const untilMs = performance.now() + seconds * 1000;
    const chunks = Array<string>(700).fill('1\r\n \r\n'.repeat(1024));
    const send = async (url: string, path: string, headers: string) => {
      const sockets = await openSockets(url, 3);
      const { host } = new URL(url);
      const head = `POST ${path} HTTP/1.1\r\nhost: ${host}\r\ntransfer-encoding: chunked\r\n${headers}\r\n`;
      const written = sockets.map((socket) => writeSlices(socket, [head, ...chunks], untilMs));
      const bytes = (await Promise.all(written)).reduce((sum, each) => sum + each, 0);
      for (const socket of sockets) socket.destroy();
      return Math.round(bytes / 2 ** 20);
    };
    const json = `content-type: application/json\r\nx-service-publishable-key: ${attacker.publishable}\r\n`;
    const form = 'content-type: application/x-www-form-urlencoded\r\n';
    const [gatewayMb, portalMb] = await Promise.all([
      send(gateway, '/v1/audience/messages', json),
      send(portal, '/sign-in', form),
    ]);
    const growthOf = (service: 'gateway' | 'portal') => memoryOf(service).peakMb - before[service];
    const growth = `${growthOf('gateway')} MB (gateway), ${growthOf('portal')} MB (portal)`;
    return `${gatewayMb} + ${portalMb} MB sent; peak memory grew by ${growth}`;
  },
};

const unreadResponses: Attack = {
  name: 'pipelined requests whose responses are not read',
  run: async ({ stack, memoryOf }, seconds) => {
    const findings: string[] = [];
    for (const service of ['gateway', 'chainApi', 'portal'] as const) {
      const url = stack.file[service] ?? '';
      const untilMs = performance.now() + (seconds * 1000) / 3;
      const sockets = await openSockets(url, 40);
      for (const socket of sockets) socket.pause();
      const slice = `GET /docs HTTP/1.1\r\nhost: ${new URL(url).host}\r\n\r\n`.repeat(20);
      const written = sockets.map((socket) => writeSlices(socket, Array<string>(50).fill(slice), untilMs));
      const bytes = (await Promise.all(written)).reduce((sum, each) => sum + each, 0);
      await pause(Math.max(0, untilMs - performance.now()));
      for (const socket of sockets) socket.destroy();
      const process = service === 'chainApi' ? 'chain-api' : service;
      findings.push(`${process}: ${Math.round(bytes / 1024)} KiB accepted, peak memory ${memoryOf(process).peakMb} MB`);
    }
    return findings.join('; ');
  },
};

const slowBodies: Attack = {
  name: 'slow bodies with a public key and with a secret key',
  run: async (world, seconds) => {
    const { stack, attacker } = world;
    const { gateway = '' } = stack.file;
    const open = async (url: string, header: string) => {
      const sockets = await openSockets(url, 64);
      const { host, pathname } = new URL(url);
      const length = 'content-type: application/json\r\ncontent-length: 1000000';
      for (const socket of sockets)
        socket.write(`POST ${pathname} HTTP/1.1\r\nhost: ${host}\r\n${length}\r\n${header}\r\n\r\n{`);
      return sockets;
    };
    const sockets = [
      ...(await open(`${gateway}/v1/audience/messages`, `x-service-publishable-key: ${attacker.publishable}`)),
      ...(await open(mintsUrl(world), `x-service-api-key: ${attacker.secret}`)),
    ];
    for (let second = 0; second < seconds; second++) {
      for (const socket of sockets) if (!socket.destroyed) socket.write(' ');
      await pause(1000);
    }
    const closed = sockets.filter(({ destroyed }) => destroyed).length;
    for (const socket of sockets) socket.destroy();
    return `${closed} of ${sockets.length} connections were closed by the service`;
  },
};

const mintsUrl = ({ stack }: AttackWorld) =>
  `${stack.file.chainApi}/v1/chains/demo-chain/collections/${stack.file.chain?.contracts.erc721}/nfts/mint-requests`;
const secondsSince = (startedAt: number) => Math.round((performance.now() - startedAt) / 100) / 10;

function post(url: string, keys: Record<string, string>, body: unknown): Promise<Response> {
  const headers = { 'content-type': 'application/json', ...keys };
  return fetch(url, { method: 'POST', headers, body: JSON.stringify(body) });
}

async function sendAs(rpc: string, transaction: Record<string, unknown>): Promise<Address | null> {
  const hash = await callRpc<string>(rpc, 'eth_sendTransaction', [{ from: ADMIN, gas: '0x1c9c380', ...transaction }]);
  const receipt = await until('the transaction is in a block', () =>
    callRpc<{ contractAddress: Address | null } | null>(rpc, 'eth_getTransactionReceipt', [hash]),
  );
  return receipt.contractAddress;
}

const OWNER = `0x${'12'.repeat(20)}`;
const requestMints = (world: AttackWorld, assets: object[]) =>
  post(mintsUrl(world), { 'x-service-api-key': world.attacker.secret }, { assets });

/** Requests mints until the service refuses because of `limit`. @returns an empty `refusal` after a timeout */
async function mintUntilRefused(
  world: AttackWorld,
  { count, toAsset, limit }: { count: number; toAsset(): object; limit: 'pending_assets' | 'failed_assets' },
): Promise<{ accepted: number; refusal: string }> {
  let accepted = 0;
  for (const untilMs = performance.now() + FLOOD_MAX_MS; performance.now() < untilMs; ) {
    const response = await requestMints(world, Array.from({ length: count }, toAsset));
    const body = await response.text();
    if (response.status === 202) accepted += count;
    else if (body.includes(limit)) return { accepted, refusal: `${response.status} ${limit}` };
    else if (body.includes('pending_assets')) await pause(200);
    else throw new Error(`a mint request failed with status ${response.status}: ${body}`);
  }
  return { accepted, refusal: '' };
}

/** A tenant requests mints that stay pending, until the service refuses more. The operator then gives up all mints. */
const mintFlood: Attack = {
  name: 'mint requests that stay pending, with large metadata',
  run: async (world) => {
    const { stack, operate, memoryOf } = world;
    const { rpc, signer, contracts } = stack.file.chain!;
    const changeRole = (functionName: 'grantRole' | 'revokeRole') => {
      const args = [ROLES.MINTER_ROLE, signer as Address] as const;
      const data = encodeFunctionData({ abi: CONTRACT_ABIS['demo-erc721'], functionName, args });
      return sendAs(rpc, { to: contracts.erc721, data });
    };
    const metadata = { name: 'x', description: 'y'.repeat(15_000) };
    const { currentMb } = memoryOf('redis');
    let findings = '';
    await changeRole('revokeRole');
    try {
      const toAsset = () => ({ reference_id: randomUUID(), owner_address: OWNER, token_id: '424242', metadata });
      const { accepted, refusal } = await mintUntilRefused(world, { count: 50, toAsset, limit: 'pending_assets' });
      if (refusal === '') throw new Error(`${accepted} pending assets were accepted, and no asset was refused`);
      const redisMb = memoryOf('redis').currentMb - currentMb;
      const forSigner = ['--chain', 'demo-chain', '--signer', String(signer)];
      const output = await operate('mints', 'give-up', ...forSigner, '--reason', 'an attack', '--yes');
      const ended = output.match(/^given up: /gm)?.length;
      findings = `${accepted} assets accepted, then ${refusal}; Redis grew by ${redisMb} MB; ${ended} assets given up`;
    } finally {
      await changeRole('grantRole');
    }
    await until('mint requests are accepted again', async () => {
      return (await requestMints(world, [{ reference_id: randomUUID(), owner_address: OWNER }])).status === 202;
    });
    return `${findings}; minter at most ${memoryOf('minter').peakMb} MB`;
  },
};

const REDIS_GROWTH_MAX_MB = 96;

/** A tenant requests mints that the minter fails without querying a node: two units of one ERC-721 token. */
const failedMintFlood: Attack = {
  name: 'mint requests that fail, with long reference ids',
  run: async (world) => {
    const { memoryOf } = world;
    const asset = { owner_address: OWNER, token_id: '1', amount: '2' };
    const toAsset = () => ({ ...asset, reference_id: `${'x'.repeat(200)}${randomUUID()}` });
    const before = { redis: memoryOf('redis').currentMb, minter: memoryOf('minter').currentMb };
    const { accepted, refusal } = await mintUntilRefused(world, { count: 100, toAsset, limit: 'failed_assets' });
    const growthOf = (service: 'redis' | 'minter') => memoryOf(service).currentMb - before[service];
    if (growthOf('redis') > REDIS_GROWTH_MAX_MB) throw new Error(`Redis grew by ${growthOf('redis')} MB`);
    const growth = `Redis grew by ${growthOf('redis')} MB, the minter by ${growthOf('minter')} MB`;
    return `${accepted} assets accepted, then ${refusal || 'the time limit was reached'}; ${growth}`;
  },
};

async function erase(world: AttackWorld, secret: string, query: string): Promise<string> {
  const url = `${world.stack.file.gateway}/v1/audience/data?${query}`;
  const response = await fetch(url, { method: 'DELETE', headers: { 'x-service-api-key': secret } });
  if (response.status !== 202) throw new Error(`an erasure request failed with status ${response.status}`);
  return response.headers.get('x-erasure-id') ?? '';
}

const linkFlood: Attack = {
  name: 'a flood of links for one person, who is erased at the same time as a bystander',
  run: async (world) => {
    const { stack, attacker, bystander, query, memoryOf } = world;
    const url = `${stack.file.gateway}/v1/audience/messages`;
    const now = () => ({ messageId: randomUUID(), eventTimestamp: new Date().toISOString() });
    const untilMs = performance.now() + FLOOD_MAX_MS;
    let links = 0;
    // Rate limits apply per key, so the flood uses both keys.
    const flood = async (headers: Record<string, string>) => {
      while (performance.now() < untilMs && links < LINKS) {
        const to = { toId: 'the-many', toType: 'custom' };
        const toLink = () => ({ type: 'alias', ...now(), fromId: randomUUID(), fromType: 'custom', ...to });
        const messages = Array.from({ length: 100 }, toLink);
        const response = await post(url, headers, { messages });
        await response.arrayBuffer();
        if (response.ok) links += messages.length;
        else await pause(200);
      }
    };
    const keys = [
      { 'x-service-publishable-key': attacker.publishable },
      { 'x-service-api-key': attacker.secret },
    ] as Record<string, string>[];
    await Promise.all([...keys, ...keys].map(flood));
    const event = { type: 'track', ...now(), eventName: 'bystander', anonymousId: 'to-be-erased' };
    await post(url, { 'x-service-publishable-key': bystander.publishable }, { messages: [event] });
    const startedAt = performance.now();
    const floodErasureId = await erase(world, attacker.secret, 'userId=the-many');
    const bystanderErasureId = await erase(world, bystander.secret, 'anonymousId=to-be-erased');
    const isErased = async (id: string) =>
      (await query(`SELECT 1 FROM erasure_receipts WHERE erasure_id = '${id}'`)).length > 0;
    await until('the bystander is erased', () => isErased(bystanderErasureId), 120_000);
    const tookS = secondsSince(startedAt);
    await until('the person with many links is erased', () => isErased(floodErasureId), 300_000);
    const { peakMb } = memoryOf('eraser');
    if (tookS > 60) throw new Error(`the bystander’s erasure took ${tookS} s`);
    if (peakMb > 400) throw new Error(`the eraser used ${peakMb} MB`);
    const durations = `the bystander’s erasure took ${tookS} s, the flooded person’s ${secondsSince(startedAt)} s`;
    return `${links} links; ${durations}; the eraser’s memory peaked at ${peakMb} MB`;
  },
};

const CONSECUTIVE = toEventSelector('ConsecutiveTransfer(uint256,uint256,address,address)');
const TRANSFER = toEventSelector('Transfer(address,address,uint256)');

async function deploy(rpc: string, data: string): Promise<Address> {
  const address = await sendAs(rpc, { data });
  if (address === null) throw new Error('the contract was not deployed');
  return address;
}

const hugeRange: Attack = {
  name: 'one transaction that reports millions of token transfers',
  run: async ({ stack }) => {
    const { chain, chainApi } = stack.file;
    const { rpc } = chain!;
    const { bytecode } = readContract('consecutive-erc721');
    const { 'consecutive-erc721': abi, 'log-emitter': emitterAbi } = CONTRACT_ABIS;
    const honest = await deploy(rpc, encodeDeployData({ abi, bytecode, args: [ADMIN, 2n] }));
    const emitter = await deploy(rpc, readContract('log-emitter').bytecode);
    const history = `${chainApi}/v1/chains/demo-chain/activity-history?contract_address=${honest}&page_size=200`;
    /** @returns seconds from sending the transaction until its activity appears in the history */
    const mint = async (tokenId: bigint) => {
      const startedAt = performance.now();
      await sendAs(rpc, {
        to: honest,
        data: encodeFunctionData({ abi, functionName: 'mint', args: [ADMIN, tokenId] }),
      });
      const isListed = async () => (await (await fetch(history)).text()).includes(`"token_id":"${tokenId}"`);
      await until('the honest mint is in the history', isListed, 120_000);
      return secondsSince(startedAt);
    };
    const usualS = await mint(8n);
    const word = (value: bigint) => toHex(value, { size: 32 });
    const logs = Array.from({ length: 9 }, (_, index) => ({
      topics: [CONSECUTIVE, word(BigInt(index) * 5_000_000n), word(0n), pad(ADMIN, { size: 32 })],
      data: word(BigInt(index + 1) * 5_000_000n - 1n),
    }));
    const data = encodeFunctionData({ abi: emitterAbi, functionName: 'emitLogs', args: [logs] });
    await sendAs(rpc, { to: emitter, data });
    const afterS = await mint(9n);
    if (afterS > usualS + 10) throw new Error(`an honest mint took ${afterS} s instead of ${usualS} s`);
    return `an honest mint appeared in the history after ${afterS} s; before the attack, it took ${usualS} s`;
  },
};

/** Init code that emits `Transfer(0, 1, 1)` and deploys `JUMPDEST PUSH1 0 JUMP`, so that every call runs out of gas. */
const ENDLESS = `0x6001600052600160007f${TRANSFER.slice(2)}60206000a3635b6000566000526004601cf3`;

const endlessContracts: Attack = {
  name: 'contracts whose calls never return, next to an honest token',
  run: async ({ stack }, seconds) => {
    const { chain, chainApi } = stack.file;
    const { rpc } = chain!;
    const isListed = async (contract: Address) =>
      (await fetch(`${chainApi}/v1/chains/demo-chain/tokens/${contract}`)).status === 200;
    const hostile: Address[] = [];
    const untilMs = performance.now() + seconds * 1000;
    const attack = (async () => {
      while (performance.now() < untilMs) {
        hostile.push(await deploy(rpc, ENDLESS));
        await pause(2000);
      }
    })();
    await pause(3000);
    const { 'old-erc20': abi } = CONTRACT_ABIS;
    const args = [toHex('Honest', { size: 32 }), toHex('HON', { size: 32 })] as const;
    const { bytecode } = readContract('old-erc20');
    const honest = await deploy(rpc, encodeDeployData({ abi, bytecode, args }));
    const startedAt = performance.now();
    await sendAs(rpc, { to: honest, data: encodeFunctionData({ abi, functionName: 'mint', args: [ADMIN, 5n] }) });
    await until('the honest token is listed', () => isListed(honest), 90_000);
    const tookS = secondsSince(startedAt);
    await attack;
    if (tookS > 60) throw new Error(`the honest token was listed after ${tookS} s`);
    await until('the first hostile token is listed without a name', () => isListed(hostile[0]!), 90_000);
    return `${hostile.length} contracts; the honest token was listed after ${tookS} s`;
  },
};

export const ATTACKS: readonly Attack[] = [
  tinyChunks,
  unreadResponses,
  slowBodies,
  mintFlood,
  failedMintFlood,
  linkFlood,
  hugeRange,
  endlessContracts,
];

export async function untilReady({ stack }: AttackWorld): Promise<void> {
  for (const [name, url] of Object.entries(stack.file.admin ?? {}))
    await until(`${name} is ready`, async () => (await fetch(`${url}/readyz`)).ok, READY_MAX_MS);
}
