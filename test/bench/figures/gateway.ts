import type { Bench, Figure, Row } from '../figure.ts';
import { toRow } from '../figure.ts';
import { runFloor } from '../floors/run.ts';
import { loadOn, openGateway, openPeer, peerEnvironment, type Server } from '../gateway-servers.ts';
import type { LoadFigure } from '../load.ts';
import { memoryPeakMibOf } from '../processes.ts';

/** A batch size, and as many connections as keep one core busy with it. */
interface Size {
  batchSize: number;
  connections: number;
}
const SIZES: readonly Size[] = [
  { batchSize: 1, connections: 64 },
  { batchSize: 20, connections: 32 },
  { batchSize: 100, connections: 16 },
];

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

const rateOf = ({ events, cpuSeconds }: { events: number; cpuSeconds: number }) => events / cpuSeconds;

async function measureSize(bench: Bench, servers: Servers, size: Size): Promise<Row[]> {
  const own = await loadOn(servers.gateway, bench, size);
  const reference = await loadOn(servers.reference, bench, size);
  const bare = await loadOn(servers.bare, bench, size);
  const parsed = await runFloor('parse', { BATCH_SIZE: String(size.batchSize) });
  const row = { ...partsOf(size), ours: rateOf(own) };
  const also = `${describe(own, servers.gateway)}; reference: ${describe(reference, servers.reference)}`;
  return [
    toRow({ ...row, beside: 'reference', theirs: rateOf(reference), also }),
    toRow({ ...row, beside: 'floor: read and answer', theirs: rateOf(bare), also: '' }),
    toRow({ ...row, beside: 'floor: JSON.parse alone', theirs: rateOf(parsed), also: '' }),
  ];
}

function describe({ p50Ms, p99Ms, events, seconds }: LoadFigure, { pid }: Server): string {
  return `${Math.round(events / seconds)}/s with p50 ${p50Ms} and p99 ${p99Ms} ms, peak ${memoryPeakMibOf(pid)} MiB`;
}
