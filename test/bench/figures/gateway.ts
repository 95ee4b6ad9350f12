import type { Bench, Figure, Row } from '../figure.ts';
import { toRow } from '../figure.ts';
import { runFloor } from '../floors/run.ts';
import { loadOn, openGateway, openPeer, peerEnvironment, type Server, warmUp } from '../gateway-servers.ts';
import type { LoadFigure } from '../load.ts';
import { memoryPeakMibOf } from '../processes.ts';

/** A batch size, as many connections as keep one core busy with it, and what the ratio to the reference must be. */
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
/** What the gateway may hold at saturation, with its bound of 16 MB in flight. */
const MEMORY_MUST_MIB = 300;
const MEMORY_AIM_MIB = 200;

interface Servers {
  gateway: Server;
  reference: Server;
  bare: Server;
}

/** Events per CPU-second: full validation, answer after every message is acknowledged by all in-sync replicas. */
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
        bare: keep(await openPeer('reference/http-server', bench)),
      };
      const produced = rateOf(await runFloor('produce', peerEnvironment(bench)));
      const rows: Row[] = [];
      for (const size of SIZES) {
        const own = await measureSize(bench, servers, size);
        rows.push(...own);
        rows.push(
          toRow({
            ...partsOf(size),
            ours: own[0]?.ours ?? 0,
            beside: 'floor: produce alone',
            theirs: produced,
            also: '',
          }),
        );
      }
      rows.push(toMemoryRow(servers));
      return rows;
    } finally {
      for (const server of opened) await server.close();
    }
  },
};

const partsOf = ({ batchSize }: Size) => ({
  figure: 'gateway',
  case: `batches of ${batchSize}`,
  unit: 'events per CPU-second',
});

function toMemoryRow({ gateway, reference }: Servers): Row {
  return toRow({
    ...{ figure: 'gateway', case: 'all of the above', unit: 'MiB, peak', beside: 'reference', also: '' },
    ours: memoryPeakMibOf(gateway.pid),
    theirs: memoryPeakMibOf(reference.pid),
    bars: [{ of: 'ours', bound: 'at most', must: MEMORY_MUST_MIB, aim: MEMORY_AIM_MIB }],
  });
}

const rateOf = ({ events, cpuSeconds }: { events: number; cpuSeconds: number }) => events / cpuSeconds;

/** Windows of each server, in turn with the other's, so that what else the machine does meets both. */
const ROUNDS = 3;
const WINDOW_MS = 4_000;

async function measureSize(bench: Bench, servers: Servers, size: Size): Promise<Row[]> {
  const [ownWindows, referenceWindows]: [LoadFigure[], LoadFigure[]] = [[], []];
  const shape = { ...size, windowMs: WINDOW_MS };
  await warmUp(servers.gateway, bench, size);
  await warmUp(servers.reference, bench, size);
  for (let round = 0; round < ROUNDS; round += 1) {
    ownWindows.push(await loadOn(servers.gateway, bench, shape));
    referenceWindows.push(await loadOn(servers.reference, bench, shape));
  }
  const [own, reference] = [medianOf(ownWindows), medianOf(referenceWindows)];
  const bare = await loadOn(servers.bare, bench, shape);
  const parsed = await runFloor('parse', { BATCH_SIZE: String(size.batchSize) });
  const row = { ...partsOf(size), ours: rateOf(own) };
  const bar = { of: 'ratio', bound: 'at least', must: size.must, aim: size.aim } as const;
  const also = `${describe(own, servers.gateway)}; reference: ${describe(reference, servers.reference)}`;
  return [
    toRow({ ...row, beside: 'reference', theirs: rateOf(reference), also, bars: [bar] }),
    toRow({ ...row, beside: 'floor: read and answer', theirs: rateOf(bare), also: '' }),
    toRow({ ...row, beside: 'floor: JSON.parse alone', theirs: rateOf(parsed), also: '' }),
  ];
}

/** The window whose rate has as many above as below. */
function medianOf(windows: readonly LoadFigure[]): LoadFigure {
  const sorted = [...windows].sort((one, other) => rateOf(one) - rateOf(other));
  const middle = sorted[sorted.length >> 1];
  if (middle === undefined) throw new Error('no window was measured');
  return middle;
}

function describe({ p50Ms, p99Ms, events, seconds }: LoadFigure, { pid }: Server): string {
  return `${Math.round(events / seconds)}/s with p50 ${p50Ms} and p99 ${p99Ms} ms, peak ${memoryPeakMibOf(pid)} MiB`;
}
