import type { Bar, Bench, Figure, Row } from '../figure.ts';
import { toRow } from '../figure.ts';
import { type LoadShape, loadOn, openGateway, openPeer, type Server } from '../gateway-servers.ts';

/** An offered load, and the promised p50 and p99. */
interface OfferedLoad {
  batchSize: number;
  requestsPerSecond: number;
  bars?: { p50: Bar; p99: Bar };
}

const atMost = (must: number, aim: number): Bar => ({ of: 'ours', bound: 'at most', must, aim });
/** Loads that the reference can serve on one core, so that neither server builds a queue. */
const LOADS: readonly OfferedLoad[] = [
  { batchSize: 1, requestsPerSecond: 500 },
  { batchSize: 20, requestsPerSecond: 300, bars: { p50: atMost(3, 2), p99: atMost(30, 13) } },
  { batchSize: 100, requestsPerSecond: 40 },
];
/** Enough that a due request rarely waits for a free connection. */
const CONNECTIONS = 128;

/** Latency at an equal offered load, counted from when a request was due. The numbers mean little on a busy machine. */
export const gatewayLatency: Figure = {
  name: 'gateway-latency',
  async measure(bench) {
    const opened: Server[] = [];
    try {
      opened.push(await openGateway(bench));
      opened.push(await openPeer('reference/gateway', bench));
      const rows: Row[] = [];
      for (const load of LOADS) {
        rows.push(...(await measureLoad(bench, opened, { ...load, connections: CONNECTIONS })));
      }
      return rows;
    } finally {
      for (const server of opened) await server.close();
    }
  },
};

async function measureLoad(
  bench: Bench,
  [gateway, reference]: Server[],
  { bars, ...shape }: OfferedLoad & LoadShape,
): Promise<Row[]> {
  if (gateway === undefined || reference === undefined) return [];
  const own = await loadOn(gateway, bench, shape);
  const theirs = await loadOn(reference, bench, shape);
  const name = `batches of ${shape.batchSize}, ${shape.requestsPerSecond} requests/s`;
  const row = { figure: 'gateway-latency', case: name, beside: 'reference', also: '' };
  return [
    toRow({ ...row, unit: 'p50 ms', ours: own.p50Ms, theirs: theirs.p50Ms, ...judged(bars?.p50) }),
    toRow({ ...row, unit: 'p99 ms', ours: own.p99Ms, theirs: theirs.p99Ms, ...judged(bars?.p99) }),
  ];
}

const judged = (bar: Bar | undefined) => (bar === undefined ? {} : { bars: [bar] });
