import { atLeast, atMost, type Bar, type Bench, type Figure, type Row, toRow } from '../figure.ts';
import { runFloor } from '../floors/run.ts';
import { type LoadFigure, loadOn, warmUp } from '../load.ts';
import { TRAFFICS, type Traffic } from '../messages.ts';
import { withOpened } from '../opened.ts';
import { memoryPeakMibOf } from '../processes.ts';
import { peerEnvironment, type Server, startGateway, startPeer } from '../services.ts';

/** A batch size, enough connections to keep one core busy, and the target ratio to the reference. */
interface Size {
  batchSize: number;
  connections: number;
  bar: Bar;
}
const SIZES: readonly Size[] = [
  { batchSize: 1, connections: 64, bar: atLeast('ratio', 3.5, 6) },
  { batchSize: 20, connections: 32, bar: atLeast('ratio', 4, 6) },
  { batchSize: 100, connections: 16, bar: atLeast('ratio', 3, 4.5) },
];
/** Required fraction of the usual rate, for batches with one invalid message and for ids that are not cached. */
const TRAFFIC_RATIO_MIN: Partial<Record<Traffic, number>> = { 'one invalid message per batch': 0.8, 'new ids': 0.85 };
/** Windows per server and kind of traffic. Servers alternate, so that other load on the machine affects all equally. */
const ROUNDS = 3;
const SHAPE = { warmUpMs: 1_000, windowMs: 3_000 };

const PEERS = ['gateway', 'reference', 'plain'] as const;
type Peer = (typeof PEERS)[number];
type Servers = Record<Peer | 'bare', Server>;
type Medians = Readonly<Record<Traffic, Readonly<Record<Peer, LoadFigure>>>>;

export const gateway: Figure = {
  name: 'gateway',
  measure: (bench) =>
    withOpened(async (keep) => {
      const servers = {
        gateway: keep(await startGateway(bench)),
        reference: keep(await startPeer(bench, 'reference/gateway')),
        plain: keep(await startPeer(bench, 'reference/plain')),
        bare: keep(await startPeer(bench, 'reference/http-server')),
      };
      const produced = rateOf(await runFloor('floors/produce', peerEnvironment(bench)));
      const rows: Row[] = [];
      for (const size of SIZES) rows.push(...(await measureSize(bench, servers, { ...size, produced })));
      const memory = toRow({
        case: 'all loads',
        unit: 'MiB, peak',
        value: memoryPeakMibOf(servers.gateway.pid),
        peer: 'reference',
        peerValue: memoryPeakMibOf(servers.reference.pid),
        bars: [atMost('value', 300, 200)],
      });
      return [...rows, memory];
    }),
};

const namesOf = ({ batchSize }: Size, traffic: Traffic = 'usual') => ({
  case: `batches of ${batchSize}${traffic === 'usual' ? '' : `, ${traffic}`}`,
  unit: 'events per CPU-second',
});

const rateOf = ({ events, cpuSeconds }: { events: number; cpuSeconds: number }) => events / cpuSeconds;

/** With TLS, only the usual traffic is measured: TLS to the brokers does not affect parsing. */
function trafficsOf({ stores }: Bench, { batchSize }: Size): readonly Traffic[] {
  if (stores.secured !== undefined) return ['usual'];
  return TRAFFICS.filter((traffic) => batchSize > 1 || traffic !== 'one invalid message per batch');
}

async function measureSize(bench: Bench, servers: Servers, size: Size & { produced: number }): Promise<Row[]> {
  for (const peer of PEERS) await warmUp(servers[peer], bench, size);
  const traffics = trafficsOf(bench, size);
  const { batchSize, connections } = size;
  const shape = { batchSize, connections, ...SHAPE };
  const medians = await measureAlternately(traffics, (peer, traffic) =>
    loadOn(servers[peer], bench, { ...shape, traffic }),
  );
  const bare = await loadOn(servers.bare, bench, shape);
  const parsed = await runFloor('floors/parse', { BATCH_SIZE: String(batchSize) });
  const row = { ...namesOf(size), value: rateOf(medians.usual.gateway) };
  return [
    ...toPeerRows(size, medians.usual, servers),
    toRow({ ...row, peer: 'floor: read and respond', peerValue: rateOf(bare) }),
    toRow({ ...row, peer: 'floor: JSON.parse alone', peerValue: rateOf(parsed) }),
    ...traffics.filter((traffic) => traffic !== 'usual').flatMap((traffic) => toTrafficRows(size, traffic, medians)),
    toRow({ ...row, peer: 'floor: produce alone', peerValue: size.produced }),
  ];
}

