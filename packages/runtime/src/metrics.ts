import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';

/** A service's own registry, so that two services in one test process do not collide. */
export interface Metrics {
  readonly contentType: string;
  /** Prometheus text of everything registered here. */
  text(): Promise<string>;
  counter<L extends string>(name: string, help: string, labelNames?: readonly L[]): Counter<L>;
  gauge<L extends string>(name: string, help: string, labelNames?: readonly L[]): Gauge<L>;
  /** A gauge of what is only known by asking: `collect` sets its values whenever the metrics are read. */
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

export function createMetrics(service: string): Metrics {
  const registry = new Registry();
  registry.setDefaultLabels({ service });
  collectDefaultMetrics({ register: registry });
  const registers = [registry];
  return {
    contentType: registry.contentType,
    text: () => registry.metrics(),
    counter: (name, help, labelNames = []) => new Counter({ name, help, labelNames, registers }),
    gauge: (name, help, labelNames = []) => new Gauge({ name, help, labelNames, registers }),
    collectedGauge(name, help, { labelNames = [], collect }) {
      const ask = () => collect(gauge);
      const gauge: Gauge<(typeof labelNames)[number]> = new Gauge({ name, help, labelNames, registers, collect: ask });
      return gauge;
    },
    histogram: (name, help, { bucketsSeconds: buckets, labelNames = [] }) =>
      new Histogram({ name, help, buckets, labelNames, registers }),
  };
}
