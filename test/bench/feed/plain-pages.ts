import { START_GAP } from '@playline/chain';
import type { Engine } from '../clickhouse.ts';
import { mediansOf } from '../quantile.ts';
import type { ReadCase } from './cases.ts';
import { BUSY, type Feed } from './fill.ts';

const TIMES = 3;
const PAGE_SIZE = 100;

interface PlainPage {
  readonly ms: number;
  readonly readRows: number;
}

export interface PlainPages {
  readonly tuple: PlainPage;
  readonly offset: PlainPage;
}

/** The same pages by a comparison of tuples and by OFFSET, which ignore later versions and rows written twice. */
export async function measurePlainPages(engine: Engine, feed: Feed, { filters }: ReadCase): Promise<PlainPages> {
  const { fromIndexedAt, toIndexedAt, contractAddress, type } = filters;
  const time = (us: number) => `fromUnixTimestamp64Micro(${us}, 'UTC')`;
  const where = [
    `chain = '${BUSY}'`,
    ...(contractAddress === null ? [] : [`contract = toFixedString(unhex('${contractAddress.slice(2)}'), 20)`]),
    ...(type === null ? [] : [`type = '${type}'`]),
    ...(fromIndexedAt === null ? [] : [`indexed_at >= ${time(fromIndexedAt)}`]),
    ...(toIndexedAt === null ? [] : [`indexed_at <= ${time(toIndexedAt)}`]),
  ].join(' AND ');
  const middle = Math.floor((feed.startUs + feed.endUs) / 2);
  const select = 'SELECT * FROM activities WHERE';
  const order = `ORDER BY updated_at, id LIMIT ${PAGE_SIZE}`;
  const before = await engine.query(`SELECT count() FROM activities WHERE ${where} AND updated_at < ${time(middle)}`);
  return {
    tuple: await measure(
      engine,
      `${select} ${where} AND (updated_at, id) > (${time(middle)}, '${START_GAP.id}') ${order}`,
    ),
    offset: await measure(engine, `${select} ${where} ${order} OFFSET ${before}`),
  };
}

async function measure(engine: Engine, sql: string): Promise<PlainPage> {
  const taken: PlainPage[] = [];
  for (let time = 0; time < TIMES; time++) taken.push(await engine.measure(`${sql} FORMAT JSONEachRow`));
  return mediansOf(taken.map(({ ms, readRows }) => ({ ms, readRows })));
}
