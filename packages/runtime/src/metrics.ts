import { monitorEventLoopDelay } from 'node:perf_hooks';
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';
import { VERSION } from './version.ts';

/** One registry per service, so that two services in one test process do not conflict. */
export interface Metrics {
  readonly version: string;
  readonly contentType: string;
  text(): Promise<string>;
  counter<L extends string>(name: string, help: string, labelNames?: readonly L[]): Counter<L>;
  gauge<L extends string>(name: string, help: string, labelNames?: readonly L[]): Gauge<L>;
  /** A gauge whose value is set by `collect` on every scrape. */
  collectedGauge<L extends string>(
    name: string,
    help: string,
    options: { labelNames?: readonly L[]; collect(gauge: Gauge<L>): Promise<void> | void },
  ): Gauge<L>;
  histogram<L extends string>(
    name: string,
    help: string,
    options: { bucketsSeconds: number[]; labelNames?: readonly L[] },
  ): Histogram<L>;
}

/**
 * prom-client's 100 samples per second take half the CPU time of an idle service. Longer blockages remain visible.
 */
const LAG_SAMPLE_MS = 1_000;
/** Disables prom-client's own sampling. Its gauges receive the values measured here. */
const NEVER_MS = 2 ** 31 - 1;
const NS_PER_MS = 1e6;
const NS_PER_S = 1e9;

function openLagMonitor() {
  const monitor = monitorEventLoopDelay({ resolution: LAG_SAMPLE_MS });
  monitor.enable();
  return monitor;
}

/**
 * Measures event loop delays under prom-client's metric names. A reset monitor has no value until its next sample, so
 * two monitors are read and reset alternately.
 */
function collectLag(registry: Registry): void {
  let [histogram, next] = [openLagMonitor(), openLagMonitor()];
  const toSeconds = (ns: number) => Math.max(0, ns - LAG_SAMPLE_MS * NS_PER_MS) / NS_PER_S;
  const gauge = (statistic: string, help: string, collect: (this: Gauge) => void) => {
    const name = `nodejs_eventloop_lag_${statistic}_seconds`;
    registry.removeSingleMetric(name);
    const helpText = `${help} of the event loop since the scrape before last.`;
    new Gauge({ name, help: helpText, registers: [registry], collect });
  };
  const lag = (statistic: string, help: string, valueNs: () => number) =>
    gauge(statistic, help, function set() {
      this.set(histogram.count === 0 ? 0 : toSeconds(valueNs()));
    });
  lag('min', 'The minimum delay', () => histogram.min);
  lag('mean', 'The mean delay', () => histogram.mean);
  lag('p50', 'The 50th percentile of the delays', () => histogram.percentile(50));
  lag('p90', 'The 90th percentile of the delays', () => histogram.percentile(90));
  lag('p99', 'The 99th percentile of the delays', () => histogram.percentile(99));
  gauge('stddev', 'The standard deviation of the delays', function set() {
    this.set(histogram.count === 0 ? 0 : histogram.stddev / NS_PER_S);
  });
  // `max` is the last metric in the output, so the monitors are reset here.
  gauge('max', 'The maximum delay', function set() {
    this.set(histogram.count === 0 ? 0 : toSeconds(histogram.max));
    histogram.reset();
    [histogram, next] = [next, histogram];
  });
}

export function createMetrics(service: string): Metrics {
  const registry = new Registry();
  registry.setDefaultLabels({ service });
  collectDefaultMetrics({ register: registry, eventLoopMonitoringPrecision: NEVER_MS });
  collectLag(registry);
  const registers = [registry];
  const build = {
    name: 'playline_build_info',
    help: 'Version of this process; the value is always 1',
    labelNames: ['version'],
  };
  new Gauge({ ...build, registers }).set({ version: VERSION }, 1);
  return {
    version: VERSION,
    contentType: registry.contentType,
    text: () => registry.metrics(),
    counter: (name, help, labelNames = []) => new Counter({ name, help, labelNames, registers }),
    gauge: (name, help, labelNames = []) => new Gauge({ name, help, labelNames, registers }),
    collectedGauge(name, help, { labelNames = [], collect }) {
      const options = { name, help, labelNames, registers };
      const gauge: Gauge<(typeof labelNames)[number]> = new Gauge({ ...options, collect: () => collect(gauge) });
      return gauge;
    },
    histogram: (name, help, { bucketsSeconds: buckets, labelNames = [] }) =>
      new Histogram({ name, help, buckets, labelNames, registers }),
  };
}

/** Reports on every scrape whether Redis accepts writes, before a write fails. */
export function watchWrites(metrics: Pick<Metrics, 'collectedGauge'>, acceptsWrites: () => Promise<boolean>): void {
  const help = '1 if Redis accepts writes, 0 if it is full, read-only or unavailable';
  const collect = async (gauge: Gauge) => gauge.set((await acceptsWrites()) ? 1 : 0);
  metrics.collectedGauge('playline_redis_takes_writes', help, { collect });
}
