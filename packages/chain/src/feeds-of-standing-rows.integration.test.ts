import { randomBytes, randomUUID } from 'node:crypto';
import { cpSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { applySql } from '@playline/infra/clickhouse';
import { testStores } from '@playline/testkit';
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
const DAY_US = 86_400_000_000;

/** The tables of the release that had no feeds. */
function copyFormerTables(): string {
  const folder = mkdtempSync(join(tmpdir(), 'former-tables-'));
  for (const name of readdirSync(TABLES).filter((each) => each < '0038'))
    cpSync(new URL(name, TABLES), join(folder, name));
  return folder;
}

/** Versions of some activities over two years, some of them several, in the order of the log. */
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

/** A database with the tables of the former release, and what the present one does with it. */
function openStores() {
  const { url, user, password } = testStores().clickhouse;
  const target = { url, user, password, database: `playline_test_${randomBytes(6).toString('hex')}` };
  const headers = { 'x-clickhouse-user': user, 'x-clickhouse-key': password, 'x-clickhouse-database': target.database };
  const [writer, reader, folder] = [openActivityStore(target), openChainStore(target), copyFormerTables()];
  const query = async (body: string) => {
    const answer = await fetch(url, { method: 'POST', headers, body });
    if (!answer.ok) throw new Error(await answer.text());
  };
  return {
    ...{ writer, reader, query },
    applyFormer: () => applySql({ ...target, folder: pathToFileURL(`${folder}/`) }),
    applyAll: () => applySql(target),
    close: async () => {
      await Promise.all([writer.close(), reader.close()]);
      await query(`DROP DATABASE ${target.database} SYNC`);
      rmSync(folder, { recursive: true });
    },
  };
}

/** As the writer of the former release stores a block. */
async function putAsBefore({ writer, query }: Stores, rows: readonly ActivityRow[]): Promise<void> {
  await writer.insert({ table: 'activities', rows, token: randomUUID(), signal: new AbortController().signal });
  const columns = 'chain, indexed_at, id, updated_at, contract, type';
  await query(`INSERT INTO activity_versions (${columns}) SELECT ${columns} FROM activities`);
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

it('what stood before there were feeds is served from them exactly as before, and what comes then supersedes it', async () => {
  const stores = openStores();
  try {
    await stores.applyFormer();
    const versions = makeVersions();
    await putAsBefore(stores, versions);
    // Written twice, as after a crash: copies stand in both tables until a merge.
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
