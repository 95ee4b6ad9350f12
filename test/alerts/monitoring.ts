import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, openSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { json } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { freePorts } from '@playline/infra/ports';
import { until } from '@playline/testkit';
import { provideProgram } from './programs.ts';

const RULES = fileURLToPath(new URL('../../infra/prometheus/alerts.yml', import.meta.url));
/** As in infra/prometheus/prometheus.yml. */
const INTERVAL = '15s';

export type Monitoring = Awaited<ReturnType<typeof openMonitoring>>;

interface Delivered {
  readonly alerts: readonly { readonly status: 'firing' | 'resolved'; readonly labels: { readonly alertname: string } }[];
}

async function openReceiver() {
  const delivered = { firing: new Set<string>(), resolved: new Set<string>() };
  const server = createServer((request, response) => {
    void json(request).then((body) => {
      for (const { status, labels } of (body as Delivered).alerts) delivered[status].add(labels.alertname);
      response.end();
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return { delivered, server, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` };
}

/**
 * Starts Prometheus and Alertmanager with the rules, and the exporters for disks and certificates.
 * @param options.targets admin addresses by service @param options.tlsPort a TLS server whose certificate is checked
 */
export async function openMonitoring(
  folder: string,
  { targets, tlsPort }: { targets: Readonly<Record<string, string>>; tlsPort: number },
) {
  mkdirSync(folder, { recursive: true });
  const [prometheusPort = 0, alertmanagerPort = 0, nodePort = 0, probePort = 0] = await freePorts(4);
  const receiver = await openReceiver();
  const write = (name: string, settings: unknown) => {
    writeFileSync(join(folder, name), JSON.stringify(settings));
    return join(folder, name);
  };
  const scrape = (job_name: string, port: number) => ({
    job_name,
    static_configs: [{ targets: [`127.0.0.1:${port}`] }],
  });
  const prometheusFile = write('prometheus.json', {
    global: { scrape_interval: INTERVAL, evaluation_interval: INTERVAL, scrape_timeout: '5s' },
    rule_files: [RULES],
    alerting: { alertmanagers: [{ static_configs: [{ targets: [`127.0.0.1:${alertmanagerPort}`] }] }] },
    scrape_configs: [
      {
        job_name: 'playline',
        static_configs: Object.entries(targets).map(([instance, url]) => ({
          targets: [new URL(url).host],
          labels: { instance },
        })),
      },
      scrape('node', nodePort),
      {
        ...scrape('certificates', probePort),
        metrics_path: '/probe',
        params: { target: [`127.0.0.1:${tlsPort}`], module: ['tcp_tls'] },
      },
    ],
  });
  const alertmanagerFile = write('alertmanager.json', {
    route: { receiver: 'test', group_by: ['...'], group_wait: '0s', group_interval: '1s' },
    receivers: [{ name: 'test', webhook_configs: [{ url: receiver.url }] }],
  });
  // Only the expiry of the certificate is checked.
  const tls = { tls: true, tls_config: { insecure_skip_verify: true } };
  const probeFile = write('probe.json', { modules: { tcp_tls: { prober: 'tcp', timeout: '2s', tcp: tls } } });
  const listen = (port: number) => `--web.listen-address=127.0.0.1:${port}`;
  const children: ChildProcess[] = [];
  const start = async (name: Parameters<typeof provideProgram>[0], port: number, args: readonly string[]) => {
    const program = await provideProgram(name);
    const log = openSync(join(folder, `${name}.log`), 'a');
    children.push(spawn(program, [listen(port), ...args], { stdio: ['ignore', log, log] }));
    await until(`${name} responds`, async () => (await fetch(`http://127.0.0.1:${port}/metrics`)).ok);
  };
  const storage = (name: string) => join(folder, `${name}-data`);
  await start('prometheus-alertmanager', alertmanagerPort, [
    `--config.file=${alertmanagerFile}`,
    `--storage.path=${storage('alertmanager')}`,
    '--cluster.listen-address=',
  ]);
  await start('prometheus-node-exporter', nodePort, []);
  await start('prometheus-blackbox-exporter', probePort, [`--config.file=${probeFile}`]);
  await start('prometheus', prometheusPort, [
    `--config.file=${prometheusFile}`,
    `--storage.tsdb.path=${storage('prometheus')}`,
  ]);
  const get = async <T>(path: string): Promise<T> => {
    const response = await fetch(`http://127.0.0.1:${prometheusPort}/api/v1/${path}`);
    const { data, error } = (await response.json()) as { data: T; error?: string };
    if (error !== undefined) throw new Error(error);
    return data;
  };
  return {
    delivered: receiver.delivered,
    /** Returns the names of the firing rules with their labels. */
    firing: async () => {
      const { alerts } = await get<{ alerts: { state: string; labels: Record<string, string> }[] }>('alerts');
      return alerts.filter(({ state }) => state === 'firing').map(({ labels }) => labels);
    },
    query: async (promql: string) =>
      (await get<{ result: unknown[] }>(`query?query=${encodeURIComponent(promql)}`)).result,
    async close() {
      const exits = children.filter(({ exitCode }) => exitCode === null).map((child) => once(child, 'exit'));
      for (const child of children) child.kill('SIGTERM');
      await Promise.all(exits);
      receiver.server.closeAllConnections();
      receiver.server.close();
    },
  };
}
