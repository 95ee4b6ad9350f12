// Ports of stacks and tests.
import { createHash, randomInt } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:net';
import { join } from 'node:path';
import { type StackPaths, stackPathsOf } from './paths.ts';
import { readOptionalFile, writePrivateFile } from './private-file.ts';

const HOST = '127.0.0.1';
/** Blocks are below 32768, where Linux begins to assign outgoing ports. */
const FIRST_PORT = 20_000;
const BLOCK_PORTS = 40;
const BLOCKS = 300;
/** Single ports are between this and the blocks. 10080 is the last port that `fetch` refuses. */
export const FIRST_DRAWN_PORT = 10_081;
/** No other process of this checkout draws the same port for one to two of these: longer than a service takes to listen. */
const DRAWN_MS = 60_000;
const DRAWS_MAX = 1_000;

/** Keeps one port open, so that no other process takes it. */
export interface PortGuard {
  close(): void;
}

export interface ClaimedPorts {
  ports: Record<string, number>;
  /** A sentence for each port that has changed since the last start. */
  moves: readonly string[];
  /** Keeps other stacks out of this stack's block. */
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

/** An empty file for each drawn port, in a folder for each minute. */
const DRAWN_FOLDER = join(stackPathsOf().provisions, 'drawn-ports');

/** False when the port was drawn recently. Only one process can make the file. */
function draw(port: number): boolean {
  const drawnAtMs = Date.now();
  const term = Math.floor(drawnAtMs / DRAWN_MS);
  const folderOf = (of: number) => join(DRAWN_FOLDER, String(of));
  try {
    if (existsSync(join(folderOf(term - 1), String(port)))) return false;
    if (mkdirSync(folderOf(term), { recursive: true }) !== undefined) forgetBefore(term - 1);
    writeFileSync(join(folderOf(term), String(port)), '', { flag: 'wx' });
    return true;
  } catch (error) {
    // On a read-only disk two processes may draw the same port.
    return (error as NodeJS.ErrnoException).code !== 'EEXIST';
  }
}

function forgetBefore(term: number): void {
  for (const name of readdirSync(DRAWN_FOLDER))
    if (Number(name) < term) rmSync(join(DRAWN_FOLDER, name), { recursive: true, force: true });
}

/** Ports on loopback that are free and were not drawn recently. @throws Error when nearly all are taken */
export async function freePorts(count: number): Promise<number[]> {
  const ports = new Set<number>();
  for (let attempt = 0; ports.size < count; attempt++) {
    if (attempt === DRAWS_MAX) throw new Error(`no ${count} free ports from ${FIRST_DRAWN_PORT} to ${FIRST_PORT - 1}`);
    const port = randomInt(FIRST_DRAWN_PORT, FIRST_PORT);
    if ((await isPortFree(port)) && draw(port)) ports.add(port);
  }
  return [...ports];
}

/** `PLAYLINE_EVENT_WRITER_ADMIN_PORT` for `event-writer-admin`. */
export const portVariableOf = (name: string): string => `PLAYLINE_${name.toUpperCase().replaceAll('-', '_')}_PORT`;

/** The port from the environment, or null. @throws Error when it is not a port number */
export function givenPort(name: string, environment: Record<string, string | undefined>): number | null {
  const text = environment[portVariableOf(name)];
  if (text === undefined || text === '') return null;
  const port = Number(text);
  if (!Number.isInteger(port) || port < 1 || port > 65_535)
    throw new Error(`${portVariableOf(name)} must be a port from 1 to 65535`);
  return port;
}

interface StoredPorts {
  block: number;
  ports: Record<string, number>;
}

/** A stack owns a block while it keeps the block's first port open. */
async function claimBlock(paths: StackPaths, kept: StoredPorts | null): Promise<{ first: number; guard: Server }> {
  const preferred = createHash('sha256').update(paths.state).digest().readUInt32BE(0) % BLOCKS;
  const start = kept?.block ?? FIRST_PORT + preferred * BLOCK_PORTS;
  for (let step = 0; step < BLOCKS; step++) {
    const first = FIRST_PORT + ((start - FIRST_PORT + step * BLOCK_PORTS) % (BLOCKS * BLOCK_PORTS));
    const guard = await listen(first);
    if (guard !== null) return { first, guard: guard.unref() };
  }
  throw new Error(`no free block of ports from ${FIRST_PORT} on`);
}

/**
 * Gives every name its port from the environment, else its previous one, else a free one of the stack's block.
 * @throws Error when a port from the environment is taken
 */
export async function claimPorts(
  names: readonly string[],
  { paths, environment }: { paths: StackPaths; environment: Record<string, string | undefined> },
): Promise<ClaimedPorts> {
  const path = join(paths.state, 'ports.json');
  const moves: string[] = [];
  const last = readOptionalFile(path, (line) => moves.push(line)) as StoredPorts | null;
  const { first, guard } = await claimBlock(paths, last);
  const kept = last?.block === first ? last.ports : {};
  const ports: Record<string, number> = {};
  const chosen: Record<string, number> = {};
  if (last !== null && last.block !== first)
    moves.push(`another stack uses the ports from ${last.block}; this stack now uses ports from ${first}`);
  const isUsable = async (port: number) => !Object.values(ports).includes(port) && (await isPortFree(port));
  try {
    for (const name of names) {
      const given = givenPort(name, environment);
      if (given !== null && !(await isUsable(given)))
        throw new Error(
          `port ${given} (${portVariableOf(name)}) is taken: choose another, or stop the program that uses it`,
        );
      const before = kept[name];
      if (given !== null) ports[name] = given;
      else if (before !== undefined && (await isUsable(before))) ports[name] = chosen[name] = before;
      else {
        let port = first + 1;
        while ((Object.values(kept).includes(port) || !(await isUsable(port))) && port < first + BLOCK_PORTS) port++;
        if (port === first + BLOCK_PORTS) throw new Error(`no free port for ${name} from ${first} to ${port - 1}`);
        ports[name] = chosen[name] = port;
        if (before !== undefined) moves.push(`port ${before} is taken; ${name} now uses ${port}`);
      }
    }
  } catch (error) {
    guard.close();
    throw error;
  }
  writePrivateFile(path, `${JSON.stringify({ block: first, ports: { ...kept, ...chosen } }, null, 2)}\n`);
  return { ports, moves, guard };
}
