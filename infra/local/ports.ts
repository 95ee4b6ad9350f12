// Allocates ports for stacks and tests.
import { createHash, randomInt } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:net';
import { join } from 'node:path';
import { type StackPaths, stackPathsOf } from './paths.ts';
import { readOptionalFile, writePrivateFile } from './private-file.ts';

const HOST = '127.0.0.1';
/** Blocks are below 32768, where the ephemeral range of Linux begins. */
const FIRST_PORT = 20_000;
/** Enough for a cluster. Blocks of earlier releases have 40 ports and remain in use. */
const BLOCK_PORTS = 80;
const BLOCKS = 150;
/** Single ports are between this port and the blocks. 10080 is the last port that `fetch` blocks. */
export const FIRST_DRAWN_PORT = 10_081;
/** A drawn port stays reserved in this checkout for one to two intervals, longer than a service needs to listen. */
const DRAWN_MS = 60_000;
const DRAWS_MAX = 1_000;

/** Holds one port open, so that no other process can use it. */
export interface PortGuard {
  close(): void;
}

export interface ClaimedPorts {
  ports: Record<string, number>;
  /** Messages about ports that have changed since the last start. */
  changes: readonly string[];
  /** Reserves this stack's block of ports. */
  guard: PortGuard;
}

function listen(port: number): Promise<Server | null> {
  return new Promise((done) => {
    const server = createServer((socket) => socket.destroy());
    server.once('error', () => done(null));
    server.listen({ port, host: HOST, exclusive: true }, () => done(server));
  });
}

export async function isPortFree(port: number): Promise<boolean> {
  const server = await listen(port);
  if (server === null) return false;
  await new Promise((done) => server.close(done));
  return true;
}

/** Contains one folder per minute, with an empty file per drawn port. */
const DRAWN_FOLDER = join(stackPathsOf().downloads, 'drawn-ports');

/** Reserves a port. @returns false if the port was drawn recently. Only one process can create its file. */
function draw(port: number): boolean {
  const drawnAtMs = Date.now();
  const minute = Math.floor(drawnAtMs / DRAWN_MS);
  const folderOf = (minute: number) => join(DRAWN_FOLDER, String(minute));
  try {
    if (existsSync(join(folderOf(minute - 1), String(port)))) return false;
    if (mkdirSync(folderOf(minute), { recursive: true }) !== undefined) removeBefore(minute - 1);
    writeFileSync(join(folderOf(minute), String(port)), '', { flag: 'wx' });
    return true;
  } catch (error) {
    // On a read-only disk, two processes may draw the same port.
    return (error as NodeJS.ErrnoException).code !== 'EEXIST';
  }
}

function removeBefore(minute: number): void {
  for (const name of readdirSync(DRAWN_FOLDER))
    if (Number(name) < minute) rmSync(join(DRAWN_FOLDER, name), { recursive: true, force: true });
}

/** @returns free loopback ports that were not drawn recently @throws Error if nearly all ports are in use */
export async function freePorts(count: number): Promise<number[]> {
  const ports = new Set<number>();
  for (let attempt = 0; ports.size < count; attempt++) {
    if (attempt === DRAWS_MAX)
      throw new Error(`fewer than ${count} free ports from ${FIRST_DRAWN_PORT} to ${FIRST_PORT - 1}`);
    const port = randomInt(FIRST_DRAWN_PORT, FIRST_PORT);
    if ((await isPortFree(port)) && draw(port)) ports.add(port);
  }
  return [...ports];
}

/** Returns for example `PLAYLINE_EVENT_WRITER_ADMIN_PORT` for `event-writer-admin`. */
export const portVariableOf = (name: string): string => `PLAYLINE_${name.toUpperCase().replaceAll('-', '_')}_PORT`;

/** @returns the configured port from the environment, or null @throws Error if it is not a port number */
export function configuredPort(name: string, environment: Record<string, string | undefined>): number | null {
  const text = environment[portVariableOf(name)];
  if (text === undefined || text === '') return null;
  const port = Number(text);
  if (!Number.isInteger(port) || port < 1 || port > 65_535)
    throw new Error(`${portVariableOf(name)} must be a port number from 1 to 65535`);
  return port;
}

interface StoredPorts {
  block: number;
  ports: Record<string, number>;
}

/** Claims a block by listening on its first port. */
async function claimBlock(paths: StackPaths, stored: StoredPorts | null): Promise<{ first: number; guard: Server }> {
  const preferred = createHash('sha256').update(paths.state).digest().readUInt32BE(0) % BLOCKS;
  const start = stored?.block ?? FIRST_PORT + preferred * BLOCK_PORTS;
  for (let step = 0; step < BLOCKS; step++) {
    const first = FIRST_PORT + ((start - FIRST_PORT + step * BLOCK_PORTS) % (BLOCKS * BLOCK_PORTS));
    const guard = await listen(first);
    if (guard !== null) return { first, guard: guard.unref() };
  }
  throw new Error(`no free block of ports above ${FIRST_PORT}`);
}

/**
 * Assigns a port to each name: the configured port, else the previous port, else a free port in the stack's block.
 * @throws Error if a configured port is in use
 */
export async function claimPorts(
  names: readonly string[],
  { paths, environment }: { paths: StackPaths; environment: Record<string, string | undefined> },
): Promise<ClaimedPorts> {
  const path = join(paths.state, 'ports.json');
  const changes: string[] = [];
  const last = readOptionalFile(path, (line) => changes.push(line)) as StoredPorts | null;
  const { first, guard } = await claimBlock(paths, last);
  const stored = last?.block === first ? last.ports : {};
  const ports: Record<string, number> = {};
  const assigned: Record<string, number> = {};
  if (last !== null && last.block !== first)
    changes.push(`another stack uses the ports from ${last.block}; this stack now uses ports from ${first}`);
  const isUsable = async (port: number) => !Object.values(ports).includes(port) && (await isPortFree(port));
  try {
    for (const name of names) {
      const configured = configuredPort(name, environment);
      if (configured !== null && !(await isUsable(configured)))
        throw new Error(
          `port ${configured} (${portVariableOf(name)}) is in use. Choose another port, or stop the program that uses it`,
        );
      const previous = stored[name];
      if (configured !== null) ports[name] = configured;
      else if (previous !== undefined && (await isUsable(previous))) ports[name] = assigned[name] = previous;
      else {
        let port = first + 1;
        while ((Object.values(stored).includes(port) || !(await isUsable(port))) && port < first + BLOCK_PORTS) port++;
        if (port === first + BLOCK_PORTS) throw new Error(`no free port for ${name} from ${first} to ${port - 1}`);
        ports[name] = assigned[name] = port;
        if (previous !== undefined) changes.push(`port ${previous} is in use; ${name} now uses ${port}`);
      }
    }
  } catch (error) {
    guard.close();
    throw error;
  }
  writePrivateFile(path, `${JSON.stringify({ block: first, ports: { ...stored, ...assigned } }, null, 2)}\n`);
  return { ports, changes, guard };
}
