import { createHash, randomInt } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:net';
import { join } from 'node:path';
import { type StackPaths, stackPathsOf } from './paths.ts';
import { readOptionalFile, writePrivateFile } from './private-file.ts';

const HOST = '127.0.0.1';
/** Blocks are below 32768, where Linux begins to assign ports to outgoing connections. */
const FIRST_PORT = 20_000;
const BLOCK_PORTS = 40;
const BLOCKS = 300;
/**
 * Single ports are chosen between this and the blocks. They are above 10080, the last port that `fetch` refuses to
 * connect to.
 */
export const FIRST_DRAWN_PORT = 10_081;
/**
 * A port that was drawn is drawn by no other process of this checkout for this time, nor for up to twice as long. It is longer
 * than a service takes on a busy machine until it listens.
 */
const DRAWN_MS = 60_000;
/** Number of attempts. Enough to find a free port on any machine that has some. */
const DRAWS_MAX = 1_000;

/** Keeps one port open, so that no other process takes it. */
export interface PortGuard {
  close(): void;
}

export interface ClaimedPorts {
  /** Port of each name asked for. */
  ports: Record<string, number>;
  /** One sentence for each remembered port that has changed, for people who have noted an address. */
  moves: readonly string[];
  /** Keeps other stacks out of this stack's block while it runs. */
  guard: PortGuard;
}

function listen(port: number): Promise<Server | null> {
  return new Promise((done) => {
    const server = createServer((socket) => socket.destroy());
    server.once('error', () => done(null));
    server.listen({ port, host: HOST, exclusive: true }, () => done(server));
  });
}

/** True when this process could listen on the port of loopback now. */
export async function isPortFree(port: number): Promise<boolean> {
  const server = await listen(port);
  if (server === null) return false;
  await new Promise((done) => server.close(done));
  return true;
}

/** An empty file for each drawn port, in a folder for each minute. In the checkout, where no other user can write. */
const DRAWN_FOLDER = join(stackPathsOf().provisions, 'drawn-ports');

/** Draws a port; false when it was drawn a moment ago. Of two processes only one can make the file. */
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
    // Where nothing can be written, two processes may draw the same port.
    return (error as NodeJS.ErrnoException).code !== 'EEXIST';
  }
}

function forgetBefore(term: number): void {
  for (const name of readdirSync(DRAWN_FOLDER))
    if (Number(name) < term) rmSync(join(DRAWN_FOLDER, name), { recursive: true, force: true });
}

/**
 * Finds different ports on loopback that are free now, and that no process of this checkout was given in the last minute.
 * They are below the blocks of stacks and the ports for outgoing connections.
 * @throws Error when nearly all are taken
 */
export async function freePorts(count: number): Promise<number[]> {
  const ports = new Set<number>();
  for (let attempt = 0; ports.size < count; attempt++) {
    if (attempt === DRAWS_MAX) throw new Error(`no ${count} free ports from ${FIRST_DRAWN_PORT} to ${FIRST_PORT - 1}`);
    const port = randomInt(FIRST_DRAWN_PORT, FIRST_PORT);
    if ((await isPortFree(port)) && draw(port)) ports.add(port);
  }
  return [...ports];
}

/** `PLAYLINE_KAFKA_PORT` for `kafka`, `PLAYLINE_EVENT_WRITER_ADMIN_PORT` for `event-writer-admin`. */
export function portVariableOf(name: string): string {
  return `PLAYLINE_${name.toUpperCase().replaceAll('-', '_')}_PORT`;
}

/** The port that the environment sets, or null. @throws Error when the variable is not a port number */
export function givenPort(name: string, environment: Record<string, string | undefined>): number | null {
  const text = environment[portVariableOf(name)];
  if (text === undefined || text === '') return null;
  const port = Number(text);
  if (!Number.isInteger(port) || port < 1 || port > 65_535)
    throw new Error(`${portVariableOf(name)} must be a port from 1 to 65535`);
  return port;
}

interface Kept {
  block: number;
  ports: Record<string, number>;
}

/** A stack owns a block of ports while it keeps the block's first port open, so two stacks never share a block. */
async function claimBlock(places: StackPaths, kept: Kept | null): Promise<{ first: number; guard: Server }> {
  const wish = createHash('sha256').update(places.state).digest().readUInt32BE(0) % BLOCKS;
  const start = kept?.block ?? FIRST_PORT + wish * BLOCK_PORTS;
  for (let step = 0; step < BLOCKS; step++) {
    const first = FIRST_PORT + ((start - FIRST_PORT + step * BLOCK_PORTS) % (BLOCKS * BLOCK_PORTS));
    const guard = await listen(first);
    if (guard !== null) return { first, guard: guard.unref() };
  }
  throw new Error(`no free block of ports from ${FIRST_PORT} on`);
}

/**
 * Gives every name a port on loopback: the one of its environment variable, else its previous one if that is free, else
 * a free one of the stack's block. `ports.json` remembers them, so addresses survive a restart.
 * @throws Error when a port from the environment is taken
 */
export async function claimPorts(
  names: readonly string[],
  { places, environment }: { places: StackPaths; environment: Record<string, string | undefined> },
): Promise<ClaimedPorts> {
  const path = join(places.state, 'ports.json');
  const moves: string[] = [];
  const last = readOptionalFile(path, (line) => moves.push(line)) as Kept | null;
  const { first, guard } = await claimBlock(places, last);
  // A different block means that another stack has the old one with all its ports.
  const kept = last?.block === first ? last.ports : {};
  const ports: Record<string, number> = {};
  const chosen: Record<string, number> = {};
  if (last !== null && last.block !== first)
    moves.push(`another stack has the ports from ${last.block} on: this one is on ports from ${first} on now`);
  const isUsable = async (port: number) => !Object.values(ports).includes(port) && (await isPortFree(port));
  try {
    for (const name of names) {
      const given = givenPort(name, environment);
      if (given !== null && !(await isUsable(given)))
        throw new Error(`port ${given} (${portVariableOf(name)}) is taken; choose another or end what listens there`);
      const before = kept[name];
      if (given !== null) ports[name] = given;
      else if (before !== undefined && (await isUsable(before))) ports[name] = chosen[name] = before;
      else {
        let port = first + 1;
        // A port that is remembered for another name is kept for that name.
        while ((Object.values(kept).includes(port) || !(await isUsable(port))) && port < first + BLOCK_PORTS) port++;
        if (port === first + BLOCK_PORTS) throw new Error(`no free port for ${name} from ${first} to ${port - 1}`);
        ports[name] = chosen[name] = port;
        if (before !== undefined) moves.push(`port ${before} is taken, ${name} is on ${port} now`);
      }
    }
  } catch (error) {
    guard.close();
    throw error;
  }
  writePrivateFile(path, `${JSON.stringify({ block: first, ports: { ...kept, ...chosen } }, null, 2)}\n`);
  return { ports, moves, guard };
}
