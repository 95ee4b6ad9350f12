import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { cpSync, readdirSync, rmSync, statSync, truncateSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { MESSAGES_PATH } from '../../simulate/game/sender.ts';
import { createPersons } from '../linker-persons.ts';
import { query, rowsOf } from '../world/clickhouse.ts';
import { settle } from '../world/end-check.ts';
import { metricsOf, sumOf } from '../world/metrics.ts';
import { operate } from '../world/operate.ts';
import { KEY_HEADER } from '../world/post.ts';
import type { Effects } from '../world/report.ts';
import type { ServiceProcess } from '../world/service-process.ts';
import type { Scenario, Trial } from '../world/trial.ts';
import { waitFor } from '../world/wait.ts';
import type { World } from '../world/world.ts';

const SECRET_HEADER = 'x-service-api-key';
const CONSENT_PATH = '/v1/audience/tracking-consent';
type Access = { readonly gateway: ServiceProcess; readonly secret: string };

const folderOf = (world: World) => join(world.stack.paths.state, 'data', 'redis', 'appendonlydir');

async function restore(world: World, replaceFiles: () => void): Promise<void> {
  const pid = await world.storePid('redis');
  process.kill(pid, 'SIGSTOP');
  replaceFiles();
  process.kill(pid, 'SIGKILL');
  await waitFor('Redis was restarted', () => (world.stack.file.processes.redis ?? pid) !== pid);
}

function watchFileSizes(world: World) {
  const sizes: { atMs: number; file: string; bytes: number }[] = [];
  const sample = () => {
    for (const name of readdirSync(folderOf(world)).filter((name) => name.endsWith('.incr.aof'))) {
      const file = join(folderOf(world), name);
      sizes.push({ atMs: performance.now(), file, bytes: statSync(file).size });
    }
  };
  const timer = setInterval(sample, 25);
  return {
    close: () => clearInterval(timer),
    /** Removes everything that was written in the last `lostMs` milliseconds. @returns the number of removed bytes */
    truncate(lostMs: number): number {
      sample();
      const { file, bytes } = sizes.at(-1)!;
      const written = sizes.find((size) => size.file === file && size.bytes === bytes)!;
      const before = sizes.findLast((size) => size.file === file && size.atMs <= written.atMs - lostMs);
      if (before === undefined) return 0;
      truncateSync(file, before.bytes);
      return bytes - before.bytes;
    },
  };
}

// Creates a person to erase. The messages are not in the ledger, because the erasure deletes them.
async function createPersonToErase({ world, key }: Trial, { gateway, secret }: Access) {
  const anonymousId = `erased-${randomUUID()}`;
  const call = (path: string, init: RequestInit = {}) => {
    const headers = { 'content-type': 'application/json', [KEY_HEADER]: key, ...init.headers };
    return fetch(gateway.url + path, { ...init, headers });
  };
  const common = () => ({ messageId: randomUUID(), surface: 'web', eventTimestamp: new Date().toISOString() });
  const user = { userId: anonymousId, identityType: 'passport' };
  const messages = [
    { ...common(), type: 'track', eventName: 'gone', anonymousId },
    { ...common(), type: 'identify', anonymousId, ...user },
    { ...common(), type: 'track', eventName: 'gone', ...user },
  ];
  const consent = JSON.stringify({ anonymousId, status: 'full', source: 'faults' });
  const body = JSON.stringify({ messages });
  await waitFor(
    'messages are accepted',
    async () => (await call(MESSAGES_PATH, { method: 'POST', body })).status === 200,
  );
  await waitFor('the consent is accepted', async () => (await call(CONSENT_PATH, { method: 'PUT', body: consent })).ok);
  /** @returns null if the response contains no consent */
  const readConsent = async (): Promise<string | null> => {
    const response = await call(`${CONSENT_PATH}?anonymousId=${anonymousId}`).catch(() => null);
    return response?.status === 200 ? ((await response.json()) as { status: string }).status : null;
  };
  return {
    readConsent,
    awaitConsent: () => waitFor('the response contains a consent', readConsent),
    async erase(): Promise<string> {
      const path = `/v1/audience/data?anonymousId=${anonymousId}`;
      const id = await waitFor('the erasure is accepted', async () => {
        const response = await call(path, { method: 'DELETE', headers: { [SECRET_HEADER]: secret } });
        return response.headers.get('x-erasure-id');
      });
      const receipts = `SELECT count() FROM erasure_receipts WHERE erasure_id = '${id}'`;
      const isStored = async () => (await rowsOf(world.deployment.engine, receipts))[0]?.[0] === '1';
      await waitFor('the receipt is stored', isStored);
      return id;
    },
  };
}

function restoreCopy({ world, random }: Trial) {
  const copy = join(world.folder, 'redis-copy');
  return {
    save() {
      rmSync(copy, { recursive: true, force: true });
      cpSync(folderOf(world), copy, { recursive: true });
    },
    async restore() {
      await delay(random.integer(0, 2_000));
      await restore(world, () => {
        rmSync(folderOf(world), { recursive: true });
        cpSync(copy, folderOf(world), { recursive: true });
      });
      return { 'copies restored': 1 };
    },
  };
}

function truncateFile({ world, random }: Trial, sizes: ReturnType<typeof watchFileSizes>) {
  return {
    save: () => {},
    async restore() {
      await delay(random.integer(0, 300));
      const lostMs = random.integer(500, 2_000);
      let bytes = 0;
      await restore(world, () => {
        bytes = sizes.truncate(lostMs);
      });
      return { 'bytes lost': bytes };
    },
  };
}

/** Erases a person, restores an older state of Redis, and asserts that the person's consent does not return. */
async function tryLoss(trial: Trial, access: Access, loss: { save(): void; restore(): Promise<Effects> }) {
  const erased = await createPersonToErase(trial, access);
  await settle(trial.world);
  assert.equal(await erased.awaitConsent(), 'full');
  // Redis writes its append-only file once per second.
  await delay(1_500);
  loss.save();
  const erasureId = await erased.erase();
  const effects = await loss.restore();
  const statuses = new Set([await erased.awaitConsent()]);
  // The gateway accepts 100 requests per second from one address.
  for (const endMs = performance.now() + 3_000; performance.now() < endMs; await delay(20))
    statuses.add((await erased.readConsent()) ?? 'not_set');
  assert.deepEqual([...statuses], ['not_set'], 'the erased person’s consent');
  return { erased, erasureId, effects };
}

export const redisRestoredFromCopy: Scenario = {
  fault: 20,
  title: 'erased people stay erased if Redis restarts from an older copy or loses its last two seconds of writes',
  tried:
    'Redis SIGKILL, restarted from an older copy of its files, then without the last 0.5 to 2 s of its append-only file',
  run: async (trial) => {
    const { world, key } = trial;
    // The trial stopped merges, but merges must run because they execute an erasure's deletes.
    await query(world.deployment.engine, 'SYSTEM START MERGES events');
    const groups = { LINKER_GROUP: world.groupOf('identity-linker'), WRITER_GROUP: world.groupOf('event-writer') };
    const [gateway, eraser] = await Promise.all([
      trial.start('gateway'),
      trial.start('eraser', { ...groups, BATCH_WINDOW_MS: '100' }),
    ]);
    const persons = createPersons(trial, () => ({ gateway, key }));
    await persons.identify('kept');
    const countFenceRestores = async () => sumOf(await metricsOf(eraser), 'playline_eraser_fence_restores_total', '');
    const access = { gateway, secret: await world.deployment.addEnvironment(trial.environmentId, 'secret') };
    const copyTrial = await tryLoss(trial, access, restoreCopy(trial));
    const before = await countFenceRestores();
    const sizes = watchFileSizes(world);
    try {
      const truncationTrial = await tryLoss(trial, access, truncateFile(trial, sizes));
      assert.equal(await copyTrial.erased.awaitConsent(), 'not_set', 'the consent of the person erased first');
      await persons.alias('kept');
      await persons.assertMerged(['kept'], 3);
      const settings = { REDIS_URL: world.stack.file.redis };
      for (const { erasureId } of [copyTrial, truncationTrial]) {
        const verified = await operate(world, ['erasures', 'verify', erasureId], { settings });
        assert.equal(verified.code, 0, verified.stdout + verified.stderr);
      }
      const restored = {
        'fences restored after the copy': before,
        'fences restored after the truncation': (await countFenceRestores()) - before,
      };
      return { ...copyTrial.effects, ...truncationTrial.effects, ...restored };
    } finally {
      sizes.close();
    }
  },
};
