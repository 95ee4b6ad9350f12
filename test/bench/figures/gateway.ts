import type { Bar, Bench, Figure, Row } from '../figure.ts';
import { toRow } from '../figure.ts';
import { runFloor } from '../floors/run.ts';
import { loadOn, openGateway, openPeer, peerEnvironment, type Server, warmUp } from '../gateway-servers.ts';
import type { LoadFigure } from '../load.ts';
import { memoryPeakMibOf } from '../processes.ts';
import { TRAFFICS, type Traffic } from '../traffic.ts';

/** A batch size, the number of connections that keep one core busy with it, and the required ratio to the reference. */
interface Size {
  batchSize: number;
  connections: number;
  must: number;
  aim: number;
}
const SIZES: readonly Size[] = [
  { batchSize: 1, connections: 64, must: 3.5, aim: 6 },
  { batchSize: 20, connections: 32, must: 4, aim: 6 },
  { batchSize: 100, connections: 16, must: 3, aim: 4.5 },
];
/** With one message a request a plain server has the least to do, and most clients begin that way. */
const PLAIN_BAR: Bar = { of: 'ratio', bound: 'at least', must: 3.5 };
/** Required share of the usual rate, for batches with one bad message and for ids that no cache has seen. */
const TRAFFIC_MUST: Readonly<Partial<Record<Traffic, number>>> = { 'one bad a batch': 0.8, 'every id new': 0.85 };
/** Memory limit of the gateway at saturation, with its bound of 16 MB in flight. */
const MEMORY_MUST_MIB = 300;
const MEMORY_AIM_MIB = 200;

interface Servers {
  gateway: Server;
  reference: Server;
  plain: Server;
  bare: Server;
}

/**
 * Events per CPU-second, with full validation and an answer after all in-sync replicas have acknowledged every message.
 */
export const gateway: Figure = {
  name: 'gateway',
  async measure(bench) {
    const opened: Server[] = [];
    const keep = (server: Server) => {
      opened.push(server);
      return server;
    };
    try {
      const servers = {
        gateway: keep(await openGateway(bench)),
        reference: keep(await openPeer('reference/gateway', bench)),
        plain: keep(await openPeer('reference/plain', bench)),
        bare: keep(await openPeer('reference/http-server', bench)),
      };
      const produced = rateOf(await runFloor('produce', peerEnvironment(bench)));
      const rows: Row[] = [];
      for (const size of SIZES) {
        const own = await measureSize(bench, servers, size);
        rows.push(...own);
        const row = { ...partsOf(size), ours: own[0]?.ours ?? 0, also: '' };
        rows.push(toRow({ ...row, beside: 'floor: produce alone', theirs: produced }));
      }
      rows.push(toMemoryRow(servers));
      return rows;
    } finally {
      for (const server of opened) await server.close();
    }
  },
};

const partsOf = ({ batchSize }: Size, traffic: Traffic = 'usual') => ({
  figure: 'gateway',
  case: `batches of ${batchSize}${traffic === 'usual' ? '' : `, ${traffic}`}`,
  unit: 'events per CPU-second',
});

function toMemoryRow({ gateway, reference }: Servers): Row {
  return toRow({
    figure: 'gateway',
    case: 'all of the above',
    unit: 'MiB, peak',
    beside: 'reference',
    also: '',
    ours: memoryPeakMibOf(gateway.pid),
    theirs: memoryPeakMibOf(reference.pid),
    bars: [{ of: 'ours', bound: 'at most', must: MEMORY_MUST_MIB, aim: MEMORY_AIM_MIB }],
  });
}

const rateOf = ({ events, cpuSeconds }: { events: number; cpuSeconds: number }) => events / cpuSeconds;

/** Windows of each server and traffic. They alternate, so that other load on the machine affects all of them alike. */
const ROUNDS = 3;
const SHAPE = { warmUpMs: 1_000, windowMs: 3_000 };

/** The servers that answer the same requests. */
const PEERS = ['gateway', 'reference', 'plain'] as const;
type Peer = (typeof PEERS)[number];
type Medians = Readonly<Record<Traffic, Readonly<Record<Peer, LoadFigure>>>>;

/** TLS to the brokers does not change how messages are read, so with TLS only the usual traffic is measured. */
function trafficsOf({ stores }: Bench, { batchSize }: Size): readonly Traffic[] {
  if (stores.secured !== undefined) return ['usual'];
  return TRAFFICS.filter((traffic) => batchSize > 1 || traffic !== 'one bad a batch');
}

