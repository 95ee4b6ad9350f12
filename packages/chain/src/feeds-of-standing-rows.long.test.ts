import { randomBytes, randomUUID } from 'node:crypto';
import { cpSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { applySql } from '@playline/infra/clickhouse';
import { testStores, until } from '@playline/testkit';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { openActivityStore, openChainStore } from './clickhouse/index.ts';
import { NO_FILTERS } from './filters.ts';
import { putActivities } from './memory/index.ts';
import { START_GAP } from './position.ts';
import type { ActivityRow } from './rows.ts';
import type { PageQuestion } from './store.ts';
import { naivePage } from './test/naive-feed.ts';
import { addressOf, arbitraryActivity, NOON_US } from './test/rows.ts';
import { toShownActivity } from './wire.ts';

const TABLES = new URL('../../../infra/clickhouse/tables/', import.meta.url);
const CHAIN = 'old';
/** After so many bytes of a body ClickHouse has begun the insert. It reports only since when. */
const LONG_BYTES = 1_200_000;
const BEGUN =
  "SELECT count() FROM system.processes WHERE current_database = currentDatabase() AND query LIKE 'INSERT%' AND elapsed > 1";
const WAITING =
  "SELECT count() FROM system.processes WHERE current_database = currentDatabase() AND query LIKE '%DETACH TABLE%SYNC%' AND elapsed > 1 AND query NOT LIKE '%system.processes%'";
const FORMER_INSERT =
  "INSERT INTO activity_versions (id, updated_at, chain, contract, type, indexed_at) SELECT id, fromUnixTimestamp64Micro(updated_at, 'UTC'), " +
  "chain, unhex(contract), type, fromUnixTimestamp64Micro(indexed_at, 'UTC') FROM " +
  "input('id UUID, updated_at Int64, chain String, contract String, type String, indexed_at Int64') FORMAT JSONEachRow";
const lineOf = ({ id, updatedAt, chain, contractAddress, type, indexedAt }: ActivityRow) =>
  JSON.stringify({ id, updated_at: updatedAt, chain, contract: contractAddress.slice(2), type, indexed_at: indexedAt });
const DAY_US = 86_400_000_000;

/** The tables of the release before there were feeds. */
function copyFormerTables(): string {
  const folder = mkdtempSync(join(tmpdir(), 'former-tables-'));
  for (const name of readdirSync(TABLES).filter((each) => each < '0038'))
    cpSync(new URL(name, TABLES), join(folder, name));
  return folder;
}

/** Versions of activities over two years, several of some of them, in the order of the log. */
function makeVersions(): ActivityRow[] {
  const made = fc.sample(
    fc.uniqueArray(arbitraryActivity, { minLength: 40, maxLength: 40, selector: ({ id }) => id }),
    {
      ...{ numRuns: 1, seed: 39 },
    },
  )[0]!;
  const constants = made.map((row, index) => ({
    ...row,
    chain: CHAIN,
    contractAddress: addressOf(index % 3),
    partition: 2,
  }));
  return Array.from({ length: 120 }, (_, index) => ({
    ...constants[index < 40 ? index : (index * 7) % 23]!,
    ...{ offset: index, updatedAt: NOON_US - (400 - index) * DAY_US },
  }));
}

type Stores = ReturnType<typeof openStores>;

/** A database with the tables of the former release, and the steps of this release's deployment. */
function openStores() {
  const { url, user, password } = testStores().clickhouse;
  const target = { url, user, password, database: `playline_test_${randomBytes(6).toString('hex')}` };
  const headers = { 'x-clickhouse-user': user, 'x-clickhouse-key': password, 'x-clickhouse-database': target.database };
  const [writer, reader, folder] = [openActivityStore(target), openChainStore(target), copyFormerTables()];
  const ask = async (body: string) => {
    const answer = await fetch(url, { method: 'POST', headers, body });
    const text = (await answer.text()).trim();
    if (!answer.ok) throw new Error(text);
    return text;
  };
  return {
    ...{ writer, reader, ask },
    /** An insert of the former writer. It begins with many copies of this line and ends when the test says so. */
    beginInsert: (line: string) => {
      let end = (_last: string) => {};
      const body = new ReadableStream({
        start: (controller) => {
          controller.enqueue(Buffer.from(`${line}\n`.repeat(Math.ceil(LONG_BYTES / line.length))));
          end = (last) => {
            controller.enqueue(Buffer.from(last));
            controller.close();
          };
        },
      });
      const path = `${url}/?${new URLSearchParams({ query: FORMER_INSERT, async_insert: '0' })}`;
      return { end, answer: fetch(path, { method: 'POST', headers, body, duplex: 'half' } as RequestInit) };
    },
    applyFormer: () => applySql({ ...target, folder: pathToFileURL(`${folder}/`) }),
    applyAll: () => applySql(target),
    close: async () => {
      await Promise.all([writer.close(), reader.close()]);
      await ask(`DROP DATABASE ${target.database} SYNC`);
      rmSync(folder, { recursive: true });
    },
  };
}

/** Stores a block as the former release did. */
async function putAsBefore({ writer, ask }: Stores, rows: readonly ActivityRow[]): Promise<void> {
  await writer.insert({ table: 'activities', rows, token: randomUUID(), signal: new AbortController().signal });
  const columns = 'chain, indexed_at, id, updated_at, contract, type';
  await ask(`INSERT INTO activity_versions (${columns}) SELECT ${columns} FROM activities`);
}

async function expectServed({ reader }: Stores, versions: readonly ActivityRow[]): Promise<void> {
  const { type, contractAddress } = versions[0]!;
  const filters = [{}, { contractAddress: addressOf(1) }, { type }, { type, contractAddress }];
  const horizons = [60, 110, 119, 500].map((days) => NOON_US - (400 - days) * DAY_US);
  for (const horizon of horizons)
    for (const each of filters) {
      const question: PageQuestion = {
        ...{
          chain: CHAIN,
          filters: { ...NO_FILTERS, ...each },
          gap: START_GAP,
          direction: 'next',
          limit: 200,
          horizon,
        },
      };
      expect((await reader.readPage(question)).rows).toEqual(naivePage(versions, question).map(toShownActivity));
    }
}

it('an insert of the writer before, which was on its way when its table was renamed, is waited for', async () => {
  const stores = openStores();
  try {
    await stores.applyFormer();
    const versions = makeVersions();
    const [update] = versions.slice(-1) as [ActivityRow];
    await putAsBefore(stores, versions.slice(0, -1));
    await stores.writer.insert({
      table: 'activities',
      rows: [update],
      token: randomUUID(),
      signal: new AbortController().signal,
    });
    const insert = stores.beginInsert(lineOf({ ...update, chain: 'filler' }));
    await until('the insert is on its way', async () => (await stores.ask(BEGUN)) === '1');
    const applied = stores.applyAll();
    await until('the deployment waits for it', async () => (await stores.ask(WAITING)) === '1');
    insert.end(lineOf(update));
    const answer = await insert.answer;
    expect([answer.status, await answer.text()]).toEqual([200, '']);
    await applied;
    await expectServed(stores, versions);
  } finally {
    await stores.close();
  }
});

it('what stood before there were feeds is served from them exactly as before, and what comes then supersedes it', async () => {
  const stores = openStores();
  try {
    await stores.applyFormer();
    const versions = makeVersions();
    await putAsBefore(stores, versions);
    // Written twice, as after a crash: both tables have copies until a merge.
    await putAsBefore(stores, versions.slice(30, 60));
    await stores.applyAll();
    await expectServed(stores, versions);
    const later = versions
      .slice(0, 10)
      .map((row, index) => ({ ...row, offset: 200 + index, updatedAt: NOON_US + index }));
    await putActivities(stores.writer, later);
    await expectServed(stores, [...versions, ...later]);
  } finally {
    await stores.close();
  }
});
