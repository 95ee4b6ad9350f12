import { atLeast, type Bench, type Figure, type Row, toRow } from '../figure.ts';
import { loadOn, warmUp } from '../load.ts';
import { withOpened } from '../opened.ts';
import { quantileOf } from '../quantile.ts';
import { type Server, startGateway, startPeer, UNLIMITED } from '../services.ts';

const SIZES = [
  { batchSize: 1, connections: 64 },
  { batchSize: 20, connections: 32 },
];
const SHAPE = { warmUpMs: 500, windowMs: 3_000 };
/** The difference is small, so it needs more windows than other figures. */
const ROUNDS = 8;
const RATIO_MIN = 0.99;

/** CPU cost of recording one percent of the traces, compared with the same gateway without traces. */
export const tracing: Figure = {
  name: 'tracing',
  optional: true,
  measure: (bench) =>
    withOpened(async (keep) => {
      const collector = keep(await startPeer(bench, 'reference/http-server'));
      const traces = {
        OTEL_EXPORTER_OTLP_ENDPOINT: `http://127.0.0.1:${collector.port}`,
        OTEL_TRACES_SAMPLER_ARG: '0.01',
      };
      const servers = {
        off: keep(await startGateway(bench)),
        traced: keep(await startGateway(bench, { ...UNLIMITED, ...traces })),
        // Shows how much two identical processes differ.
        'off again': keep(await startGateway(bench)),
      };
      const rows: Row[] = [];
      for (const size of SIZES) rows.push(...(await measureSize(bench, servers, size)));
      return rows;
    }),
};

type Name = 'off' | 'traced' | 'off again';

async function measureSize(bench: Bench, servers: Record<Name, Server>, size: (typeof SIZES)[number]): Promise<Row[]> {
  const names: readonly Name[] = ['off', 'traced', 'off again'];
  const rates: Record<Name, number[]> = { off: [], traced: [], 'off again': [] };
  for (const name of names) await warmUp(servers[name], bench, size);
  for (let round = 0; round < ROUNDS; round++)
    for (const name of round % 2 === 0 ? names : names.toReversed()) {
      const { events, cpuSeconds } = await loadOn(servers[name], bench, { ...size, ...SHAPE, traffic: 'usual' });
      rates[name].push(events / cpuSeconds);
    }
  const rateOf = (name: Name) => quantileOf(rates[name], 0.5);
  const row = { case: `batches of ${size.batchSize}, 1 % of traces`, unit: 'events per CPU-second' };
  return [
    toRow({
      ...row,
      value: rateOf('traced'),
      peer: 'no traces',
      peerValue: rateOf('off'),
      bars: [atLeast('ratio', RATIO_MIN)],
    }),
    toRow({
      ...row,
      case: `batches of ${size.batchSize}, no traces`,
      value: rateOf('off again'),
      peer: 'no traces',
      peerValue: rateOf('off'),
    }),
  ];
}
