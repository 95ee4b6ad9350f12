import { type ChildProcess, spawnSync } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { mkdirSync, readFileSync } from 'node:fs';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { createServer } from 'node:tls';
import { callRpc } from '@playline/infra/chain';
import type { StackOptions } from '@playline/infra/local';
import { overrideWallClock, testStackFolder, until } from '@playline/testkit';
import { startJourneyStack, trackMessage } from '../journeys/stack.ts';
import { type ChainProxyMode, openChainProxy } from './chain-proxy.ts';
import { openMonitoring } from './monitoring.ts';

const CHAIN = { name: 'demo-chain', id: 'eip155:31337' };
/** The time without a block after which the chain is stalled. */
const STILL_AFTER_S = 30;
const BLOCK_MS = 5_000;
const BATCH_MS = 250;
const MESSAGES_PER_BATCH = 20;

/** `flood` exceeds the rate limit; half of the messages of `invalid` are invalid. */
export type TrafficMode = 'normal' | 'flood' | 'invalid' | 'none';

export type World = Awaited<ReturnType<typeof openWorld>>;

/** Repeats `work`, whose errors are ignored, because stores and services are stopped. @returns a function that ends it */
function repeat(everyMs: () => number, work: () => Promise<unknown>): () => void {
  let timer: NodeJS.Timeout;
  const run = () => {
    void work().catch(() => {});
    timer = setTimeout(run, everyMs());
  };
  run();
  return () => clearTimeout(timer);
}

/** A TLS server whose certificate can be replaced. */
async function openTlsServer(folder: string) {
  const issue = (days: number) => {
    const [key, cert] = [join(folder, `${days}.key`), join(folder, `${days}.pem`)];
    const args = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-subj', '/CN=localhost'];
    const { status } = spawnSync('openssl', [
      'req',
      '-x509',
      ...args,
      '-days',
      `${days}`,
      '-keyout',
      key,
      '-out',
      cert,
    ]);
    if (status !== 0) throw new Error('openssl failed');
    return { key: readFileSync(key), cert: readFileSync(cert) };
  };
  const server = createServer(issue(60), (socket) => socket.on('error', () => {}).end());
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    port: (server.address() as AddressInfo).port,
    setDays: (days: number) => server.setSecureContext(issue(days)),
    close: () => void server.close(),
  };
}

/** A small file system that can be filled. Requires root. */
function mountDisk(folder: string) {
  mkdirSync(folder);
  const mounted = spawnSync('mount', ['-t', 'tmpfs', '-o', 'size=16m', 'playline-test', folder], { encoding: 'utf8' });
  if (mounted.status !== 0) throw new Error(`cannot mount a test disk: ${mounted.stderr}`);
  return { folder, unmount: () => void spawnSync('umount', [folder]) };
}

/** Starts a complete stack with traffic, whose chain nodes are proxies, and its monitoring. */
export async function openWorld() {
  await using opened = new AsyncDisposableStack();
  const root = testStackFolder('alerts');
  const clock = overrideWallClock();
  opened.defer(clock.close);
  const toNode = () => {
    const { ports } = JSON.parse(readFileSync(join(root, '.playline', 'ports.json'), 'utf8'));
    return `http://127.0.0.1:${ports.chain}`;
  };
  const nodes = [await openChainProxy(toNode), await openChainProxy(toNode)] as const;
  for (const node of nodes) opened.defer(node.close);
  const options: StackOptions = {
    chain: true,
    isDisposable: true,
    settings: {
      ...clock.environment,
      CHAIN_NODES: JSON.stringify([{ ...CHAIN, urls: nodes.map(({ url }) => url), stillAfterS: STILL_AFTER_S }]),
      RATE_LIMIT_MESSAGES_PER_S: '400',
      RATE_LIMIT_BURST: '2000',
    },
  };
  const journey = await startJourneyStack(options, root);
  opened.defer(journey.close);
  const chain = toNode();
  const tls = await openTlsServer(root);
  opened.defer(tls.close);
  const disk = mountDisk(join(root, 'disk'));
  opened.defer(disk.unmount);
  const { admin = {} } = journey.file();
  const monitoring = await openMonitoring(join(root, 'monitoring'), { targets: admin, tlsPort: tls.port });
  opened.defer(monitoring.close);
  const state = { traffic: 'normal' as TrafficMode, hasBlocks: true };
  const isFlooded = () => state.traffic === 'flood';
  const toMessage = (_: unknown, index: number) =>
    trackMessage(state.traffic === 'invalid' && index % 2 === 0 ? { type: 'none' } : {});
  opened.defer(
    repeat(
      () => (isFlooded() ? BATCH_MS / 10 : BATCH_MS),
      async () => state.traffic !== 'none' && journey.post(Array.from({ length: MESSAGES_PER_BATCH }, toMessage)),
    ),
  );
  opened.defer(
    repeat(
      () => BLOCK_MS,
      async () => state.hasBlocks && callRpc(chain, 'evm_mine'),
    ),
  );
  const pidOf = (name: string) => {
    const pid = journey.stack.file.processes[name];
    if (pid === undefined) throw new Error(`${name} is not running`);
    return pid;
  };
  const signal = (name: string, signal: NodeJS.Signals) => process.kill(pidOf(name), signal);
  const metric = async (service: string, name: string): Promise<number> => {
    const text = await (await fetch(`${admin[service]}/metrics`)).text();
    const values = text.split('\n').filter((line) => line.startsWith(`${name}{`) || line.startsWith(`${name} `));
    return values.reduce((total, line) => total + Number(line.slice(line.lastIndexOf(' '))), 0);
  };
  const owned = opened.move();
  return {
    ...journey,
    monitoring,
    set: (changed: Partial<typeof state>) => void Object.assign(state, changed),
    chain,
    nodes,
    tls,
    disk,
    pidOf,
    signal,
    metric,
    setNodes: (mode: ChainProxyMode) => {
      for (const node of nodes) node.set(mode);
    },
    /** Kills a process with SIGTERM or SIGKILL, and waits until its successor is ready. */
    replace: async (name: string, by: NodeJS.Signals) => {
      const pid = pidOf(name);
      process.kill(pid, by);
      await until(`${name} is replaced`, () => (journey.stack.file.processes[name] ?? pid) !== pid);
      await until(`${name} is ready`, async () => (await fetch(`${admin[name]}/readyz`)).ok);
    },
    shiftClock: (service: string, shiftMs: number) => {
      const child = { kill: (name: NodeJS.Signals) => process.kill(pidOf(service), name) } as ChildProcess;
      return clock.set(child, shiftMs);
    },
    requestMint: async () => {
      const { chainApi, chain } = journey.file();
      const url = `${chainApi}/v1/chains/demo-chain/collections/${chain?.contracts.erc721}/nfts/mint-requests`;
      const headers = { 'x-service-api-key': journey.keys.development.secret, 'content-type': 'application/json' };
      const assets = [{ reference_id: randomUUID(), owner_address: `0x${'12'.repeat(20)}` }];
      const response = await fetch(url, { method: 'POST', headers, body: JSON.stringify({ assets }) });
      if (response.status !== 202) throw new Error(await response.text());
    },
    /** Requests the erasure of a person. @returns its id */
    requestErasure: async (userId: string): Promise<string> => {
      const url = `${journey.file().gateway}/v1/audience/data?userId=${userId}`;
      const headers = { 'x-service-api-key': journey.keys.production.secret };
      const response = await fetch(url, { method: 'DELETE', headers });
      return response.headers.get('x-erasure-id') ?? '';
    },
    close: () => owned.disposeAsync(),
  };
}
