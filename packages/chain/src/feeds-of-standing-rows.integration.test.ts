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

it('what stood before there were feeds is served from them exactly as before, and what comes then supersedes it', async () => {
  const { url, user, password } = testStores().clickhouse;
  const target = { url, user, password, database: `playline_test_${randomBytes(6).toString('hex')}` };
  const folder = copyFormerTables();
  const writer = openActivityStore(target);
  const reader = openChainStore(target);
  const query = async (body: string) => {
    const headers = {
      'x-clickhouse-user': user,
      'x-clickhouse-key': password,
      'x-clickhouse-database': target.database,
    };
    const answer = await fetch(url, { method: 'POST', headers, body });
    if (!answer.ok) throw new Error(await answer.text());
  };
  try {
    await applySql({ ...target, folder: pathToFileURL(`${folder}/`) });
    const versions = makeVersions();
    // Written twice, as after a crash: copies stand in both tables until a merge.
    for (const rows of [versions, versions.slice(30, 60)]) {
      const block = { rows, token: randomUUID(), signal: new AbortController().signal };
      await writer.insert({ ...block, table: 'activities' });
      const columns = 'chain, indexed_at, id, updated_at, contract, type';
      await query(`INSERT INTO activity_versions (${columns}) SELECT ${columns} FROM activities`);
    }

    await applySql(target);
    const expectSame = async (all: readonly ActivityRow[]) => {
      for (const filters of [
        NO_FILTERS,
        { ...NO_FILTERS, contractAddress: addressOf(1) },
        { ...NO_FILTERS, type: versions[0]!.type },
        { ...NO_FILTERS, type: versions[0]!.type, contractAddress: versions[0]!.contractAddress },
      ])
        for (const horizon of [60, 110, 119, 500].map((days) => NOON_US - (400 - days) * DAY_US)) {
          const question: PageQuestion = {
            chain: CHAIN,
            filters,
            gap: START_GAP,
            direction: 'next',
            limit: 200,
            horizon,
          };
          expect((await reader.readPage(question)).rows).toEqual(naivePage(all, question).map(toShownActivity));
        }
    };
    await expectSame(versions);
    const later = versions
      .slice(0, 10)
      .map((row, index) => ({ ...row, offset: 200 + index, updatedAt: NOON_US + index }));
    await putActivities(writer, later);
    await expectSame([...versions, ...later]);
  } finally {
    await Promise.all([writer.close(), reader.close()]);
    await query(`DROP DATABASE ${target.database} SYNC`);
    rmSync(folder, { recursive: true });
  }
});