async function measureAlternately(
  traffics: readonly Traffic[],
  load: (peer: Peer, traffic: Traffic) => Promise<LoadFigure>,
): Promise<Medians> {
  const windows = new Map<string, LoadFigure[]>();
  for (let round = 0; round < ROUNDS; round += 1)
    for (const traffic of traffics)
      for (const peer of PEERS) {
        // Peers have no targets for unusual traffic, so one window is enough.
        if (peer !== 'gateway' && traffic !== 'usual' && round > 0) continue;
        const name = `${traffic} ${peer}`;
        windows.set(name, [...(windows.get(name) ?? []), await load(peer, traffic)]);
      }
  const toPeerMedians = (traffic: Traffic) =>
    Object.fromEntries(PEERS.map((peer) => [peer, medianOf(windows.get(`${traffic} ${peer}`) ?? [])]));
  return Object.fromEntries(traffics.map((traffic) => [traffic, toPeerMedians(traffic)])) as unknown as Medians;
}

function toPeerRows(size: Size, usual: Medians['usual'], servers: Servers): Row[] {
  const toPeer = (peer: 'reference' | 'plain', bars: Bar[]) =>
    toRow({
      ...namesOf(size),
      value: rateOf(usual.gateway),
      peer: peer === 'plain' ? 'plain express' : peer,
      peerValue: rateOf(usual[peer]),
      bars,
      notes: `${describe(usual.gateway, servers.gateway)}; ${peer}: ${describe(usual[peer], servers[peer])}`,
    });
  // Only single messages have a target against plain express, the simplest server that a team could write.
  return [toPeer('reference', [size.bar]), toPeer('plain', size.batchSize === 1 ? [atLeast('ratio', 3.5)] : [])];
}

function toTrafficRows(size: Size, traffic: Traffic, medians: Medians): Row[] {
  const { gateway, reference, plain } = medians[traffic];
  const row = { ...namesOf(size, traffic), value: rateOf(gateway) };
  const must = TRAFFIC_RATIO_MIN[traffic];
  const bars = must === undefined ? [] : [atLeast('ratio', must)];
  return [
    toRow({ ...row, peer: 'usual traffic', peerValue: rateOf(medians.usual.gateway), bars }),
    toRow({ ...row, peer: 'reference', peerValue: rateOf(reference) }),
    toRow({ ...row, peer: 'plain express', peerValue: rateOf(plain) }),
  ];
}

function medianOf(windows: readonly LoadFigure[]): LoadFigure {
  const sorted = [...windows].sort((a, b) => rateOf(a) - rateOf(b));
  const middle = sorted[sorted.length >> 1];
  if (middle === undefined) throw new Error('no window was measured');
  return middle;
}

function describe({ p50Ms, p99Ms, events, seconds }: LoadFigure, { pid }: Server): string {
  return `${Math.round(events / seconds)}/s with p50 ${p50Ms} and p99 ${p99Ms} ms, peak ${memoryPeakMibOf(pid)} MiB`;
}

/** Loads that the reference can handle on one core without queueing. */
const LOADS = [
  { batchSize: 1, requestsPerSecond: 500 },
  { batchSize: 20, requestsPerSecond: 300, bars: { p50: atMost('value', 3, 2), p99: atMost('value', 30, 13) } },
  { batchSize: 100, requestsPerSecond: 40 },
];
/** Enough connections that requests rarely wait for a free connection. */
const CONNECTIONS = 128;

export const gatewayLatency: Figure = {
  name: 'gateway-latency',
  measure: (bench) =>
    withOpened(async (keep) => {
      const gateway = keep(await startGateway(bench));
      const reference = keep(await startPeer(bench, 'reference/gateway'));
      const rows: Row[] = [];
      for (const { bars, ...load } of LOADS) {
        const shape = { ...load, connections: CONNECTIONS };
        const [own, peer] = [await loadOn(gateway, bench, shape), await loadOn(reference, bench, shape)];
        const name = `batches of ${load.batchSize}, ${load.requestsPerSecond} requests/s`;
        for (const [quantile, key] of [
          ['p50', 'p50Ms'],
          ['p99', 'p99Ms'],
        ] as const)
          rows.push(
            toRow({
              case: name,
              unit: `${quantile} ms`,
              value: own[key],
              peer: 'reference',
              peerValue: peer[key],
              ...(bars && { bars: [bars[quantile]] }),
            }),
          );
      }
      return rows;
    }),
};
