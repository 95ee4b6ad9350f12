import { createGraphFact } from '@playline/people';
import { openMemoryPeople } from '@playline/people/memory';
import { expect, it } from 'vitest';
import { createParts, toFact } from '../test/linking.ts';
import { createApplyFacts } from './apply-facts.ts';

const SOURCE = { generation: 0, partition: 0 };
/** More facts than one chunk contains. */
const FACTS = 600;

it('no graph call is still running when apply fails to prepare facts', async () => {
  const { graph, rebuild } = openMemoryPeople();
  await rebuild.mintEpoch();
  let running = 0;
  const slowGraph: typeof graph = {
    ...graph,
    async apply(block, onResults) {
      running++;
      await new Promise((resolve) => setImmediate(resolve));
      running--;
      return graph.apply(block, onResults);
    },
  };
  const noDecisions = { ends: async () => ({}), open: async () => null };
  const toGraphFact = createGraphFact(createParts().rules);
  const { resume, apply } = createApplyFacts(slowGraph, noDecisions, (fact, offset) => {
    if (offset === FACTS - 1) throw new Error('no key');
    return toGraphFact(fact, offset);
  });
  await resume(SOURCE, { committed: 0, isOperatorDecision: false, signal: new AbortController().signal });
  const facts = Array.from({ length: FACTS }, (_, offset) => ({ offset, fact: toFact({}) }));
  await expect(apply(SOURCE, facts, { through: FACTS - 1, mark: null, onResults: () => {} })).rejects.toThrow('no key');
  expect(running).toBe(0);
});
