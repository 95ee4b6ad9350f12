import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { type Stack, stackPathsOf, startStack, sweepStacks } from '@playline/infra/local';
import { openLogReader } from '@playline/stream/kafka';
import { type Deployment, type MakeTables, openDeployment } from './deployment.ts';
import { openPortPool, type PortPool } from './port-pool.ts';
import { openServiceProcess, type ServiceName, type ServiceProcess } from './service-process.ts';
import { environmentOf, groupOf } from './settings.ts';
import { waitFor } from './wait.ts';
import { openWires, type Store, type Wires } from './wires.ts';

export interface Crew {
  linkers: number;
  writers: number;
}

const portIn = (address: string) => Number(/:(\d+)(?:\/|$)/.exec(address.replace(/^\w+:\/\//, ''))?.[1]);

function portOf(stack: Stack, store: Store): number {
  if (store === 'kafka') return stack.kafkaFront ?? 0;
  if (store === 'redis') return Number(new URL(stack.file.redis).port);
  return portIn(store === 'clickhouse' ? stack.file.clickhouse.url : stack.file.registry);
}

interface Parts {
  readonly stack: Stack;
  readonly wires: Wires;
  readonly deployment: Deployment;
  readonly folder: string;
  readonly ports: PortPool;
  readonly makeTables: MakeTables | undefined;
}

/** Separate real stores, each behind a wire, and processes of services. */
export class World {
  readonly stack: Stack;
  readonly wires: Wires;
  readonly folder: string;
  /** Reads the log directly from the broker, not through the wire. */
  readonly log;
  /** The current one; `renew` creates another. */
  deployment: Deployment;
  readonly #parts: Parts;
  readonly #processes = new Set<ServiceProcess>();
  #crew: ServiceProcess[] = [];
  #started = 0;

  constructor(parts: Parts) {
    this.#parts = parts;
    this.stack = parts.stack;
    this.wires = parts.wires;
    this.folder = parts.folder;
    this.deployment = parts.deployment;
    this.log = openLogReader({ brokers: parts.stack.file.kafka, clientId: 'faults' });
  }

  /** Starts a process of a service. The caller closes it; at the latest the world does. */
  async start(service: ServiceName, settings: Record<string, string> = {}): Promise<ServiceProcess> {
    const name = `${service}-${++this.#started}`;
    const environment = { ...environmentOf(service, this), ...settings };
    const logFile = join(this.folder, 'logs', `${name}.log`);
    const pool = this.#parts.ports;
    const ports = { http: pool.take(), admin: pool.take() };
    const child = await openServiceProcess({ service, name, environment, logFile, ports });
    this.#processes.add(child);
    void child.exited.then(() => {
      this.#processes.delete(child);
      for (const port of Object.values(ports)) pool.giveBack(port);
    });
    return child;
  }

  /** Starts missing or dead processes of the crew and ends surplus ones. Resolves when all are ready. */
  async setCrew({ linkers, writers }: Crew): Promise<readonly ServiceProcess[]> {
    const kept: ServiceProcess[] = [];
    const ended: ServiceProcess[] = [];
    for (const [service, count] of [['identity-linker', linkers] as const, ['event-writer', writers] as const]) {
      const alive = this.#crew.filter((child) => child.service === service && child.isAlive);
      kept.push(...alive.slice(0, count));
      ended.push(...alive.slice(count));
      for (let missing = count - alive.length; missing > 0; missing--) kept.push(await this.start(service));
    }
    this.#crew = kept;
    await Promise.all([...kept.map((child) => child.whenReady()), ...ended.map((child) => child.close())]);
    return kept;
  }

  groupOf(service: ServiceName): string {
    return groupOf(service, this.deployment);
  }

  /** Process id of a store. Waits for it while the stack restarts it. */
  storePid(name: Store | `kafka-${number}`): Promise<number> {
    return waitFor(`${name} has a process`, () => this.stack.file.processes[name] ?? null);
  }

  brokerPid(id: number): Promise<number> {
    return this.storePid(id === 1 ? 'kafka' : `kafka-${id}`);
  }

  async #closeProcesses(): Promise<void> {
    await this.wires.openAll();
    await Promise.all([...this.#processes].map((child) => child.close()));
    this.#crew = [];
  }

  /** Creates new topics, tables and groups, after a failed seed. Ends the crew. */
  async renew(): Promise<void> {
    await this.#closeProcesses();
    await this.deployment.close();
    this.deployment = await openDeployment(this.stack, this.#parts.makeTables);
  }

  async close(): Promise<void> {
    await this.#closeProcesses();
    await this.log.close();
    await this.deployment.leave();
    await this.wires.close();
    await this.stack.stop();
    this.#parts.ports.close();
    rmSync(this.folder, { recursive: true, force: true });
  }
}

export interface WorldOptions {
  report?: (line: string) => void;
  /** Number of brokers; default: one. Several brokers have no wire. */
  brokers?: number;
  /** Default: the SQL files, one after the other. */
  makeTables?: MakeTables;
}

export async function openWorld({ report = () => {}, brokers = 1, makeTables }: WorldOptions = {}): Promise<World> {
  const parent = join(stackPathsOf().state, 'test');
  mkdirSync(parent, { recursive: true });
  await sweepStacks(stackPathsOf, parent);
  const folder = mkdtempSync(join(parent, 'faults-'));
  let stack: Stack | null = null;
  const ports = await openPortPool(folder);
  const wires = await openWires(ports, (store) => (stack === null ? 0 : portOf(stack, store)));
  try {
    const kafka = brokers === 1 ? { kafkaFrontPort: wires.kafka.port } : { kafkaBrokers: brokers };
    stack = await startStack({ directory: folder, services: [], report, ...kafka });
    const deployment = await openDeployment(stack, makeTables);
    return new World({ stack, wires, ports, folder, deployment, makeTables });
  } catch (error) {
    await stack?.stop();
    await wires.close();
    ports.close();
    rmSync(folder, { recursive: true, force: true });
    throw error;
  }
}
