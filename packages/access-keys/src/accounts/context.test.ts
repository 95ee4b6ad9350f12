import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { AccountRecord } from './account.ts';
import {
  acceptInvitation,
  createFirstAdministrator,
  disableAccount,
  enableAccount,
  invite,
  joinInvitation,
  removeAccount,
  resetAccess,
  revokeInvitation,
  setAdministrator,
  setRole,
} from './invitations.ts';
import { findByOpenId } from './open-id.ts';
import { ROLES, type Role } from './roles.ts';
import { linkOpenId, unlinkOpenId } from './sign-in.ts';
import { createWorld, personOf } from './test/world.ts';

const PROJECTS = ['p', 'p-2'];
const step = fc.record({
  name: fc.constantFrom(
    ...(['first', 'invite', 'accept', 'join', 'link', 'unlink', 'revoke', 'role'] as const),
    ...(['administrator', 'disable', 'enable', 'reset', 'remove'] as const),
  ),
  /** Indexes of the changed account and the acting account. An index past the last account means the operator. */
  target: fc.nat({ max: 4 }),
  actor: fc.nat({ max: 6 }),
  projectId: fc.constantFrom(...PROJECTS),
  role: fc.constantFrom<Role | null>(...ROLES, null),
  flag: fc.boolean(),
});

const isLive = ({ state }: AccountRecord) => state === 'live';
const ownersOf = (accounts: readonly AccountRecord[], projectId: string) =>
  accounts
    .filter(isLive)
    .filter(({ roles }) => roles.some((each) => each.projectId === projectId && each.role === 'owner'));

/** Asserts one role per project, a unique provider identity, and at least one credential. */
function assertValid({ id, state, roles, openId, ...account }: AccountRecord, all: readonly AccountRecord[]): void {
  expect(new Set(roles.map(({ projectId }) => projectId)).size).toBe(roles.length);
  if (openId !== null) expect(findByOpenId(all, openId)?.id).toBe(id);
  const credentials = [account.passwordHash, ...account.passkeys, openId, account.invitation];
  if (state === 'live') expect(credentials.some((credential) => credential !== null)).toBe(true);
}

describe('any sequence of account changes', () => {
  it('preserves a live administrator, an owner for each project that has one, and unique logins', async () => {
    let preventedRemovals = 0;
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 40 }), fc.boolean(), async (steps, isSetUp) => {
        const world = createWorld();
        if (isSetUp) for (const add of [world.addAdministrator, () => world.addMember('olga', 'owner')]) await add();
        const texts: string[] = [];
        let before = world.latest();
        for (const [at, { name, target, actor, projectId, role, flag }] of steps.entries()) {
          const context = world.as(before[actor]?.id ?? null);
          const accountId = before[target]?.id ?? 'unknown';
          const wanted = { name: 'X', isAdministrator: flag, roles: role === null ? [] : [{ projectId, role }] };
          const person = personOf(`login-${at % 3}`);
          const link = async (invited: Promise<{ text: string }>) => void texts.push((await invited).text);
          const changes = {
            first: () => createFirstAdministrator(context, person),
            invite: () => link(invite(context, wanted)),
            accept: () => acceptInvitation(context, { text: texts[target] ?? '', person }),
            join: () => joinInvitation(context, { text: texts[role === null ? 0 : target] ?? '', accountId }),
            link: () => linkOpenId(context, { accountId, openId: { issuer: projectId, subject: String(at % 3) } }),
            unlink: () => unlinkOpenId(context, { accountId }),
            revoke: () => revokeInvitation(context, accountId),
            role: () => setRole(context, { accountId, projectId, role }),
            administrator: () => setAdministrator(context, { accountId, isAdministrator: flag }),
            disable: () => disableAccount(context, accountId),
            enable: () => enableAccount(context, accountId),
            reset: () => link(resetAccess(context, accountId)),
            remove: () => removeAccount(context, accountId),
          };
          await changes[name]().catch((fault: Error) => {
            expect(fault.name).toBe('PublicError');
            if (fault.message.includes('last')) preventedRemovals++;
          });
          const after = world.latest();
          const administrators = (accounts: AccountRecord[]) =>
            accounts.filter(isLive).filter((each) => each.isAdministrator);
          if (administrators(before).length > 0) expect(administrators(after).length).toBeGreaterThan(0);
          for (const project of PROJECTS)
            if (ownersOf(before, project).length > 0) expect(ownersOf(after, project).length).toBeGreaterThan(0);
          const logins = after.map(({ login }) => login).filter((login) => login !== '');
          expect(new Set(logins).size).toBe(logins.length);
          for (const account of after) assertValid(account, after);
          before = after;
        }
      }),
      { numRuns: 100 },
    );
    // The runs must exercise the rules that protect the last administrator and the last owner.
    expect(preventedRemovals).toBeGreaterThan(5);
  });
});
