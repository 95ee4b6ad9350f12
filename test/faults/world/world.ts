import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { type Stack, stackPathsOf, startStack, sweepStacks } from '@playline/infra/local';
import type { LogReader } from '@playline/stream';
import { openLogReader } from '@playline/stream/kafka';
import { type Deployment, type MakeTables, openDeployment } from './deployment.ts';
import { openPortPool, type PortPool } from './port-pool.ts';
import { openServiceProcess, type ServiceName, type ServiceProcess } from './service-process.ts';
import { environmentOf, groupOf } from './settings.ts';
import { waitFor } from './wait.ts';
import { openWires, type Store, type Wires } from './wires.ts';

/** Number of processes of each consuming service, besides those that a trial starts itself. */
export interface Crew {
  linkers: number;
  writers: number;
}

/** Separate real stores, each behind a wire, and processes of services. */
export interface World {
  readonly stack: Stack;
  readonly wires: Wires;
  /** The current one; `renew` creates another. */
  readonly deployment: Deployment;
  /** Reads the log directly from the broker, not through the wire. */
  readonly log: LogReader;
  readonly folder: string;
  /** Starts a process of a service. The caller closes it; at the latest the world does. */
  start(service: ServiceName, settings?: Record<string, string>): Promise<ServiceProcess>;
  /**
   * Sets the number of processes of the crew: starts missing or dead ones, ends surplus ones. Resolves when all are
   * ready.
   */
  setCrew(crew: Crew): Promise<readonly ServiceProcess[]>;
  /** Consumer group of a service. */
  groupOf(service: ServiceName): string;
  /** Process id of a store. Waits for it while the stack restarts it. */
  storePid(store: Store): Promise<number>;
  /** Process id of a broker by its id, from 1 on. Waits for it while the stack restarts it. */
  brokerPid(id: number): Promise<number>;
  /** Creates new topics, tables and groups, after a failed seed. Ends the crew. */
  renew(): Promise<void>;
  close(): Promise<void>;
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

class RunningWorld implements World {
  readonly stack: Stack;
  readonly wires: Wires;
  readonly log: LogReader;
  readonly folder: string;
  deployment: Deployment;
  readonly #ports: PortPool;
  readonly #makeTables: MakeTables | undefined;
  readonly #processes = new Set<ServiceProcess>();
  #crew: ServiceProcess[] = [];
  #started = 0;

  constructor(parts: Parts) {
    this.stack = parts.stack;
    this.wires = parts.wires;
    this.#ports = parts.ports;
    this.#makeTables = parts.makeTables;
    this.folder = parts.folder;
    this.deployment = parts.deployment;
    this.log = openLogReader({ brokers: parts.stack.file.kafka, clientId: 'faults' });
  }

  async start(service: ServiceName, settings: Record<string, string> = {}): Promise<ServiceProcess> {
    const name = `${service}-${++this.#started}`;
    const environment = { ...environmentOf(service, this), ...settings };
    const logFile = join(this.folder, 'logs', `${name}.log`);
    const ports = { http: this.#ports.take(), admin: this.#ports.take() };
    const child = await openServiceProcess({ service, name, environment, logFile, ports });
    this.#processes.add(child);
    void child.exited.then(() => {
      this.#processes.delete(child);
      for (const port of Object.values(ports)) this.#ports.giveBack(port);
    });
    return child;
  }

  async setCrew({ linkers, writers }: Crew): Promise<readonly ServiceProcess[]> {
    const wanted: [ServiceName, number][] = [
      ['identity-linker', linkers],
      ['event-writer', writers],
    ];
    const kept: ServiceProcess[] = [];
    const ended: ServiceProcess[] = [];
    for (const [service, count] of wanted) {
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

  storePid(store: Store): Promise<number> {
    return waitFor(`${store} has a process`, () => this.stack.file.processes[store] ?? null);
  }

  brokerPid(id: number): Promise<number> {
    const name = id === 1 ? 'kafka' : `kafka-${id}`;
    return waitFor(`${name} has a process`, () => this.stack.file.processes[name] ?? null);
  }

  async #closeProcesses(): Promise<void> {
    await Promise.all([...this.#processes].map((child) => child.close()));
    this.#crew = [];
  }

  async renew(): Promise<void> {
    await this.wires.openAll();
    await this.#closeProcesses();
    await this.deployment.close();
    this.deployment = await openDeployment(this.stack, this.#makeTables);
  }

  async close(): Promise<void> {
    await this.wires.openAll();
    await this.#closeProcesses();
    await this.log.close();
    await this.deployment.leave();
    await this.wires.close();
    await this.stack.stop();
    this.#ports.close();
    rmSync(this.folder, { recursive: true, force: true });
  }
}

export interface WorldOptions {
  /** Called with progress messages. */
  report?: (line: string) => void;
  /** Number of brokers; default: one. Several brokers have no wire. */
  brokers?: number;
  /** Default: the SQL files, one after the other. */
  makeTables?: MakeTables;
}

/** Starts a world in a new folder. */
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
    return new RunningWorld({ stack, wires, ports, folder, deployment, makeTables });
  } catch (error) {
    await stack?.stop();
    await wires.close();
    ports.close();
    rmSync(folder, { recursive: true, force: true });
    throw error;
  }
}