async function measureSize(bench: Bench, servers: Servers, size: Size): Promise<Row[]> {
  for (const peer of PEERS) await warmUp(servers[peer], bench, size);
  const traffics = trafficsOf(bench, size);
  const medians = await measureInTurn(traffics, (peer, traffic) =>
    loadOn(servers[peer], bench, { ...size, ...SHAPE, traffic }),
  );
  const bare = await loadOn(servers.bare, bench, { ...size, ...SHAPE });
  const parsed = await runFloor('parse', { BATCH_SIZE: String(size.batchSize) });
  const row = { ...partsOf(size), ours: rateOf(medians.usual.gateway), also: '' };
  return [
    ...toPeerRows(size, medians.usual, servers),
    toRow({ ...row, beside: 'floor: read and answer', theirs: rateOf(bare) }),
    toRow({ ...row, beside: 'floor: JSON.parse alone', theirs: rateOf(parsed) }),
    ...traffics.filter((traffic) => traffic !== 'usual').flatMap((traffic) => toTrafficRows(size, traffic, medians)),
  ];
}

async function measureInTurn(
  traffics: readonly Traffic[],
  load: (peer: Peer, traffic: Traffic) => Promise<LoadFigure>,
): Promise<Medians> {
  const windows = new Map<string, LoadFigure[]>();
  for (let round = 0; round < ROUNDS; round += 1) {
    for (const traffic of traffics) {
      for (const peer of PEERS) {
        // No bar concerns peers under other traffics, so one window of each is enough.
        if (peer !== 'gateway' && traffic !== 'usual' && round > 0) continue;
        const name = `${traffic} ${peer}`;
        windows.set(name, [...(windows.get(name) ?? []), await load(peer, traffic)]);
      }
    }
  }
  const medianFor = (traffic: Traffic, peer: Peer) => medianOf(windows.get(`${traffic} ${peer}`) ?? []);
  const ofPeers = (traffic: Traffic) => Object.fromEntries(PEERS.map((peer) => [peer, medianFor(traffic, peer)]));
  return Object.fromEntries(traffics.map((traffic) => [traffic, ofPeers(traffic)])) as unknown as Medians;
}

/** Rows of the usual traffic beside both references. */
function toPeerRows(size: Size, usual: Medians['usual'], servers: Servers): Row[] {
  const row = { ...partsOf(size), ours: rateOf(usual.gateway) };
  const bar = { of: 'ratio', bound: 'at least', must: size.must, aim: size.aim } as const;
  const own = describe(usual.gateway, servers.gateway);
  const besideOf = (peer: 'reference' | 'plain') => ({
    ...row,
    beside: peer === 'plain' ? 'plain express' : peer,
    theirs: rateOf(usual[peer]),
    also: `${own}; ${peer}: ${describe(usual[peer], servers[peer])}`,
  });
  const plain = toRow(besideOf('plain'));
  return [
    toRow({ ...besideOf('reference'), bars: [bar] }),
    size.batchSize === 1 ? { ...plain, bars: [PLAIN_BAR] } : plain,
  ];
}

/** Rows of another traffic, beside the usual one of the same run and beside both references. */
function toTrafficRows(size: Size, traffic: Traffic, medians: Medians): Row[] {
  const { gateway, reference, plain } = medians[traffic];
  const row = { ...partsOf(size, traffic), ours: rateOf(gateway), also: '' };
  const usual = toRow({ ...row, beside: 'its usual traffic', theirs: rateOf(medians.usual.gateway) });
  const must = TRAFFIC_MUST[traffic];
  return [
    must === undefined ? usual : { ...usual, bars: [{ of: 'ratio', bound: 'at least', must }] },
    toRow({ ...row, beside: 'reference', theirs: rateOf(reference) }),
    toRow({ ...row, beside: 'plain express', theirs: rateOf(plain) }),
  ];
}

/** The window with the median rate. */
function medianOf(windows: readonly LoadFigure[]): LoadFigure {
  const sorted = [...windows].sort((one, other) => rateOf(one) - rateOf(other));
  const middle = sorted[sorted.length >> 1];
  if (middle === undefined) throw new Error('no window was measured');
  return middle;
}

function describe({ p50Ms, p99Ms, events, seconds }: LoadFigure, { pid }: Server): string {
  return `${Math.round(events / seconds)}/s with p50 ${p50Ms} and p99 ${p99Ms} ms, peak ${memoryPeakMibOf(pid)} MiB`;
}
