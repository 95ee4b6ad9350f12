import { runsOf } from '@playline/testkit/runs';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { type ActiveAlert, type AlertChange, advance, type Finding, type Findings } from './active-alerts.ts';
import { PROJECT_RULES } from './project-rules.ts';

const RULE = PROJECT_RULES[0].name;
const scope = { projectId: 'demo', environmentId: 'demo-production' };
const found: Finding = { rule: RULE, ...scope, value: 1, text: 'It is true.' };

/** What an evaluation finds: the condition is true, false, undecided, or could not be evaluated. */
type Reading = boolean | 'undecided' | null;

function toFindings(reading: Reading) {
  if (reading === null) return null;
  if (reading === 'undecided') return [{ rule: RULE, environmentId: scope.environmentId, isUndecided: true as const }];
  return reading ? [found] : [];
}

function play(readings: readonly Reading[]) {
  let active: readonly ActiveAlert[] = [];
  const changes: (AlertChange & { readonly at: number })[] = [];
  for (const [at, reading] of readings.entries()) {
    const findings: Findings = new Map([[RULE, toFindings(reading)]]);
    const step = advance(active, findings, at);
    const known = active.filter(({ environmentId, rule }) => !step.removed.includes(`${environmentId} ${rule}`));
    active = step.changed.length > 0 ? step.changed : known;
    for (const change of step.changes) changes.push({ ...change, at });
  }
  return { active, changes };
}

const statesOf = (readings: readonly Reading[]) => play(readings).changes.map(({ state, at }) => [at, state]);

it.each<[string, Reading[], [number, string][]]>([
  [
    'fires after two evaluations and clears after two',
    [true, true, false, false],
    [
      [1, 'fired'],
      [3, 'cleared'],
    ],
  ],
  ['does not fire after one evaluation', [true, false, true, false, true], []],
  ['does not clear after one evaluation', [true, true, false, true, false, true], [[1, 'fired']]],
  [
    'does not change while its rule cannot be evaluated',
    [true, null, true, null, false, null, false],
    [
      [2, 'fired'],
      [6, 'cleared'],
    ],
  ],
])('an alert %s', (_, readings, expected) => {
  expect(statesOf(readings)).toEqual(expected);
});

it('an alert changes exactly when two consecutive evaluations contradict its state, whatever the readings are', () => {
  fc.assert(
    fc.property(fc.array(fc.constantFrom<Reading>(true, false, 'undecided', null), { maxLength: 60 }), (readings) => {
      // The model: the last two readings that exist, compared with the state.
      const expected: [number, string][] = [];
      let [isFiring, previous] = [false, false];
      for (const [at, reading] of readings.entries()) {
        if (reading === null || reading === 'undecided') continue;
        const changes = reading !== isFiring && previous !== isFiring;
        if (changes) expected.push([at, reading ? 'fired' : 'cleared']);
        if (changes) isFiring = reading;
        previous = reading;
      }
      expect(statesOf(readings)).toEqual(expected);
    }),
    { numRuns: runsOf({ quick: 300, all: 5_000 }) },
  );
});

it('the changes of an alert alternate, have different ids, and a cleared alert has the time at which it fired', () => {
  const { changes } = play([true, true, true, false, false, true, true]);
  expect(changes.map(({ state, firedAt }) => [state, firedAt])).toEqual([
    ['fired', 1],
    ['cleared', 1],
    ['fired', 6],
  ]);
  expect(new Set(changes.map(({ id }) => id)).size).toBe(3);
});

it('the alerts of a rule that no longer exists clear', () => {
  const alert = { ...found, firedAt: 1, contrary: 1 };
  expect(advance([alert], new Map(), 5)).toMatchObject({ changed: [], changes: [{ state: 'cleared', firedAt: 1 }] });
});
