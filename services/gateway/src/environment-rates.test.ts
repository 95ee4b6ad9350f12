import type { MessageRate, ProjectEnvironment, ProjectRecord } from '@playline/access-keys';
import { expect, it } from 'vitest';
import { createEnvironmentRates } from './environment-rates.ts';

const SETTING: MessageRate = { perSecond: 50, burst: 100 };
const rate = (perSecond: number, burst: number): MessageRate => ({ perSecond, burst });

function projectWith(id: string, rates: Pick<ProjectEnvironment, 'cap' | 'limit'>): ProjectRecord {
  const environment: ProjectEnvironment = { id, name: id, kind: 'production', createdAt: 1, ...rates };
  return {
    id: `project-${id}`,
    revision: 1,
    name: id,
    state: 'live',
    environments: [environment],
    timeZone: 'UTC',
    safeProperties: [],
    alertWebhook: '',
    alertEmails: [],
    alertKeys: [],
    createdAt: 1,
    changedAt: 1,
    changedBy: 'ada',
    requestId: 'r',
  };
}

it.each([
  ['the setting if the project has no rate', null, null, SETTING],
  ['the cap if it is higher than the setting', rate(500, 1000), null, rate(500, 1000)],
  ['the cap if it is lower than the setting', rate(5, 10), null, rate(5, 10)],
  ['the project’s limit if it is lower than the setting', null, rate(5, 10), rate(5, 10)],
  ['the setting if the project’s limit is higher', null, rate(500, 1000), SETTING],
  ['the project’s limit if it is lower than the cap', rate(500, 1000), rate(400, 2000), rate(400, 1000)],
])('the rate of an environment is %s', (_what, cap, limit, expected) => {
  const ratesOf = createEnvironmentRates({ records: [projectWith('e', { cap, limit })] });
  expect(ratesOf('e', SETTING)).toEqual(expected);
  expect(ratesOf('other', SETTING)).toBe(SETTING);
});

it('the rate of an environment is the same object until the projects change', () => {
  const copy = { records: [projectWith('e', { cap: rate(5, 10), limit: null })] };
  const ratesOf = createEnvironmentRates(copy);
  expect(ratesOf('e', SETTING)).toBe(ratesOf('e', SETTING));
  copy.records = [projectWith('e', { cap: rate(6, 10), limit: null })];
  expect(ratesOf('e', SETTING)).toEqual(rate(6, 10));
  copy.records = [];
  expect(ratesOf('e', SETTING)).toBe(SETTING);
});
