import type { AccountRecord, ProjectRole } from '@playline/contracts';

/** Owners have all developer permissions, and developers have all analyst permissions. */
export type Role = ProjectRole['role'];

/** Ordered from most to fewest permissions. */
export const ROLES: readonly Role[] = ['owner', 'developer', 'analyst'];

/** The minimum role for each action. */
const MINIMUM_ROLES = {
  'project.read': 'analyst',
  'project.create': 'administrator',
  'project.rename': 'owner',
  'project.archive': 'owner',
  'environment.create': 'developer',
  'keys.read': 'analyst',
  'keys.create': 'developer',
  'keys.refresh': 'developer',
  'keys.revoke': 'developer',
  'keys.origins': 'developer',
  'signable-keys.create': 'developer',
  'signable-keys.disable': 'developer',
  'limit.set': 'owner',
  'demo.load': 'owner',
  'cap.set': 'administrator',
  'analysis.set': 'owner',
  'alerts.acknowledge': 'developer',
  'alerts.set': 'owner',
  'rate-limit-keys.read': 'administrator',
  'rate-limit-keys.create': 'administrator',
  'rate-limit-keys.refresh': 'administrator',
  'rate-limit-keys.revoke': 'administrator',
  'collections.link': 'developer',
  'collections.unlink': 'owner',
  'live.read': 'analyst',
  'rejections.read': 'analyst',
  /** Reading raw ids, and looking up people by id. */
  'people.raw-ids': 'developer',
  'people.unlink': 'owner',
  'erasure.request': 'owner',
  'erasures.read': 'analyst',
  /** Creating database credentials for oneself. */
  'analysts.create': 'analyst',
  /** Seeing and revoking the database credentials of other members. */
  'analysts.revoke': 'owner',
  'members.read': 'analyst',
  'members.invite': 'owner',
  'members.change': 'owner',
  'audit.read': 'owner',
  'accounts.read': 'administrator',
  'accounts.invite': 'administrator',
  'accounts.change': 'administrator',
  'accounts.remove': 'administrator',
} as const satisfies Record<string, Role | 'administrator'>;

export type Action = keyof typeof MINIMUM_ROLES;

export const ACTIONS = Object.keys(MINIMUM_ROLES) as Action[];

export interface AccessCheck {
  readonly account: Pick<AccountRecord, 'state' | 'isAdministrator' | 'roles'>;
  readonly action: Action;
  /** Null for actions on the whole installation. */
  readonly projectId: string | null;
}

export function mayDo({ account, action, projectId }: AccessCheck): boolean {
  if (account.state !== 'live') return false;
  if (account.isAdministrator) return true;
  const role = roleIn(account, projectId);
  const minimum = MINIMUM_ROLES[action];
  return role !== null && minimum !== 'administrator' && isAtMost(minimum, role);
}

export const roleIn = ({ roles }: Pick<AccountRecord, 'roles'>, projectId: string | null): Role | null =>
  roles.find((each) => each.projectId === projectId)?.role ?? null;

/** Returns whether the first role has no more permissions than the second. */
export const isAtMost = (role: Role, other: Role): boolean => ROLES.indexOf(role) >= ROLES.indexOf(other);
