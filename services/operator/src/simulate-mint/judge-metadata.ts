import { setTimeout as delay } from 'node:timers/promises';
import { describeDifferences } from '../simulate-chain/compare.ts';
import { keyOfMetadata, type Refreshes } from './refreshes.ts';
import type { MintStage } from './stage.ts';

const POLL_MS = 1_000;

/** Compares stored metadata with what was last sent, once it is written. @returns the number of subjects checked */
export async function judgeMetadata(stage: MintStage, { given }: Refreshes): Promise<number> {
  const { options, differences } = stage;
  const known = [...given].filter(([, metadata]) => metadata !== null);
  if (known.length === 0) return 0;
  const endAt = performance.now() + options.settleIdleMaxMs;
  for (;;) {
    const wrong = await findWrong(stage, known);
    if (wrong.length === 0 || performance.now() > endAt) {
      for (const text of wrong) differences.add('metadata', text);
      return known.length;
    }
    await delay(POLL_MS);
  }
}

async function findWrong({ rows, options }: MintStage, known: [string, unknown][]): Promise<readonly string[]> {
  const stored = await rows.metadata([options.contracts.erc721, options.contracts.erc1155]);
  const byKey = new Map(
    stored.map(({ contract, kind, subject, metadata }) => [keyOfMetadata(contract, kind, subject), metadata]),
  );
  return known.flatMap(([key, metadata]) => {
    const text = byKey.get(key);
    if (text === undefined) return [`${key} is not stored`];
    return describeDifferences(metadata, JSON.parse(text)).map((difference) => `${key} ${difference}`);
  });
}
