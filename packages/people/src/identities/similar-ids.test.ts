import fc from 'fast-check';
import { expect, it } from 'vitest';
import { listSimilarIds } from './similar-ids.ts';

it.each([
  ['pat@game.example', 'Pat@Game.Example'],
  ['PAT@GAME.EXAMPLE', 'pat@game.example'],
  ['ada', 'Ada'],
  ['ada', 'ADA'],
  ['ada', 'ada '],
  ['ada', ' ada'],
  ['e\u0301', '\u00e9'],
])('the ids that people confuse with %j include %j', (id, similar) => {
  expect(listSimilarIds(id)).toContain(similar);
});

it('the list of similar ids contains the id itself, no id twice, and at most nine ids', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'grapheme', minLength: 1 }), (id) => {
      const similar = listSimilarIds(id);
      expect([similar.includes(id), new Set(similar).size === similar.length]).toEqual([true, true]);
      expect(similar.length).toBeLessThanOrEqual(9);
    }),
  );
});
