import { randomBytes, randomUUID } from 'node:crypto';
import { buffer } from 'node:stream/consumers';
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import { openS3 } from './s3.ts';
import { openS3Server } from './test/s3-server.ts';
import { addBackup, EMPTY, FIRST, SECOND, THIRD, testStoreContract, toContent } from './test/store-contract.ts';

/** Includes the installation of the server. */
const START_MS = 300_000;
/** Larger than a part, and not a multiple of the ranges that are read. */
const LARGE_BYTES = 80_000_001;

let server: Awaited<ReturnType<typeof openS3Server>>;
beforeAll(async () => {
  server = await openS3Server();
  useEnvironment(server.environment);
}, START_MS);
afterAll(async () => {
  vi.unstubAllEnvs();
  await server?.close();
});
afterEach(() => useEnvironment(server.environment));

/** The client reads credentials from the environment of the process. */
function useEnvironment(environment: Readonly<Record<string, string>>): void {
  for (const [name, value] of Object.entries(environment)) vi.stubEnv(name, value);
}

async function openFixture() {
  const prefix = randomUUID();
  const location = `${server.location}/${prefix}`;
  return {
    location,
    store: openS3(location, server.environment),
    listFiles: async () => (await server.listKeys(`${prefix}/files/`)).map((key) => key.slice(prefix.length + 7)),
    remove: (id: string) => server.deleteKey(`${prefix}/manifests/${id}.json`),
    damage: (id: string, content: string | null) => {
      const key = `${prefix}/files/${id}/events.all.native`;
      return content === null ? server.deleteKey(key) : server.putKey(key, content);
    },
    damageManifest: (id: string) => server.putKey(`${prefix}/manifests/${id}.json`, '{'),
  };
}

describe('a prefix of backups in S3', () => {
  testStoreContract(openFixture);

  it('receives only new files, and the first backup of a day deletes the files of deleted and killed ones', async () => {
    const { store, remove, listFiles } = await openFixture();
    await addBackup(store, FIRST, 'unchanged');
    const killed = await store.create(`${FIRST.slice(0, 9)}120000000Z`);
    await killed.write(killed.toFile('events.all.native'), toContent('half'));
    await addBackup(store, SECOND, await store.open(FIRST));
    expect(await listFiles()).toEqual([`${FIRST}/events.all.native`, killed.toFile('events.all.native')]);
    await remove(FIRST);
    await addBackup(store, THIRD, 'changed');
    expect(await listFiles()).toEqual([`${FIRST}/events.all.native`, `${THIRD}/events.all.native`]);
  });

  it('deletes no files while a manifest cannot be read, but if one was deleted since it was listed', async () => {
    const { store, remove, damageManifest, listFiles } = await openFixture();
    const killed = await store.create(FIRST);
    await killed.write(killed.toFile('events.all.native'), toContent('half'));
    await addBackup(store, SECOND, 'content');
    await damageManifest(SECOND);
    await store.create(THIRD);
    expect(await listFiles()).toHaveLength(2);
    await remove(SECOND);
    vi.spyOn(store, 'list').mockResolvedValueOnce([SECOND]);
    await store.create(THIRD);
    expect(await listFiles()).toEqual([`${SECOND}/events.all.native`]);
  });

  it('does not offer a backup of which another one has deleted a file', async () => {
    const { store, location } = await openFixture();
    const backup = await store.create(FIRST);
    const file = backup.toFile('events.all.native');
    await backup.write(file, toContent('content'));
    await server.deleteKey(`${location.slice(server.location.length + 1)}/files/${file}`);
    const files = [{ file, bytes: 7, sha256: '', partition: 'all', parts: '' }];
    const finishing = backup.finish({ ...EMPTY, tables: [{ name: 'events', columns: [], files }] });
    await expect(finishing).rejects.toThrow('run one backup at a time');
    expect(await store.list()).toEqual([]);
  });

  it('returns large files, which are sent in parts', async () => {
    const { store } = await openFixture();
    const content = randomBytes(LARGE_BYTES);
    const backup = await store.create(FIRST);
    const file = backup.toFile('events.all.native');
    await backup.write(file, toContent(content.subarray(0, 70_000_000), content.subarray(70_000_000)));
    const files = [{ file, bytes: LARGE_BYTES, sha256: '', partition: 'all', parts: '' }];
    await backup.finish({ ...EMPTY, tables: [{ name: 'events', columns: [], files }] });
    const stored = await store.open(FIRST);
    expect((await buffer(stored.read(files[0]!))).equals(content)).toBe(true);
  });

  it.each([
    ['a wrong secret', { AWS_SECRET_ACCESS_KEY: 'wrong-secret' }, '', /refused the access .*AWS_SECRET_ACCESS_KEY/],
    ['an unknown key', { AWS_ACCESS_KEY_ID: 'AKIAUNKNOWN000000000' }, '', /refused the access/],
    ['a missing bucket', {}, 's3://absent/prefix', /the bucket absent does not exist/],
    ['no server', { AWS_ENDPOINT_URL_S3: 'http://127.0.0.1:1' }, '', /S3 does not respond \(ECONNREFUSED\)/],
  ])('is not read with %s, and the error contains no secret', async (_, wrong, url, message) => {
    const environment = { ...server.environment, ...wrong };
    useEnvironment(environment);
    const fault: Error = await openS3(url || server.location, environment)
      .list()
      .then(
        () => new Error('no error'),
        (error: Error) => error,
      );
    expect(fault.message).toMatch(message);
    for (const secret of [environment.AWS_SECRET_ACCESS_KEY, server.environment.AWS_SECRET_ACCESS_KEY])
      expect(fault.message).not.toContain(secret);
  });
});
