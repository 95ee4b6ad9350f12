import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { atMost, type Bench, type Figure, type Row, toRow } from '../figure.ts';
import { loadOn, warmUp } from '../load.ts';
import { withOpened } from '../opened.ts';
import { startGateway, startPeer, UNLIMITED } from '../services.ts';

const SIZES = [
  { batchSize: 1, connections: 64 },
  { batchSize: 20, connections: 32 },
];
const WARM_UPS = 5;
const WINDOW_MS = 60_000;
const SHARE_MAX = 0.01;
const TRACING_FILES = /@opentelemetry|\/(otlp-)?tracing\.ts$/;
/** Files of services and libraries, in contrast to those of Node. */
const IS_FILE = /^file:|node_modules/;

interface CpuProfile {
  readonly nodes: readonly {
    readonly id: number;
    readonly callFrame: { readonly functionName: string; readonly url: string };
    readonly children?: readonly number[];
  }[];
  /** Times in microseconds of the monotonic clock. */
  readonly startTime: number;
  readonly samples: readonly number[];
  readonly timeDeltas: readonly number[];
}

// Share of the gateway's CPU time that is used to record one percent of the traces. The difference between two processes
// with and without traces is smaller than the difference between two equal processes, so the share comes from a profile.
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
      const rows: Row[] = [];
      for (const size of SIZES)
        for (const settings of [traces, {}]) {
          const { share, samples } = await profileGateway(bench, settings, size);
          rows.push(
            toRow({
              case: `batches of ${size.batchSize}, ${settings === traces ? '1 % of traces' : 'no traces'}`,
              unit: 'share of CPU time for traces',
              value: share,
              peer: 'the gateway',
              peerValue: 1,
              bars: [atMost('ratio', SHARE_MAX)],
              notes: `${samples} samples`,
            }),
          );
        }
      return rows;
    }),
};

async function profileGateway(bench: Bench, settings: Record<string, string>, size: (typeof SIZES)[number]) {
  const folder = mkdtempSync(join(tmpdir(), 'playline-bench-profile-'));
  try {
    const profiling = { NODE_OPTIONS: `--cpu-prof --cpu-prof-dir=${folder}` };
    const gateway = await startGateway(bench, { ...UNLIMITED, ...settings, ...profiling });
    let sinceUs = 0;
    try {
      // Few requests are traced, so their code is compiled late.
      for (let n = 0; n < WARM_UPS; n += 1) await warmUp(gateway, bench, size);
      sinceUs = Number(process.hrtime.bigint() / 1000n);
      await loadOn(gateway, bench, { ...size, warmUpMs: 500, windowMs: WINDOW_MS, traffic: 'usual' });
    } finally {
      await gateway.close();
    }
    const [file = ''] = readdirSync(folder);
    return shareOf(JSON.parse(readFileSync(join(folder, file), 'utf8')) as CpuProfile, sinceUs);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/** Native functions count as part of the function that calls them. Garbage collection belongs to no function. */
function shareOf({ nodes, startTime, samples, timeDeltas }: CpuProfile, sinceUs: number) {
  const frames = new Map(nodes.map(({ id, callFrame }) => [id, callFrame]));
  const parents = new Map(nodes.flatMap(({ id, children = [] }) => children.map((child) => [child, id] as const)));
  const fileOf = (id: number | undefined): string => {
    const { url = '' } = id === undefined ? {} : (frames.get(id) ?? {});
    return id === undefined || IS_FILE.test(url) ? url : fileOf(parents.get(id));
  };
  let timeUs = startTime;
  let [all, tracing] = [0, 0];
  for (const [index, id] of samples.entries()) {
    timeUs += timeDeltas[index] ?? 0;
    if (timeUs < sinceUs || frames.get(id)?.functionName === '(idle)') continue;
    all += 1;
    if (TRACING_FILES.test(fileOf(id))) tracing += 1;
  }
  return { share: tracing / all, samples: all };
}
