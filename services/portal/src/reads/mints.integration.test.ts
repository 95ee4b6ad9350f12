import { randomBytes, randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type OwnReads, openOwnReads, toSqlTime } from '../test/own-reads.ts';
import type { MintSearch, PortalReads } from './index.ts';

const NOW_MS = Date.parse('2026-11-20T10:00:00Z');

let own: OwnReads;
let reads: PortalReads;
beforeAll(async () => {
  own = await openOwnReads();
  ({ reads } = own);
});
afterAll(() => own?.close());

describe('what mints tell', () => {
  const bytesOf = (letter: string) => letter.repeat(20);
  const addressOf = (letter: string) => `0x${Buffer.from(bytesOf(letter)).toString('hex')}`;
  let made = 0;
  const mintOf = (environment: string, ageMs: number, over: object = {}) => {
    made++;
    return {
      environment_id: environment,
      chain: 'main',
      contract: bytesOf('c'),
      signer: bytesOf('s'),
      owner: bytesOf('o'),
      attempt_id: String(made).padStart(16, 'a'),
      reference_id: `r-${made}`,
      revision: 1,
      requested_at: toSqlTime(NOW_MS - ageMs),
      changed_at: toSqlTime(NOW_MS - ageMs + 500),
      status: 'succeeded',
      stage: 'settled',
      ...over,
    };
  };
  const waits = { status: 'pending', stage: 'waiting' };
  const signersOf = (environmentId: string, sinceMs = NOW_MS - 86_400_000) =>
    reads.mintSigners({ environmentId, sinceMs });

  it('of a signer is when it last could mint, by each stage that shows it, and by no other', async () => {
    for (const [over, heldMs] of [
      [{ status: 'succeeded' }, NOW_MS - 8_500],
      [{ status: 'pending', stage: 'logged' }, NOW_MS - 8_500],
      [{ status: 'pending', stage: 'mined' }, NOW_MS - 8_500],
      [{ status: 'failed' }, null],
      [{ status: 'pending', stage: 'accepted' }, null],
      [waits, null],
    ] as const) {
      const environment = `e-${randomUUID()}`;
      await own.insert('mint_requests', [mintOf(environment, 9_000, over)]);
      expect([over, await signersOf(environment)]).toMatchObject([over, [{ heldMs }]]);
    }
  });

  it('of a signer is how many assets wait, since when the first and why the last, as they stand now', async () => {
    const environment = `e-${randomUUID()}`;
    const done = mintOf(environment, 20_000, { ...waits, reason: 'waited once' });
    await own.insert('mint_requests', [
      ...[done, mintOf(environment, 3_000, { ...waits, reason: 'no role' })],
      ...[
        mintOf(environment, 2_000, { ...waits, reason: 'no funds' }),
        mintOf(environment, 1_000, { stage: 'logged' }),
      ],
    ]);
    // A part of its own: until a merge both revisions stand.
    await own.insert('mint_requests', [{ ...done, revision: 2, status: 'failed', stage: 'settled' }]);
    const signer = { chain: 'main', contractAddress: addressOf('c'), signerAddress: addressOf('s') };
    const waiting = { waiting: 2, waitsMs: NOW_MS - 2_500, why: 'no funds' };
    expect(await signersOf(environment)).toEqual([{ ...signer, ...waiting, heldMs: NOW_MS - 500 }]);
  });

  it('of each collection and signer of an environment stands by itself, and none before the span', async () => {
    const environment = `e-${randomUUID()}`;
    await own.insert('mint_requests', [
      ...[mintOf(environment, 9_000), mintOf(environment, 8_000, { signer: bytesOf('t') })],
      ...[mintOf(environment, 7_000, { contract: bytesOf('d') }), mintOf(environment, 6_000, { chain: 'second' })],
      mintOf(`${environment}-2`, 5_000, { contract: bytesOf('x') }),
    ]);
    const found = async (sinceMs?: number) =>
      (await signersOf(environment, sinceMs)).map((each) => [each.chain, each.contractAddress, each.signerAddress]);
    expect(await found()).toEqual([
      ...[
        ['main', addressOf('c'), addressOf('t')],
        ['main', addressOf('c'), addressOf('s')],
      ],
      ...[
        ['main', addressOf('d'), addressOf('s')],
        ['second', addressOf('c'), addressOf('s')],
      ],
    ]);
    expect(await found(NOW_MS - 8_000)).toHaveLength(3);
    expect(await found(NOW_MS - 7_999)).toHaveLength(2);
    expect(await found(NOW_MS)).toEqual([]);
  });

  it('is given page by page, each mint once, also where one reference id stands in several collections', async () => {
    const environment = `e-${randomUUID()}`;
    await own.insert('mint_requests', [
      ...[9_000, 8_000, 8_000, 1_000].map((ageMs) => mintOf(environment, ageMs)),
      ...['d', 'e'].map((letter) => mintOf(environment, 8_000, { reference_id: 'twice', contract: bytesOf(letter) })),
    ]);
    const found: string[] = [];
    for (let before: MintSearch['before'], pages = 0; pages < 20; pages++) {
      const asked = { environmentId: environment, sinceMs: NOW_MS - 86_400_000, status: '' as const, mintsMax: 1 };
      const [mint] = await reads.mints({ ...asked, ...(before && { before }) });
      if (mint === undefined) break;
      found.push(`${mint.referenceId} ${mint.contractAddress}`);
      before = mint;
    }
    expect([found.length, new Set(found).size]).toEqual([6, 6]);
  });
});

it('the names of tokens are those of the last record, of the contracts that were asked for alone', async () => {
  const contractOf = () => ({ chain: 'main', contractAddress: `0x${randomBytes(20).toString('hex')}` });
  const [contract, another] = [contractOf(), contractOf()];
  const rowOf = ({ contractAddress }: typeof contract, ms: number, over: object) => {
    const bytes = contractAddress.slice(2);
    return `('main', unhex('${bytes}'), '${toSqlTime(NOW_MS + ms)}', ${Object.values(over).join(', ')})`;
  };
  // An insert each: the engine leaves out what one insert has twice, and the view must leave out what two have.
  for (const row of [
    rowOf(contract, 0, { name: "'Old'", symbol: "'OLD'", decimals: 2 }),
    rowOf(contract, 1, { name: "'Gold'", symbol: 'NULL', decimals: 18 }),
    rowOf(another, 0, { name: "'Other'", symbol: "'O'", decimals: 'NULL' }),
  ])
    await own.send(`INSERT INTO tokens (chain, contract, updated_at, name, symbol, decimals) VALUES ${row}`);
  expect(await reads.tokens([contract])).toEqual([{ ...contract, name: 'Gold', symbol: '', decimals: 18 }]);
  expect(await reads.tokens([contract, another, contractOf()])).toHaveLength(2);
  expect(await reads.tokens([{ chain: 'main', contractAddress: '*' }])).toEqual([]);
  expect(await reads.tokens([])).toEqual([]);
});
