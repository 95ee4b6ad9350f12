import { atMost, type Figure, type Row, toRow } from '../figure.ts';
import { loadOn } from '../load.ts';
import { withOpened } from '../opened.ts';
import { startGateway, startPeer } from '../services.ts';

/** Loads that the reference can serve on one core, so that neither server builds a queue. */
const LOADS = [
  { batchSize: 1, requestsPerSecond: 500 },
  { batchSize: 20, requestsPerSecond: 300, bars: { p50: atMost('value', 3, 2), p99: atMost('value', 30, 13) } },
  { batchSize: 100, requestsPerSecond: 40 },
];
/** Enough that a due request rarely waits for a free connection. */
const CONNECTIONS = 128;

/** Latency at an equal offered load, counted from when a request was due. */
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
