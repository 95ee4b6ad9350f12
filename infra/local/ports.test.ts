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

async function claim(places: StackPaths, environment: Record<string, string> = {}) {
  const claimed = await claimPorts(NAMES, { places, environment });
  onTestFinished(() => claimed.guard.close());
  return claimed;
}

async function occupy(port: number): Promise<void> {
  const server = createServer();
  await new Promise<void>((done) => server.listen(port, '127.0.0.1', done));
  onTestFinished(() => void server.close());
}

test('ports stay the same over restarts while they are free', async () => {
  const places = testStackPaths();
  const first = await claim(places);
  first.guard.close();
  const { ports, moves } = await claim(places);
  expect(ports).toEqual(first.ports);
  expect([first.moves, moves]).toEqual([[], []]);
});

test('a port that another process has taken meanwhile is replaced, and the others stay', async () => {
  const places = testStackPaths();
  const first = await claim(places);
  first.guard.close();
  await occupy(first.ports.redis ?? 0);
  const second = await claim(places);
  expect(second.moves).toEqual([`port ${first.ports.redis} is taken, redis is on ${second.ports.redis} now`]);
  expect(second.ports).toMatchObject({
    kafka: first.ports.kafka,
    'event-writer-admin': first.ports['event-writer-admin'],
  });
  expect(Object.values(first.ports)).not.toContain(second.ports.redis);
});

test('a stack takes another block when another stack has its block of ports', async () => {
  const places = testStackPaths();
  const [one, two] = [await claim(places), await claim(places)];
  expect(new Set([...Object.values(one.ports), ...Object.values(two.ports)]).size).toBe(2 * NAMES.length);
});

test('a record of ports that cannot be read is set aside, and this is reported', async () => {
  const places = testStackPaths();
  writeFileSync(join(places.state, 'ports.json'), '{ half');
  const { ports, moves } = await claim(places);
  expect(Object.keys(ports)).toEqual(NAMES);
  expect(moves).toEqual(['ports.json could not be read and was set aside as ports.json.unreadable']);
});

test('a stack whose whole block is taken reports it in one line', async () => {
  const places = testStackPaths();
  const first = await claim(places);
  first.guard.close();
  const block = Math.min(...Object.values(first.ports)) - 1;
  await occupy(block);
  const { moves } = await claim(places);
  expect(moves).toEqual([expect.stringContaining(`another stack has the ports from ${block} on`)]);
});

test("a port from the environment is used, and rejected with its variable's name when it is taken or invalid", async () => {
  const [port = 0] = await freePorts(1);
  const given = { [portVariableOf('event-writer-admin')]: String(port) };
  expect((await claim(testStackPaths(), given)).ports['event-writer-admin']).toBe(port);
  await occupy(port);
  await expect(claim(testStackPaths(), given)).rejects.toThrow('PLAYLINE_EVENT_WRITER_ADMIN_PORT');
  await expect(claim(testStackPaths(), { PLAYLINE_KAFKA_PORT: '99999' })).rejects.toThrow('PLAYLINE_KAFKA_PORT');
});

test('free ports are different and free', async () => {
  const ports = await freePorts(4);
  expect(new Set(ports).size).toBe(4);
  for (const port of ports) expect(await isPortFree(port)).toBe(true);
});

test('free ports are outside of the blocks of stacks and of the ports for outgoing connections', async () => {
  for (const port of await freePorts(20)) expect(port).toBeLessThan(20_000);
});

test('no free port is one that fetch refuses to connect to', async () => {
  const refusal = (port: number) => fetch(`http://127.0.0.1:${port}`).catch(({ cause }) => cause.message);
  expect(await refusal(10_080)).toBe('bad port');
  expect(FIRST_DRAWN_PORT).toBeGreaterThan(10_080);
});

test('two processes that draw ports at the same time never get the same one', async () => {
  const script = `const { freePorts } = await import(${JSON.stringify(new URL('ports.ts', import.meta.url).href)});
    for (let at = 0; at < 40; at++) console.log((await freePorts(5)).join(' '));`;
  const draw = () => promisify(execFile)(process.execPath, ['--input-type=module', '-e', script]);
  const drawn = await Promise.all([draw(), draw(), draw()]);
  const ports = drawn.flatMap(({ stdout }) => stdout.trim().split(/\s+/));
  expect([ports.length, new Set(ports).size]).toEqual([600, 600]);
});
