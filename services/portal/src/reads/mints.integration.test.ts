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

describe('the reads of mints', () => {
  const bytesOf = (name: string) => name.repeat(20);
  const addressOf = (name: string) => `0x${Buffer.from(bytesOf(name)).toString('hex')}`;
  let created = 0;
  const mintOf = (environment: string, ageMs: number, over: object = {}) => {
    created++;
    return {
      environment_id: environment,
      chain: 'main',
      contract: bytesOf('c'),
      signer: bytesOf('s'),
      owner: bytesOf('o'),
      attempt_id: String(created).padStart(16, 'a'),
      reference_id: `r-${created}`,
      revision: 1,
      requested_at: toSqlTime(NOW_MS - ageMs),
      changed_at: toSqlTime(NOW_MS - ageMs + 500),
      status: 'succeeded',
      stage: 'settled',
      ...over,
    };
  };
  const waiting = { status: 'pending', stage: 'waiting' };
  const signersOf = (environmentId: string, sinceMs = NOW_MS - 86_400_000) =>
    reads.mintSigners({ environmentId, sinceMs });

  it('the role of a signer is confirmed by the stages that prove it, and by no other', async () => {
    for (const [over, heldMs] of [
      [{ status: 'succeeded' }, NOW_MS - 8_500],
      [{ status: 'pending', stage: 'logged' }, NOW_MS - 8_500],
      [{ status: 'pending', stage: 'mined' }, NOW_MS - 8_500],
      [{ status: 'failed' }, null],
      [{ status: 'pending', stage: 'accepted' }, null],
      [waiting, null],
    ] as const) {
      const environment = `e-${randomUUID()}`;
      await own.insert('mint_requests', [mintOf(environment, 9_000, over)]);
      expect([over, await signersOf(environment)]).toMatchObject([over, [{ heldMs }]]);
    }
  });

  it('a signer has the number of waiting assets, the time of the first and the reason of the last', async () => {
    const environment = `e-${randomUUID()}`;
    const done = mintOf(environment, 20_000, { ...waiting, reason: 'waited once' });
    await own.insert('mint_requests', [
      ...[done, mintOf(environment, 3_000, { ...waiting, reason: 'no role' })],
      ...[
        mintOf(environment, 2_000, { ...waiting, reason: 'no funds' }),
        mintOf(environment, 1_000, { stage: 'logged' }),
      ],
    ]);
    // In a part of its own: both revisions exist until a merge.
    await own.insert('mint_requests', [{ ...done, revision: 2, status: 'failed', stage: 'settled' }]);
    const signer = { chain: 'main', contractAddress: addressOf('c'), signerAddress: addressOf('s') };
    const state = { waiting: 2, waitsMs: NOW_MS - 2_500, why: 'no funds' };
    expect(await signersOf(environment)).toEqual([{ ...signer, ...state, heldMs: NOW_MS - 500 }]);
  });

  it('signers are listed by chain, collection and signer, without those before the span', async () => {
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

  it('the pages return each mint once, even when collections share a reference id', async () => {
    const environment = `e-${randomUUID()}`;
    await own.insert('mint_requests', [
      ...[9_000, 8_000, 8_000, 1_000].map((ageMs) => mintOf(environment, ageMs)),
      ...['d', 'e'].map((name) => mintOf(environment, 8_000, { reference_id: 'twice', contract: bytesOf(name) })),
    ]);
    const found: string[] = [];
    for (let before: MintSearch['before'], pages = 0; pages < 20; pages++) {
      const search = { environmentId: environment, sinceMs: NOW_MS - 86_400_000, status: '' as const, mintsMax: 1 };
      const [mint] = await reads.mints({ ...search, ...(before && { before }) });
      if (mint === undefined) break;
      found.push(`${mint.referenceId} ${mint.contractAddress}`);
      before = mint;
    }
    expect([found.length, new Set(found).size]).toEqual([6, 6]);
  });
});

it('the names of tokens are those of the last record, of the named contracts only', async () => {
  const contractOf = () => ({ chain: 'main', contractAddress: `0x${randomBytes(20).toString('hex')}` });
  const [contract, another] = [contractOf(), contractOf()];
  const rowOf = ({ contractAddress }: typeof contract, ms: number, over: object) => {
    const bytes = contractAddress.slice(2);
    return `('main', unhex('${bytes}'), '${toSqlTime(NOW_MS + ms)}', ${Object.values(over).join(', ')})`;
  };
  // One insert each: the engine deduplicates within an insert, and the view must deduplicate across inserts.
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
