import { spawnSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync, statfsSync, statSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { findAnvilProblem } from '../../chain/anvil.ts';
import { findOrphans } from '../children.ts';
import { engineLibrary } from '../clickhouse.ts';
import { findProgram } from '../command.ts';
import { EXIT } from '../command-table.mjs';
import { areJarsInstalled } from '../jars.ts';
import { findJava } from '../java.ts';
import { findMissingParts, installCommand } from '../machine.ts';
import type { StackPaths } from '../paths.ts';
import { configuredPort, isPortFree, portVariableOf } from '../ports.ts';
import { allPortNames } from '../stack-options.ts';
import { readStatus, toVerdict } from '../status.ts';
import { findSupervisor } from '../supervisor.ts';

const LABELS = { good: 'ok  ', warning: 'warn', bad: 'BAD ' } as const;

/** Prints all findings with their fixes. @returns 1 if a finding prevents the stack from starting or serving */
export async function doctor(paths: StackPaths, args: readonly string[] = []): Promise<number> {
  const supervisor = findSupervisor(paths);
  const orphans = supervisor === null ? findOrphans(paths).map(({ name }) => name) : [];
  const isRunning = supervisor !== null || orphans.length > 0;
  const cluster = args.includes('--cluster');
  const findings = await examine(paths, { environment: process.env, isRunning, cluster });
  for (const { level, what, fix } of findings)
    console.log(`${LABELS[level]}  ${what}${fix === undefined ? '' : `\n      fix: ${fix}`}`);
  const isMachineHealthy = !findings.some((finding) => finding.level === 'bad');
  if (orphans.length > 0) {
    console.log(toVerdict(null, orphans).sentence);
    return EXIT.failed;
  }
  if (supervisor === null) {
    console.log('the stack is not running');
    return isMachineHealthy ? EXIT.ok : EXIT.failed;
  }
  const statuses = (await readStatus(paths)) ?? [];
  const { isWell, sentence, hint } = toVerdict(statuses);
  console.log(`the stack is running (supervisor ${supervisor.pid}): ${sentence}${hint}`);
  for (const { fix } of statuses) if (fix !== null) console.log(`      fix: ${fix}`);
  return isMachineHealthy && isWell ? EXIT.ok : EXIT.failed;
}

interface Finding {
  level: 'good' | 'warning' | 'bad';
  what: string;
  /** Absent for the level `good`. */
  fix?: string;
}

/** The oldest version of Redis that the tests cover. */
const REDIS_MAJOR_MIN = 7;
/** Memory of a running stack: broker 310 MB, registry 150 MB, ClickHouse at most 1 GB, services 100 MB each. */
const MEMORY_MIN_BYTES = 2 * 1024 ** 3;
/** Memory of a running cluster: two more brokers of 310 MB, another ClickHouse of at most 1 GB, nine more services. */
const CLUSTER_MEMORY_MIN_BYTES = 5 * 1024 ** 3;
/** Disk space for packages (700 MB), jars (200 MB), Node (120 MB), caches and data. */
const DISK_MIN_BYTES = 3 * 1024 ** 3;

const gigabytes = (bytes: number) => `${(bytes / 1024 ** 3).toFixed(1)} GB`;

/** @returns the bytes of memory that are available without swapping, or null if unknown */
export function parseAvailableMemory(meminfo: string): number | null {
  const [, kilobytes] = /^MemAvailable:\s+(\d+) kB$/m.exec(meminfo) ?? [];
  return kilobytes === undefined ? null : Number(kilobytes) * 1024;
}

export function checkAmount(name: string, free: number, { need, fix }: { need: number; fix: string }): Finding {
  if (free >= need) return { level: 'good', what: `${name}: ${gigabytes(free)} free` };
  return { level: 'bad', what: `${name}: ${gigabytes(free)} free, ${gigabytes(need)} needed`, fix };
}

/** Parses the output of `redis-server --version`. Returns null if it contains no version. */
export function parseRedisVersion(text: string): [number, number] | null {
  const [, major, minor] = /\bv=(\d+)\.(\d+)/.exec(text) ?? [];
  return major === undefined ? null : [Number(major), Number(minor)];
}

function checkRedis(): Finding[] {
  const program = findProgram('redis-server');
  if (program === null) return []; // reported by findMissingParts
  const version = parseRedisVersion(spawnSync(program, ['--version'], { encoding: 'utf8' }).stdout ?? '');
  const what = `Redis ${version?.join('.') ?? '(unknown version)'}`;
  if (version !== null && version[0] >= REDIS_MAJOR_MIN) return [{ level: 'good', what }];
  const fix = 'install a newer redis-server';
  return [{ level: 'warning', what: `${what}; only ${REDIS_MAJOR_MIN}.0 and newer are tested`, fix }];
}

function checkVersions(paths: StackPaths): Finding[] {
  const found: Finding[] = [{ level: 'good', what: `Node ${process.version}` }, ...checkRedis()];
  const java = findJava();
  if (java !== null) found.push({ level: 'good', what: `Java ${java.major}` });
  for (const part of findMissingParts(paths)) {
    const fix = `\`npm start\` installs it; to install it manually: ${installCommand([part])}`;
    found.push({ level: 'bad', what: `${part.what} is not installed`, fix });
  }
  const jars = areJarsInstalled(paths) ? 'are installed' : 'will be downloaded at the first start';
  found.push({ level: 'good', what: `the jars of Kafka and the schema registry ${jars}` });
  try {
    engineLibrary();
    found.push({ level: 'good', what: 'the ClickHouse engine is installed' });
  } catch (error) {
    const fix = 'remove node_modules and start again. ClickHouse supports Linux with glibc on x64 and arm64';
    found.push({ level: 'bad', what: (error as Error).message, fix });
  }
  return [...found, checkChain()];
}

function checkChain(): Finding {
  const problem = findAnvilProblem();
  if (problem === null) return { level: 'good', what: 'anvil is installed' };
  return { level: 'warning', what: `the stack starts without the chain: ${problem.what}`, fix: problem.fix };
}

async function checkPorts({ environment, cluster }: Pick<Examination, 'environment' | 'cluster'>): Promise<Finding[]> {
  const names = allPortNames({ cluster });
  const found: Finding[] = [];
  for (const name of names) {
    try {
      const port = configuredPort(name, environment);
      const fix = `set ${portVariableOf(name)} to another port, or unset it`;
      if (port !== null && !(await isPortFree(port)))
        found.push({ level: 'bad', what: `port ${port} for ${name} is in use`, fix });
    } catch (error) {
      found.push({ level: 'bad', what: (error as Error).message, fix: `correct or unset ${portVariableOf(name)}` });
    }
  }
  return found.length > 0 ? found : [{ level: 'good', what: 'no configured port is in use' }];
}

/** Free space required on a separate disk with a store's data. */
const DATA_DISK_MIN_BYTES = 1024 ** 3;

function listEntries(folder: string): string[] {
  if (statSync(folder, { throwIfNoEntry: false })?.isDirectory() !== true) return [];
  return readdirSync(folder).map((name) => join(folder, name));
}

/** Checks all disks with data, because a folder of the stack may be a mount point or a symbolic link. */
function checkDisks(paths: StackPaths): Finding[] {
  const data = join(paths.state, 'data');
  const stores = listEntries(data);
  const seen = new Set<number>();
  const found: Finding[] = [];
  for (const folder of [
    ...[existsSync(paths.state) ? paths.state : paths.checkout, data],
    ...stores.flatMap((store) => [store, ...listEntries(store)]),
  ]) {
    const { dev } = statSync(folder, { throwIfNoEntry: false }) ?? {};
    if (dev === undefined || seen.has(dev)) continue;
    const { bavail, bsize } = statfsSync(folder);
    const isFirst = seen.size === 0;
    seen.add(dev);
    const need = isFirst ? DISK_MIN_BYTES : DATA_DISK_MIN_BYTES;
    const fix = 'free disk space, or delete the data of this stack with `npm run reset`';
    found.push(checkAmount(isFirst ? 'disk' : `disk of ${folder}`, bavail * bsize, { need, fix }));
  }
  return found;
}

function checkResources(paths: StackPaths, { cluster }: Examination): Finding[] {
  const memory = existsSync('/proc/meminfo') ? parseAvailableMemory(readFileSync('/proc/meminfo', 'utf8')) : null;
  const found = checkDisks(paths);
  const need = cluster ? CLUSTER_MEMORY_MIN_BYTES : MEMORY_MIN_BYTES;
  const fix = `close other programs; the stack needs about ${need / 1024 ** 3} GB`;
  if (memory !== null) found.push(checkAmount('memory', memory, { need, fix }));
  if (availableParallelism() < 2)
    found.push({ level: 'warning', what: 'only one processor', fix: 'add a processor; with one, the stack is slow' });
  return found;
}

interface Examination {
  readonly environment: Record<string, string | undefined>;
  /** True skips the ports, which the running stack uses. */
  readonly isRunning: boolean;
  readonly cluster?: boolean;
}

/** Checks whether the machine can run the stack. */
export async function examine(paths: StackPaths, examination: Examination): Promise<Finding[]> {
  const ports = examination.isRunning ? [] : await checkPorts(examination);
  return [...checkVersions(paths), ...ports, ...checkResources(paths, examination)];
}
