import { describe, expect, it } from 'vitest';
import { ACTIONS, isAtMost, mayDo, ROLES, type Role } from './roles.ts';

const YES = true;
const NO = false;
/** Whether owners, developers and analysts have each permission. Administrators have all permissions. */
const EXPECTED: Record<string, [boolean, boolean, boolean]> = {
  'project.read': [YES, YES, YES],
  'project.create': [NO, NO, NO],
  'project.rename': [YES, NO, NO],
  'project.archive': [YES, NO, NO],
  'environment.create': [YES, YES, NO],
  'keys.read': [YES, YES, YES],
  'keys.create': [YES, YES, NO],
  'keys.refresh': [YES, YES, NO],
  'keys.revoke': [YES, YES, NO],
  'keys.origins': [YES, YES, NO],
  'signable-keys.create': [YES, YES, NO],
  'signable-keys.disable': [YES, YES, NO],
  'limit.set': [YES, NO, NO],
  'demo.load': [YES, NO, NO],
  'cap.set': [NO, NO, NO],
  'analysis.set': [YES, NO, NO],
  'alerts.acknowledge': [YES, YES, NO],
  'alerts.set': [YES, NO, NO],
  'rate-limit-keys.read': [NO, NO, NO],
  'rate-limit-keys.create': [NO, NO, NO],
  'rate-limit-keys.refresh': [NO, NO, NO],
  'rate-limit-keys.revoke': [NO, NO, NO],
  'collections.link': [YES, YES, NO],
  'collections.unlink': [YES, NO, NO],
  'live.read': [YES, YES, YES],
  'rejections.read': [YES, YES, YES],
  'people.raw-ids': [YES, YES, NO],
  'people.unlink': [YES, NO, NO],
  'erasure.request': [YES, NO, NO],
  'erasures.read': [YES, YES, YES],
  'analysts.create': [YES, YES, YES],
  'analysts.revoke': [YES, NO, NO],
  'members.read': [YES, YES, YES],
  'members.invite': [YES, NO, NO],
  'members.change': [YES, NO, NO],
  'audit.read': [YES, NO, NO],
  'accounts.read': [NO, NO, NO],
  'accounts.invite': [NO, NO, NO],
  'accounts.change': [NO, NO, NO],
  'accounts.remove': [NO, NO, NO],
};

const accountOf = (role: Role | null, isAdministrator = false, state: 'live' | 'disabled' | 'invited' = 'live') => ({
  state,
  isAdministrator,
  roles: role === null ? [] : [{ projectId: 'p', role }],
});

describe('role permissions', () => {
  it('cover every action', () => {
    expect(Object.keys(EXPECTED).toSorted()).toEqual(ACTIONS.toSorted());
  });

  it.each(ACTIONS)('match the table for %s', (action) => {
    const may = (account: ReturnType<typeof accountOf>, projectId: string | null = 'p') =>
      mayDo({ account, action, projectId });
    expect(ROLES.map((role) => may(accountOf(role)))).toEqual(EXPECTED[action]);
    for (const role of [...ROLES, null]) {
      expect(may(accountOf(role, true))).toBe(true);
      // A role applies only to its own project, even if another project id starts with the same characters.
      for (const other of ['p-2', '', null]) expect(may(accountOf(role), other)).toBe(false);
      for (const state of ['disabled', 'invited'] as const) expect(may(accountOf(role, true, state))).toBe(false);
    }
    expect(may(accountOf(null))).toBe(false);
    expect(may(accountOf(null, true), null)).toBe(true);
  });

  it('increase from analyst to developer to owner', () => {
    expect(ROLES.map((role) => ROLES.map((other) => isAtMost(role, other)))).toEqual([
      [true, false, false],
      [true, true, false],
      [true, true, true],
    ]);
  });
});
