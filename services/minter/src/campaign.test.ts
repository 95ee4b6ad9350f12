import { runsOf } from '@playline/testkit/runs';
import { expect, it } from 'vitest';
import { type CampaignReport, runCampaign } from './test/campaign.ts';

const FIRST_SEED = Number(process.env.FAULT_SEED ?? 1);
const SEEDS = runsOf({ quick: 5, all: 8 });

it('minters settle each reference id exactly once despite kills, duplicates, outages and replaced blocks', async () => {
  const reports: CampaignReport[] = [];
  for (let seed = FIRST_SEED; seed < FIRST_SEED + SEEDS; seed++) reports.push(await runCampaign(seed));
  const sum = (of: (report: CampaignReport) => number) => reports.reduce((total, report) => total + of(report), 0);
  expect(sum(({ tokens }) => tokens)).toBe(sum(({ succeeded }) => succeeded));
  expect(sum(({ succeeded }) => succeeded)).toBeGreaterThan(100);
  // The campaigns are only meaningful if every type of fault occurred.
  expect(sum(({ variants, nonces }) => variants - nonces)).toBeGreaterThan(0);
  const injected = new Set(reports.flatMap((report) => [...report.injected.keys()]));
  for (const fault of [
    'reorg',
    'takeover',
    'commit unknown',
    'nonce used by another sender',
    'killed after send',
    'killed before logging signed bytes',
  ])
    expect([...injected]).toContain(fault);
});
