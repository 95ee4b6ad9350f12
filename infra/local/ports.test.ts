import { execFile } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, onTestFinished, test } from 'vitest';
import type { StackPaths } from './paths.ts';
import { claimPorts, FIRST_DRAWN_PORT, freePorts, isPortFree, portVariableOf } from './ports.ts';
import { testStackPaths } from './test/paths.ts';

const NAMES = ['kafka', 'redis', 'event-writer-admin'];

async function claim(paths: StackPaths, environment: Record<string, string> = {}) {
  const claimed = await claimPorts(NAMES, { paths, environment });
  onTestFinished(() => claimed.guard.close());
  return claimed;
}

async function occupy(port: number): Promise<void> {
  const server = createServer();
  await new Promise<void>((done) => server.listen(port, '127.0.0.1', done));
  onTestFinished(() => void server.close());
}

test('a stack keeps its ports across restarts if the ports are free', async () => {
  const paths = testStackPaths();
  const first = await claim(paths);
  first.guard.close();
  const { ports, changes } = await claim(paths);
  expect(ports).toEqual(first.ports);
  expect([first.changes, changes]).toEqual([[], []]);
});

test('a port that is in use at a restart is replaced, and all other ports are kept', async () => {
  const paths = testStackPaths();
  const first = await claim(paths);
  first.guard.close();
  await occupy(first.ports.redis ?? 0);
  const second = await claim(paths);
  expect(second.changes).toEqual([`port ${first.ports.redis} is in use; redis now uses ${second.ports.redis}`]);
  expect(second.ports).toMatchObject({
    kafka: first.ports.kafka,
    'event-writer-admin': first.ports['event-writer-admin'],
  });
  expect(Object.values(first.ports)).not.toContain(second.ports.redis);
});

test('a stack whose block of ports is in use switches to another block and reports the change', async () => {
  const paths = testStackPaths();
  const [one, two] = [await claim(paths), await claim(paths)];
  expect(new Set([...Object.values(one.ports), ...Object.values(two.ports)]).size).toBe(2 * NAMES.length);
  const block = Math.min(...Object.values(one.ports)) - 1;
  expect(two.changes).toEqual([expect.stringContaining(`another stack uses the ports from ${block};`)]);
});

test('an unreadable ports file is renamed and reported', async () => {
  const paths = testStackPaths();
  writeFileSync(join(paths.state, 'ports.json'), '{ half');
  const { ports, changes } = await claim(paths);
  expect(Object.keys(ports)).toEqual(NAMES);
  expect(changes).toEqual(['ports.json was unreadable and was renamed to ports.json.unreadable']);
});

test('a port from the environment is used, and refused with the name of its variable if it is in use or invalid', async () => {
  const [port = 0] = await freePorts(1);
  const environment = { [portVariableOf('event-writer-admin')]: String(port) };
  expect((await claim(testStackPaths(), environment)).ports['event-writer-admin']).toBe(port);
  await occupy(port);
  await expect(claim(testStackPaths(), environment)).rejects.toThrow('PLAYLINE_EVENT_WRITER_ADMIN_PORT');
  await expect(claim(testStackPaths(), { PLAYLINE_KAFKA_PORT: '99999' })).rejects.toThrow('PLAYLINE_KAFKA_PORT');
});

test("freePorts returns free ports below the stacks' blocks and the ephemeral range", async () => {
  for (const port of await freePorts(4)) {
    expect(port).toBeLessThan(20_000);
    expect(await isPortFree(port)).toBe(true);
  }
});

test('freePorts never returns a port that fetch blocks', async () => {
  const refusal = (port: number) => fetch(`http://127.0.0.1:${port}`).catch(({ cause }) => cause.message);
  expect(await refusal(10_080)).toBe('bad port');
  expect(FIRST_DRAWN_PORT).toBeGreaterThan(10_080);
});

test('freePorts never returns the same port to concurrent processes', async () => {
  const script = `const { freePorts } = await import(${JSON.stringify(new URL('ports.ts', import.meta.url).href)});
    for (let at = 0; at < 20; at++) console.log((await freePorts(5)).join(' '));`;
  const draw = () => promisify(execFile)(process.execPath, ['--input-type=module', '-e', script]);
  const drawn = await Promise.all([draw(), draw(), draw()]);
  const ports = drawn.flatMap(({ stdout }) => stdout.trim().split(/\s+/));
  expect([ports.length, new Set(ports).size]).toEqual([300, 300]);
});
