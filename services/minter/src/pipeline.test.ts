import { expect, it } from 'vitest';
import { logChainId } from './pipeline.ts';
import type { ChainNode } from './ports.ts';
import { CHAIN } from './test/mint-requests.ts';

it("a node's change to a wrong chain id and its change back are logged once each", async () => {
  const lines: unknown[] = [];
  const push = (level: string) => (fields: unknown, text: unknown) => void lines.push([level, fields, text]);
  const logger = { warn: push('warn'), info: push('info') } as unknown as Parameters<typeof logChainId>[1]['logger'];
  const other = { id: 1 };
  const real = { chainId: async () => other.id } as ChainNode;
  const node = logChainId(real, { chain: CHAIN, chainId: 31_337, logger });
  for (const id of [31_337, 1, 1, 31_337, 31_337]) {
    other.id = id;
    expect(await node.chainId()).toBe(id);
  }
  const ids = { chain: CHAIN, wantedChainId: 31_337, reportedChainId: 1 };
  expect(lines).toEqual([
    ['warn', ids, 'node skipped: unexpected chain id'],
    ['info', { ...ids, reportedChainId: 31_337 }, 'node back in use: chain id is correct'],
  ]);
});
